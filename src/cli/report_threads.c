#include "cli/report_threads.h"

#include <stdlib.h>

#include "base/mem.h"

static int by_weight(const void *a, const void *b)
{
    const struct profile_thread *x = *(const struct profile_thread *const *)a,
                                *y = *(const struct profile_thread *const *)b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x > y) - (x < y);
}

const struct profile_thread **report_threads(const struct profile *p, size_t top, size_t *out_count)
{
    size_t count = p->thread_count - 1; /* [0] is unused */
    const struct profile_thread **rows = mem_alloc(count + 1, sizeof(struct profile_thread *));
    for (size_t i = 0; i < count; i++)
        rows[i] = &p->threads[i + 1];
    if (top)
        qsort(rows, count, sizeof(struct profile_thread *), by_weight);
    *out_count = top && top < count ? top : count;
    return rows;
}
