/*
 * stack_threads: the runtime's own list of the threads that were looked at.
 */
#ifndef CLRPERF_CLI_STACK_THREADS_H
#define CLRPERF_CLI_STACK_THREADS_H

#include "cli/stack_view.h"
#include "clr/managed_threads.h"
#include "collect/process_stacks.h"

/* As managed_threads_open(), by what `stacks` knows of the runtime: stacks->walk must be there. */
bool stack_threads_open(const struct process_stacks *stacks, struct memory_pages *pages,
                        struct managed_threads *out, struct error *err);
/* The list for whoever shows the look: it is looked for once, and is as it was then. NULL: it was not found.
 */
struct managed_threads *stack_threads_of(struct stack_view *view, struct error *err);

#endif
