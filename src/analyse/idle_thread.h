/*
 * idle_thread: whether a thread waits by design, as a runtime's own threads do most of their lives.
 *
 * Known by the names that .NET 8 to 10 give their threads, and by what is on their stacks: a worker of the
 * pool is idle while no work item is under way, the finalizer's thread while no finalizer is.
 */
#ifndef CLRPERF_ANALYSE_IDLE_THREAD_H
#define CLRPERF_ANALYSE_IDLE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "analyse/shown_stack.h"

/*
 * What it is there for ("thread pool", "timer", "finalizer", ...), or NULL: it is at work, or not one of
 * those. `name`: the thread's, of which the kernel has 15 bytes; "" when unknown. `blocked`: it is in a
 * system call.
 */
const char *idle_thread_kind(const char *name, const struct shown_stack *stack, bool blocked);

#endif
