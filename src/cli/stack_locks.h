/*
 * stack_locks: which thread of a look waits for which lock, and for whom.
 */
#ifndef CLRPERF_CLI_STACK_LOCKS_H
#define CLRPERF_CLI_STACK_LOCKS_H

#include "cli/stack_view.h"

/*
 * Fills in the rows' locks and the view's deadlocks. `live`: the process runs, so that a circle counts only
 * when none of its threads has run while it was read. Where the runtime's list of threads cannot be read,
 * view->locks_problem says why.
 */
void stack_locks_read(struct stack_view *view, bool live);

#endif
