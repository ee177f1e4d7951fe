/*
 * lock_stats: which locks threads waited for, where, and how long.
 *
 * ContentionStart and Stop of one thread belong together. A wait that begins or ends outside the capture is
 * counted apart, and its time is not known.
 */
#ifndef CLRPERF_ANALYSE_LOCK_STATS_H
#define CLRPERF_ANALYSE_LOCK_STATS_H

#include "analyse/event_tally.h"
#include "analyse/told_events.h"

enum lock_event_id {
    LOCK_EVENT_CONTENTION_START = 81,
    LOCK_EVENT_CONTENTION_STOP = 91,
};

struct lock_stats {
    struct event_stacks stacks;
    /* weights are ns; texts are locks: their id, "native" or "" where it was not told; details are who held
     * it when the wait began, the number of a thread of the system's or, of System.Threading.Lock, of .NET's
     */
    struct event_tally tally;
    uint64_t unfinished; /* began, and were not over */
    uint64_t unbegun;    /* were over, and had not begun */
    uint64_t malformed;
    bool is_full;
    bool any;
};

/* The events that it is made of. */
bool lock_stats_wants(const char *provider, uint32_t event_id);

void lock_stats_init(struct lock_stats *stats, const struct trace *t, bool raw_names, uint64_t from_ns,
                     uint64_t to_ns);
void lock_stats_done(struct lock_stats *stats);

#endif
