/*
 * alloc_stats: what was allocated, by type and stack, estimated from the runtime's samples of allocations.
 *
 * AllocationTick comes once for about 100 kB of a kind (small, large, pinned objects) and says the bytes
 * since the one before: the sum is nearly exact, a type's part of it an estimate. AllocationSampled (.NET 10)
 * chooses each byte with the same small probability: an object of `size` is chosen with 1 - (1 - p)^size. A
 * process that has both is told by the latter, which switches the former off.
 */
#ifndef CLRPERF_ANALYSE_ALLOC_STATS_H
#define CLRPERF_ANALYSE_ALLOC_STATS_H

#include "analyse/event_tally.h"
#include "analyse/told_events.h"

enum alloc_source { ALLOC_SOURCE_NONE, ALLOC_SOURCE_TICKS, ALLOC_SOURCE_SAMPLED, ALLOC_SOURCE_MIXED };

enum { ALLOC_KINDS = 3 };

struct alloc_stats {
    struct event_stacks stacks;
    struct event_tally
        tally; /* texts are types, "" where they have no names; details "small", "large", "pinned" */
    enum alloc_source source; /* mixed: processes differ */
    uint64_t ticks, samples;  /* events that were there */
    double bytes_of_kind[ALLOC_KINDS];
    uint64_t malformed;
    bool is_full; /* there was no room for a text */
    bool any;
};

/* The events that it is made of. */
bool alloc_stats_wants(const char *provider, uint32_t event_id);

void alloc_stats_init(struct alloc_stats *stats, const struct trace *t, bool raw_names, uint64_t from_ns,
                      uint64_t to_ns);
void alloc_stats_done(struct alloc_stats *stats);

/* Between these the true number of bytes lies in 19 of 20 cases. */
void alloc_stats_bounds(const struct alloc_stats *stats, const struct event_sum *sum, double *out_low,
                        double *out_high);

/* About so much was allocated for this event to come: of those that alloc_stats_wants(); 0 of a malformed
 * one. */
double alloc_event_bytes(const struct trace *t, const struct trace_event *event);

const char *alloc_kind_name(unsigned kind); /* "small", "large", "pinned" */

#endif
