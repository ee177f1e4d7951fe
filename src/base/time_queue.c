#include "base/time_queue.h"

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

void time_queue_init(struct time_queue *q, size_t bytes_max)
{
    *q = (struct time_queue){ 0 };
    buffer_init(&q->bytes, bytes_max);
    buffer_init(&q->spare, bytes_max);
}

void time_queue_done(struct time_queue *q)
{
    buffer_done(&q->bytes);
    buffer_done(&q->spare);
    free(q->items);
    free(q->aside);
    *q = (struct time_queue){ 0 };
}

bool time_queue_add(struct time_queue *q, uint64_t time_ns, uint32_t kind, struct span bytes)
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
    q->items[q->count] = (struct time_item){
        .time_ns = time_ns,
        .offset = (uint32_t)offset,
        .size = (uint32_t)bytes.size,
        .kind = kind,
    };
    q->count++;
    q->live_bytes += bytes.size;
    return true;
}

/* How many of `count` items in order are no newer than `time_ns`, or older. */
static size_t items_before(const struct time_item *items, size_t count, uint64_t time_ns, bool or_equal)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (items[middle].time_ns < time_ns || (or_equal && items[middle].time_ns == time_ns))
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Merges [from, middle) and [middle, to), each in order. Equal times keep theirs; what is in place is not
 * touched. */
static void merge_items(struct time_queue *q, size_t from, size_t middle, size_t to)
{
    struct time_item *items = q->items;
    from += items_before(items + from, middle - from, items[middle].time_ns, true);
    to = middle + items_before(items + middle, to - middle, items[middle - 1].time_ns, false);
    size_t moved = middle - from, at = from, i = 0;
    q->aside = mem_grow(q->aside, &q->aside_capacity, moved, sizeof *q->aside);
    memcpy(q->aside, items + from, moved * sizeof *items);
    for (size_t right = middle; i < moved; at++)
        items[at] = right < to && items[right].time_ns < q->aside[i].time_ns ? items[right++] : q->aside[i++];
}

static size_t run_end(const struct time_queue *q, size_t from)
{
    size_t to = from + 1;
    while (to < q->count && q->items[to - 1].time_ns <= q->items[to].time_ns)
        to++;
    return to;
}

/*
 * Sources are in order each, so what was read of one is a run: a few runs are merged, each with one of its
 * size. One left open is more than twice as long as the next, so that there are never more of them than a
 * size has bits.
 */
static void sort_items(struct time_queue *q)
{
    size_t open[64 + 2], count = 0;
    for (size_t at = q->first, to; at < q->count; at = to) {
        to = run_end(q, at);
        open[count++] = at;
        for (; count >= 2 && 2 * (to - open[count - 1]) >= open[count - 1] - open[count - 2]; count--)
            merge_items(q, open[count - 2], open[count - 1], to);
    }
    for (; count >= 2; count--)
        merge_items(q, open[count - 2], open[count - 1], q->count);
}

/*
 * Forgets what was handed over. While a runtime lags, a third of a second of records waits at any time:
 * moving those at every look would cost more than taking them, so they are moved when half is gone.
 */
static void time_queue_compact(struct time_queue *q)
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
        struct time_item *item = &q->items[i];
        size_t offset = q->spare.size;
        buffer_append(&q->spare, q->bytes.data + item->offset, item->size);
        item->offset = (uint32_t)offset;
    }
    struct buffer moved = q->spare;
    q->spare = q->bytes;
    q->bytes = moved;
    if (moved.size < q->spare.capacity / 4) /* a burst is over */
        clear_bytes(&q->spare);
}

static void sort_once(struct time_queue *q)
{
    if (q->unsorted)
        sort_items(q);
    q->unsorted = false;
}

uint64_t time_queue_middle_ns(struct time_queue *q)
{
    sort_once(q);
    return q->items[q->first + (q->count - q->first) / 2].time_ns;
}

void time_queue_release(struct time_queue *q, uint64_t until_ns, time_queue_fn *take, void *user)
{
    sort_once(q);
    for (; q->first < q->count && q->items[q->first].time_ns <= until_ns; q->first++) {
        struct time_item item = q->items[q->first]; /* whoever takes it may add others */
        q->live_bytes -= item.size;
        take(user, &item, span_of(q->bytes.data + item.offset, item.size));
    }
    time_queue_compact(q);
}
