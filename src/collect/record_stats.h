/*
 * record_stats: what a recording says of itself, while it runs and when it has ended.
 */
#ifndef CLRPERF_COLLECT_RECORD_STATS_H
#define CLRPERF_COLLECT_RECORD_STATS_H

#include <stdint.h>

enum record_end {
    RECORD_ENDED_DURATION,
    RECORD_ENDED_SIGNAL,
    RECORD_ENDED_TARGET_EXIT,
    RECORD_ENDED_STOP_WHEN,
    RECORD_ENDED_ERROR
};

struct record_progress {
    uint64_t elapsed_ns;
    uint64_t samples, lost, broken;
    uint64_t events, events_lost; /* of runtimes */
    uint64_t file_bytes;
};

struct record_stats {
    uint64_t duration_ns;
    uint64_t samples, lost, filtered;
    uint64_t whole, truncated, broken;
    uint64_t throttled;
    uint64_t events, events_lost; /* that runtimes told of; dropped by them, at least */
    uint64_t processes, threads;
    uint64_t stopped_ns;    /* when sampling ended, CLOCK_MONOTONIC */
    uint64_t cpu_missed_ns; /* CPU time that was used and has no samples, where it is much; else 0 */
    uint64_t rundown_ns;    /* time the runtimes took to tell their methods */
    enum record_end ended_by;
};

#endif
