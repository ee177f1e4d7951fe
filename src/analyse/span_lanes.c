#include "analyse/span_lanes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool owner_of(const struct span_row *row, struct span_owner *out)
{
    *out = (struct span_owner){ .process = row->process };
    if (activity_path_read(row->activity, &out->path))
        return true;
    out->thread = row->on_one_thread ? row->thread : 0;
    return out->thread != 0;
}

static int owner_compare(const struct span_owner *a, const struct span_owner *b)
{
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return memcmp(&a->path, &b->path, sizeof a->path);
}

static int span_compare(const void *a, const void *b)
{
    const struct laned_span *x = a, *y = b;
    int order = owner_compare(&x->owner, &y->owner);
    if (order)
        return order;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->stop_ns != y->stop_ns)
        return x->stop_ns < y->stop_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void sort(struct span_lanes *lanes)
{
    if (lanes->count)
        qsort(lanes->rows, lanes->count, sizeof *lanes->rows, span_compare);
}

/* Each gets the first lane that is free when it begins. */
static void assign(struct span_lanes *lanes)
{
    uint64_t until_ns[SPAN_LANES_MAX];
    size_t kept = 0;
    uint32_t used = 0;
    for (size_t i = 0; i < lanes->count; i++) {
        struct laned_span span = lanes->rows[i];
        if (i && owner_compare(&span.owner, &lanes->rows[i - 1].owner) != 0)
            used = 0;
        while (span.lane < used && until_ns[span.lane] > span.start_ns)
            span.lane++;
        if (span.lane == SPAN_LANES_MAX)
            continue;
        until_ns[span.lane] = span.stop_ns;
        used += span.lane == used;
        lanes->rows[kept++] = span;
    }
    lanes->left_out = lanes->count - kept;
    lanes->count = kept;
}

void span_lanes_init(struct span_lanes *lanes, const struct span_table *table)
{
    *lanes = (struct span_lanes){ .rows = mem_alloc(table->count + 1, sizeof *lanes->rows) };
    for (uint32_t i = 0; i < table->count; i++) {
        const struct span_row *row = &table->rows[i];
        struct laned_span span = { .row = i, .start_ns = row->start_ns, .stop_ns = row->stop_ns };
        if (owner_of(row, &span.owner))
            lanes->rows[lanes->count++] = span;
    }
    sort(lanes); /* by time: all are in lane 0 */
    assign(lanes);
    sort(lanes);
}

void span_lanes_done(struct span_lanes *lanes)
{
    free(lanes->rows);
}

/* The first one in this lane, or a later one, that is not over by then. */
static size_t first_after(const struct span_lanes *lanes, const struct span_owner *owner, uint32_t lane,
                          uint64_t from_ns)
{
    size_t low = 0, high = lanes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct laned_span *span = &lanes->rows[middle];
        int order = owner_compare(&span->owner, owner);
        if (order < 0 || (!order && (span->lane < lane || (span->lane == lane && span->stop_ns <= from_ns))))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_of(const struct span_lanes *lanes, size_t at, const struct span_owner *owner)
{
    return at < lanes->count && owner_compare(&lanes->rows[at].owner, owner) == 0;
}

void span_lanes_each(const struct span_lanes *lanes, const struct span_owner *owner, uint64_t from_ns,
                     uint64_t to_ns, span_lanes_fn *each, void *user)
{
    uint32_t lane = 0;
    for (size_t at; is_of(lanes, at = first_after(lanes, owner, lane, from_ns), owner);) {
        if (lanes->rows[at].lane != lane) { /* nothing in this one */
            lane = lanes->rows[at].lane;
            continue;
        }
        for (; is_of(lanes, at, owner) && lanes->rows[at].lane == lane && lanes->rows[at].start_ns < to_ns;
             at++)
            each(user, &lanes->rows[at]);
        lane++;
    }
}
