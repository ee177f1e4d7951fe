/*
 * event_counts: how many events of each kind there are.
 */
#ifndef CLRPERF_ANALYSE_EVENT_COUNTS_H
#define CLRPERF_ANALYSE_EVENT_COUNTS_H

#include "analyse/event_query.h"

/* Of one provider, name, id and version; several types of the trace may be that. */
struct event_count {
    const char *provider; /* the trace's */
    const char *event;    /* the query's */
    uint32_t id, version;
    uint64_t count;
    uint64_t with_stack;
    uint64_t payload_bytes;
};

/* Counts what is left of the query, and what was counted when the trace was made. Rows by provider, event, id
 * and version; the caller frees them. */
size_t event_counts_take(struct event_query *q, struct event_count **out_rows);

#endif
