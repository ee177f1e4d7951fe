/*
 * exception_stats: which exceptions were thrown, where, and how often.
 *
 * An exception object counts once: throwing it again is counted apart, by `throw;`, which only .NET up to 8
 * tells, and by each await of a task that failed. The runtime's own frames of dispatch are cut: the leaf of a
 * stack is who threw.
 */
#ifndef CLRPERF_ANALYSE_EXCEPTION_STATS_H
#define CLRPERF_ANALYSE_EXCEPTION_STATS_H

#include "analyse/event_tally.h"
#include "analyse/told_events.h"

struct exception_stats {
    struct event_stacks stacks;
    struct event_tally tally;  /* texts are types; details messages */
    uint64_t rethrown, nested; /* nested: thrown while another one was handled */
    uint64_t malformed;
    bool is_full; /* there was no room for a text */
    bool any;
};

/* The events that it is made of. */
bool exception_stats_wants(const char *provider, uint32_t event_id);

void exception_stats_init(struct exception_stats *stats, const struct trace *t, bool raw_names,
                          uint64_t from_ns, uint64_t to_ns);
void exception_stats_done(struct exception_stats *stats);

#endif
