#include "analyse/row_times.h"

#include <stdlib.h>

#include "base/mem.h"

void row_times_done(struct row_times *times)
{
    free(times->rows);
}

void row_times_add(struct row_times *times, uint32_t row, uint64_t from_ns, uint64_t to_ns)
{
    struct row_time *last = times->count ? &times->rows[times->count - 1] : NULL;
    if (to_ns <= from_ns)
        return;
    if (last && last->row == row && last->to_ns == from_ns) {
        last->to_ns = to_ns;
        return;
    }
    times->rows = mem_grow(times->rows, &times->capacity, times->count + 1, sizeof *times->rows);
    times->rows[times->count++] = (struct row_time){ .from_ns = from_ns, .to_ns = to_ns, .row = row };
}

static int row_time_compare(const void *a, const void *b)
{
    const struct row_time *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

void row_times_sum(struct row_times *times, uint64_t *sum_ns)
{
    uint64_t until_ns = 0;
    if (times->count)
        qsort(times->rows, times->count, sizeof *times->rows, row_time_compare);
    for (size_t i = 0; i < times->count; i++) {
        const struct row_time *at = &times->rows[i];
        if (i == 0 || at->row != at[-1].row)
            until_ns = 0;
        uint64_t from_ns = at->from_ns > until_ns ? at->from_ns : until_ns;
        if (at->to_ns <= from_ns)
            continue;
        sum_ns[at->row] += at->to_ns - from_ns;
        until_ns = at->to_ns;
    }
}
