/*
 * stack_joins: which thread of a look waits for the end of which other one, in Thread.Join.
 */
#ifndef CLRPERF_CLI_STACK_JOINS_H
#define CLRPERF_CLI_STACK_JOINS_H

#include "cli/stack_view.h"

/* The frame that called Thread.Join, where a stack waits in that; else 0. Of a stack with names as people
 * write them. */
size_t stack_join_caller(const struct shown_stack *stack);
/*
 * The thread whose end a row with a `join_caller` waits for, and its object; NULL when that is not certain:
 * then frames of Thread.Join refer to none, or to several that run. `pages`: where objects are read.
 */
const struct managed_thread *stack_join_target(const struct stack_view *view, const struct stack_row *row,
                                               struct memory_pages *pages, uint64_t *out_object);

#endif
