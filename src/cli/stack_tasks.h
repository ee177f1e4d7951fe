/*
 * stack_tasks: which thread of a look waits for a task that another one runs.
 */
#ifndef CLRPERF_CLI_STACK_TASKS_H
#define CLRPERF_CLI_STACK_TASKS_H

#include "base/memory_pages.h"
#include "cli/stack_view.h"

/* What a thread waits for, by its row. */
struct stack_task {
    uint64_t task; /* object; 0: no task, or none that is certain */
    size_t runner; /* row of the thread without which it cannot end */
};

/*
 * After the rows' locks were read: `waits_for` as wait_cycles_find() has it, by locks. Fills `out`, a place
 * for each row. A task counts where it is certain who runs it: one thread does, and all threads were looked
 * at.
 */
void stack_tasks_read(const struct stack_view *view, struct memory_pages *pages, const size_t *waits_for,
                      struct stack_task *out);

#endif
