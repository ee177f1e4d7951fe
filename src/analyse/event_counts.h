/*
 * event_counts: how many events of each kind there are.
 */
#ifndef CLRPERF_ANALYSE_EVENT_COUNTS_H
#define CLRPERF_ANALYSE_EVENT_COUNTS_H

#include "analyse/event_query.h"

enum { EVENT_COUNTS_SLICES = 100 };

/* Of one provider, name, id and version; several types of the trace may be that. */
struct event_count {
    const char *provider; /* the trace's */
    const char *event;    /* the query's */
    uint32_t id, version;
    uint64_t count;
    uint64_t with_stack;
    uint64_t payload_bytes;
    uint32_t when[EVENT_COUNTS_SLICES]; /* how many in each slice of the time */
};

/*
 * Counts what is left of the query, whose time is from `from_ns` for `duration_ns` (0: it has no slices), and
 * what was counted when the trace was made. Rows by provider, event, id and version; the caller frees them.
 */
size_t event_counts_take(struct event_query *q, uint64_t from_ns, uint64_t duration_ns,
                         struct event_count **out_rows);

#endif
