/*
 * trace_threads: numbers and names of the threads of a process whose events are watched.
 */
#ifndef CLRPERF_CLI_TRACE_THREADS_H
#define CLRPERF_CLI_TRACE_THREADS_H

#include <stdint.h>
#include <sys/types.h>

struct trace_threads;

/* `ns_pid`: the process's own idea of its number; 0 means the same as ours. */
struct trace_threads *trace_threads_new(pid_t pid, uint32_t ns_pid);
void trace_threads_free(struct trace_threads *threads);
/* Our number of a thread that the process calls `ns_tid`, or 0 when it is not known. */
uint32_t trace_threads_tid(struct trace_threads *threads, uint64_t ns_tid);
/* What the kernel calls it; NULL when that is not known. Valid until the next call. */
const char *trace_threads_name(struct trace_threads *threads, uint32_t tid);

#endif
