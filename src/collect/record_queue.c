#include "collect/record_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void record_queue_init(struct record_queue *q, size_t bytes_max)
{
    *q = (struct record_queue){ 0 };
    buffer_init(&q->bytes, bytes_max);
}

void record_queue_done(struct record_queue *q)
{
    buffer_done(&q->bytes);
    free(q->items);
    *q = (struct record_queue){ 0 };
}

bool record_queue_add(struct record_queue *q, uint64_t time_ns, enum queue_item_kind kind, struct span bytes)
{
    size_t offset = q->bytes.size;
    buffer_append(&q->bytes, bytes.data, bytes.size);
    if (q->bytes.failed) {
        q->bytes.failed = false;
        return false;
    }
    if (q->count && q->items[q->count - 1].time_ns > time_ns)
        q->unsorted = true;
    q->items = mem_grow(q->items, &q->capacity, q->count + 1, sizeof *q->items);
    q->items[q->count] = (struct queue_item){
        .time_ns = time_ns,
        .offset = (uint32_t)offset,
        .size = (uint32_t)bytes.size,
        .order = (uint32_t)q->count,
        .kind = kind,
    };
    q->count++;
    return true;
}

static int queue_item_compare(const void *a, const void *b)
{
    const struct queue_item *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Moves what stays to the front of the bytes. */
static void record_queue_compact(struct record_queue *q, size_t released)
{
    q->count -= released;
    memmove(q->items, q->items + released, q->count * sizeof *q->items);
    if (!q->count) {
        q->bytes.size = 0;
        return;
    }
    struct buffer kept;
    buffer_init(&kept, q->bytes.ceiling);
    for (size_t i = 0; i < q->count; i++) {
        struct queue_item *item = &q->items[i];
        size_t offset = kept.size;
        buffer_append(&kept, q->bytes.data + item->offset, item->size);
        item->offset = (uint32_t)offset;
        item->order = (uint32_t)i;
    }
    buffer_done(&q->bytes);
    q->bytes = kept;
}

void record_queue_release(struct record_queue *q, uint64_t until_ns, record_queue_fn *take, void *user)
{
    if (q->unsorted)
        qsort(q->items, q->count, sizeof *q->items, queue_item_compare);
    q->unsorted = false;
    size_t released = 0;
    for (; released < q->count && q->items[released].time_ns <= until_ns; released++) {
        const struct queue_item *item = &q->items[released];
        take(user, (enum queue_item_kind)item->kind, span_of(q->bytes.data + item->offset, item->size));
    }
    if (released)
        record_queue_compact(q, released);
}
