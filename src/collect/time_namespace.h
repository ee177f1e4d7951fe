/*
 * time_namespace: how far the clocks of a process in a time namespace of its own are from ours.
 */
#ifndef CLRPERF_COLLECT_TIME_NAMESPACE_H
#define CLRPERF_COLLECT_TIME_NAMESPACE_H

#include <stdint.h>
#include <sys/types.h>

/* What the process reads minus what we read at the same moment. */
struct time_offsets {
    int64_t monotonic_ns;
    int64_t boottime_ns;
};

/* Zero in our own namespace, and where the kernel does not tell. See time_namespaces(7). */
struct time_offsets time_namespace_offsets(pid_t pid);

#endif
