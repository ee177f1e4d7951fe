#include "cli/stack_threads.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/own.h"

static int compare_tids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

bool stack_threads_open(const struct process_stacks *stacks, struct memory_pages *pages,
                        struct managed_threads *out, struct error *err)
{
    AUTO_FREE pid_t *tids = mem_alloc(stacks->threads.count + 1, sizeof *tids);
    for (size_t i = 0; i < stacks->threads.count; i++)
        tids[i] = stacks->threads.rows[i].ns_tid;
    qsort(tids, stacks->threads.count, sizeof *tids, compare_tids);
    return managed_threads_open(pages, code_walk_root(stacks->walk), code_walk_report(stacks->walk)->layout,
                                tids, stacks->threads.count, out, err);
}
