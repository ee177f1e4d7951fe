/*
 * process_births: puts the children of the processes in a filter into it, too, before they run.
 *
 * A BPF program at the tracepoint task:task_newtask, which the parent passes while the child is not yet
 * runnable. What the rings tell of a child comes later than its first CPU time, and for one that lives for a
 * moment too late.
 */
#ifndef CLRPERF_COLLECT_PROCESS_BIRTHS_H
#define CLRPERF_COLLECT_PROCESS_BIRTHS_H

#include <stdbool.h>

#include "base/error.h"
#include "collect/process_filter.h"

struct process_births {
    int event_fd, program_fd; /* -1 when closed */
};

/* From now on, on all CPUs; `cpu` is one that is online. Fails where the kernel shows no tracepoints to us.
 */
bool process_births_open(struct process_births *births, const struct process_filter *filter, int cpu,
                         struct error *err);
void process_births_close(struct process_births *births);

#endif
