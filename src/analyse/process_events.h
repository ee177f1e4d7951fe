/*
 * process_events: the events of the processes that a user wants to see, as if nobody else had told any.
 */
#ifndef CLRPERF_ANALYSE_PROCESS_EVENTS_H
#define CLRPERF_ANALYSE_PROCESS_EVENTS_H

#include "analyse/thread_filter.h"
#include "trace/trace.h"

/*
 * Drops the events of other processes from the trace, what those were asked for, and losses that are known to
 * be theirs; filter->thread does not count, as what a process tells of its threads is told by any of them.
 */
void process_events_keep(struct trace *t, const struct thread_filter *filter);
/* Whether a process told any event. */
bool process_events_told(const struct trace *t, uint32_t process);

#endif
