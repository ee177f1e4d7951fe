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
    const struct taken_threads *threads = &stacks->threads;
    size_t count = threads->count + threads->other_count;
    AUTO_FREE pid_t *tids = mem_alloc(count + 1, sizeof *tids);
    for (size_t i = 0; i < threads->count; i++)
        tids[i] = threads->rows[i].ns_tid;
    for (size_t i = 0; i < threads->other_count; i++)
        tids[threads->count + i] = threads->others[i].ns_tid;
    qsort(tids, count, sizeof *tids, compare_tids);
    return managed_threads_open(pages, code_walk_root(stacks->walk), code_walk_report(stacks->walk)->layout,
                                tids, count, out, err);
}

struct managed_threads *stack_threads_of(struct stack_view *view, struct error *err)
{
    struct memory_pages *pages = code_walk_types(view->stacks->walk)->pages;
    if (!view->threads_asked) {
        view->threads_asked = true;
        stack_threads_open(view->stacks, pages, &view->threads, &view->threads_problem);
    }
    if (!view->threads_problem.kind)
        return &view->threads;
    if (err)
        *err = view->threads_problem;
    return NULL;
}
