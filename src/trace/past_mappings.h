/*
 * past_mappings: what was mapped in a process until lately.
 *
 * The kernel tells of mappings at once, a runtime of its events later: what waited for it is looked up among
 * the mappings of its own time.
 */
#ifndef CLRPERF_TRACE_PAST_MAPPINGS_H
#define CLRPERF_TRACE_PAST_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

#include "trace/address_space.h"

struct past_mapping {
    uint64_t start, end, until_ns;
    uint32_t mapping;
};

/* The last PAST_MAPPINGS_MAX that were replaced, in that order. All zero: none. */
struct past_mappings {
    struct past_mapping *rows; /* owned */
    size_t count, capacity;
    uint64_t changed_ns; /* the last time that one was replaced; 0: never */
};

enum { PAST_MAPPINGS_MAX = 1024 };

void past_mappings_done(struct past_mappings *past);
/* Keeps what lies in [start, end), of other mappings than `next`: it is about to be replaced at `until_ns`.
 */
void past_mappings_keep(struct past_mappings *past, const struct address_space *space, uint64_t start,
                        uint64_t end, uint32_t next, uint64_t until_ns);
/* What was at an address before it was replaced after `time_ns`, or 0: the same as now. */
uint32_t past_mappings_at(const struct past_mappings *past, uint64_t addr, uint64_t time_ns);

#endif
