/*
 * thread_rest: where a thread of a process rests, to know whether it has run since.
 */
#ifndef CLRPERF_COLLECT_THREAD_REST_H
#define CLRPERF_COLLECT_THREAD_REST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_rest {
    uint64_t switches;      /* times it was given a CPU, or lost one, since its start */
    uint64_t stack_pointer; /* in the system call it rests in */
};

/* False when it does not rest in a system call, or may not be looked at. */
bool thread_rest_read(pid_t pid, pid_t tid, struct thread_rest *out);

#endif
