/*
 * thread_filter: which threads and processes a user wants to see, by their numbers or names.
 */
#ifndef CLRPERF_ANALYSE_THREAD_FILTER_H
#define CLRPERF_ANALYSE_THREAD_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

/* Borrowed; NULL is any. */
struct thread_filter {
    const char *process; /* pid, or glob on its name; cases are ignored */
    const char *thread;  /* tid, or glob on its name */
};

/* Of a row of the trace; what is not known (0) is not wanted. */
bool thread_filter_wants_process(const struct thread_filter *filter, const struct trace *t, uint32_t process);
bool thread_filter_wants_thread(const struct thread_filter *filter, const struct trace *t, uint32_t thread);
/* By thread of the trace, whether it and its process are wanted. NULL: all are. The caller frees. */
bool *thread_filter_threads(const struct thread_filter *filter, const struct trace *t);

#endif
