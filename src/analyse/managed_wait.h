/*
 * managed_wait: what a managed thread waits for, in the words of .NET, from the frames on its stack.
 */
#ifndef CLRPERF_ANALYSE_MANAGED_WAIT_H
#define CLRPERF_ANALYSE_MANAGED_WAIT_H

#include "analyse/shown_stack.h"

/*
 * "Monitor.Enter", "Task.Wait", "Thread.Sleep", ...: the outermost waiting method of the framework below the
 * program's own code, since the inner ones are how it is done. NULL when there is none.
 */
const char *managed_wait_name(const struct shown_stack *stack);
/* Whether one of the methods that do it is called so, "Condition.Wait". */
bool managed_wait_is_by(const struct shown_stack *stack, const char *method);

#endif
