/*
 * request_ends: when Kestrel says that the requests it numbers end.
 *
 * The hosting layer tells of the same requests by their activities, and on a connection with many of them
 * those are not unique (see span_table_begin_beside()). Its begin comes just before Kestrel's, on the same
 * thread and with the activity that Kestrel's is begun in.
 */
#ifndef CLRPERF_ANALYSE_REQUEST_ENDS_H
#define CLRPERF_ANALYSE_REQUEST_ENDS_H

#include <stddef.h>
#include <stdint.h>

#include "analyse/told_events.h"
#include "base/id_map.h"
#include "trace/trace.h"

struct request_end {
    uint64_t start_ns, stop_ns; /* stop: 0 not told */
    uint64_t number;            /* a hash of Kestrel's id */
    uint32_t process, thread;   /* that it began on */
    uint32_t event;             /* of its begin */
};

struct request_ends {
    struct request_end *rows; /* by thread and begin */
    size_t count, capacity;
};

/* Times are those of the trace, `to_ns` 0 is to its end. */
void request_ends_init(struct request_ends *ends, const struct trace *t, uint64_t from_ns, uint64_t to_ns);
void request_ends_done(struct request_ends *ends);
/* When the request ends that begins with this event of the hosting layer, or 0. */
uint64_t request_ends_of(const struct request_ends *ends, const struct trace *t, uint32_t event);

#endif
