/*
 * clock: CLOCK_MONOTONIC in nanoseconds, the one time axis of a capture.
 */
#ifndef CLRPERF_BASE_CLOCK_H
#define CLRPERF_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
/* CPU time of this process, user and system. */
uint64_t clock_own_cpu_ns(void);
/* The same of the calling thread. */
uint64_t clock_thread_cpu_ns(void);
/* Largest resident set of this process so far. */
uint64_t clock_own_peak_rss_bytes(void);

#endif
