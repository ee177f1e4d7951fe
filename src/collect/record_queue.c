#include "collect/record_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    COMPACT_FROM_BYTES = 256 * 1024,
    KEPT_BYTES = 1024 * 1024, /* of memory while nothing waits: the first look at a process takes long */
};

/* Empties it; keeps some of the memory. */
static void clear_bytes(struct buffer *bytes)
{
    size_t ceiling = bytes->ceiling;
    if (bytes->capacity > KEPT_BYTES) {
        buffer_done(bytes);
        buffer_init(bytes, ceiling);
    }
    buffer_clear(bytes);
}

void record_queue_init(struct record_queue *q, size_t bytes_max)
{
    *q = (struct record_queue){ 0 };
    buffer_init(&q->bytes, bytes_max);
    buffer_init(&q->spare, bytes_max);
}

void record_queue_done(struct record_queue *q)
{
    buffer_done(&q->bytes);
    buffer_done(&q->spare);
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
    if (q->count > q->first && q->items[q->count - 1].time_ns > time_ns)
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
    q->live_bytes += bytes.size;
    return true;
}

static int queue_item_compare(const void *a, const void *b)
{
    const struct queue_item *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/*
 * Forgets what was handed over. While a runtime lags, a third of a second of records waits at any time:
 * moving those at every look would cost more than taking them, so they are moved when half is gone.
 */
static void record_queue_compact(struct record_queue *q)
{
    if (q->first == q->count) {
        q->first = q->count = q->live_bytes = 0;
        clear_bytes(&q->bytes);
        clear_bytes(&q->spare);
        return;
    }
    if (q->bytes.size < COMPACT_FROM_BYTES || q->live_bytes > q->bytes.size / 2)
        return;
    q->count -= q->first;
    memmove(q->items, q->items + q->first, q->count * sizeof *q->items);
    q->first = 0;
    buffer_clear(&q->spare);
    for (size_t i = 0; i < q->count; i++) {
        struct queue_item *item = &q->items[i];
        size_t offset = q->spare.size;
        buffer_append(&q->spare, q->bytes.data + item->offset, item->size);
        item->offset = (uint32_t)offset;
        item->order = (uint32_t)i;
    }
    struct buffer moved = q->spare;
    q->spare = q->bytes;
    q->bytes = moved;
}

void record_queue_release(struct record_queue *q, uint64_t until_ns, record_queue_fn *take, void *user)
{
    if (q->unsorted)
        qsort(q->items + q->first, q->count - q->first, sizeof *q->items, queue_item_compare);
    q->unsorted = false;
    for (; q->first < q->count && q->items[q->first].time_ns <= until_ns; q->first++) {
        const struct queue_item *item = &q->items[q->first];
        q->live_bytes -= item->size;
        take(user, (enum queue_item_kind)item->kind, span_of(q->bytes.data + item->offset, item->size));
    }
    record_queue_compact(q);
}
