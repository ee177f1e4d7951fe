#include "read/perf_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Below this many bytes, moving what waits together is not worth it. */
enum { COMPACT_FROM_BYTES = 256 << 10 };

void perf_order_init(struct perf_order *o, size_t ceiling, perf_order_fn *deliver, void *user)
{
    *o = (struct perf_order){ .deliver = deliver, .user = user, .ceiling = ceiling };
    /* delivered bytes may still lie between those that wait */
    buffer_init(&o->bytes, 2 * ceiling + 2 * COMPACT_FROM_BYTES);
    buffer_init(&o->spare, 2 * ceiling + 2 * COMPACT_FROM_BYTES);
}

void perf_order_done(struct perf_order *o)
{
    buffer_done(&o->bytes);
    buffer_done(&o->spare);
    free(o->entries);
    free(o->scratch);
    o->entries = o->scratch = NULL;
    o->count = 0;
}

/* Merges entries[a..b) with entries[b..c) into out; equal times keep their order. */
static void merge_runs(const struct perf_order_entry *e, size_t a, size_t b, size_t c,
                       struct perf_order_entry *out)
{
    size_t left = a, right = b;
    for (size_t i = a; i < c; i++) {
        bool take_left = left < b && (right == c || e[left].time_ns <= e[right].time_ns);
        out[i] = take_left ? e[left++] : e[right++];
    }
}

static size_t run_end(const struct perf_order *o, size_t start)
{
    size_t end = start + 1;
    while (end < o->count && o->entries[end - 1].time_ns <= o->entries[end].time_ns)
        end++;
    return end < o->count ? end : o->count;
}

/* Natural merge sort: there are only as many runs as rings were drained. */
static void sort_entries(struct perf_order *o)
{
    while (o->count && run_end(o, 0) < o->count) {
        o->scratch = mem_grow(o->scratch, &o->scratch_capacity, o->count, sizeof *o->scratch);
        for (size_t a = 0; a < o->count;) {
            size_t b = run_end(o, a);
            size_t c = b < o->count ? run_end(o, b) : b;
            merge_runs(o->entries, a, b, c, o->scratch);
            a = c;
        }
        struct perf_order_entry *sorted = o->scratch;
        size_t capacity = o->scratch_capacity;
        o->scratch = o->entries;
        o->scratch_capacity = o->capacity;
        o->entries = sorted;
        o->capacity = capacity;
    }
}

static void compact(struct perf_order *o)
{
    if (o->count == 0) {
        buffer_clear(&o->bytes);
        return;
    }
    if (o->bytes.size < COMPACT_FROM_BYTES || o->bytes.size < 2 * o->live_bytes)
        return;
    buffer_clear(&o->spare);
    for (size_t i = 0; i < o->count; i++) {
        struct perf_order_entry *e = &o->entries[i];
        size_t at = o->spare.size;
        buffer_append(&o->spare, o->bytes.data + e->at, e->size);
        e->at = (uint32_t)at;
    }
    struct buffer compacted = o->spare;
    o->spare = o->bytes;
    o->bytes = compacted;
}

/* The first `count` of the sorted entries. */
static bool deliver_first(struct perf_order *o, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct perf_order_entry *e = &o->entries[i];
        if (e->time_ns < o->delivered_ns)
            o->late++;
        else
            o->delivered_ns = e->time_ns;
        if (!o->deliver(o->user, span_of(o->bytes.data + e->at, e->size), e->time_ns, err))
            return false;
        o->live_bytes -= e->size;
    }
    o->count -= count;
    if (o->count && count)
        memmove(o->entries, o->entries + count, o->count * sizeof *o->entries);
    compact(o);
    return true;
}

static bool make_room(struct perf_order *o, struct error *err)
{
    bool was_sorted = run_end(o, 0) == o->count;
    sort_entries(o);
    return deliver_first(o, was_sorted ? o->count : (o->count + 1) / 2, err);
}

bool perf_order_add(struct perf_order *o, struct span record, uint64_t time_ns, struct error *err)
{
    while (o->count && (o->live_bytes + record.size > o->ceiling || o->count >= UINT32_MAX / 2))
        if (!make_room(o, err))
            return false;
    o->entries = mem_grow(o->entries, &o->capacity, o->count + 1, sizeof *o->entries);
    o->entries[o->count++] =
        (struct perf_order_entry){ time_ns, (uint32_t)o->bytes.size, (uint32_t)record.size };
    buffer_append(&o->bytes, record.data, record.size);
    o->live_bytes += record.size;
    if (time_ns > o->newest_ns)
        o->newest_ns = time_ns;
    return true;
}

bool perf_order_round(struct perf_order *o, struct error *err)
{
    sort_entries(o);
    size_t low = 0, high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->entries[middle].time_ns <= o->round_end_ns)
            low = middle + 1;
        else
            high = middle;
    }
    o->round_end_ns = o->newest_ns;
    return deliver_first(o, low, err);
}

bool perf_order_flush(struct perf_order *o, struct error *err)
{
    sort_entries(o);
    return deliver_first(o, o->count, err);
}
