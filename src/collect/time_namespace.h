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
/* Its start time (field 22 of our /proc/PID/stat) as the process itself reads it: part of its socket's name.
 */
uint64_t time_namespace_start_ticks(pid_t pid, uint64_t start_ticks);

#endif
