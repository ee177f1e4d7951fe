/*
 * capture_time: when a capture began and how long it is, whatever is in it.
 */
#ifndef CLRPERF_ANALYSE_CAPTURE_TIME_H
#define CLRPERF_ANALYSE_CAPTURE_TIME_H

#include <stdint.h>

#include "trace/trace.h"

struct capture_time {
    uint64_t start_ns;    /* of the trace's clock */
    uint64_t duration_ns; /* 0: not known, and nothing in it */
    uint64_t realtime_ns; /* of the start, since 1970; 0: not known */
};

struct capture_time capture_time_of(const struct trace *t);

/* Seconds since the start; before it: negative. */
double capture_time_s(const struct capture_time *time, uint64_t time_ns);
/* How much of the capture a process was asked for events of a provider; all of it when that is not known. */
uint64_t capture_time_asked_ns(const struct capture_time *time, const struct trace *t, uint32_t process,
                               const char *provider, uint64_t keywords);

#endif
