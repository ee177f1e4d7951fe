/*
 * trace_view: what `clrperf trace` prints of a runtime's events: a line as each comes, and sums at the end.
 * With a JSON writer every event as it is, and no sums.
 */
#ifndef CLRPERF_CLI_TRACE_VIEW_H
#define CLRPERF_CLI_TRACE_VIEW_H

#include "analyse/event_schemas.h"
#include "analyse/name_tally.h"
#include "base/json_writer.h"
#include "cli/trace_requests.h"
#include "trace/builder.h"

enum trace_topic { TRACE_GC, TRACE_HEAP, TRACE_ALLOC, TRACE_EXCEPTIONS, TRACE_HTTP, TRACE_TOPICS };

enum { TRACE_PRINTED_GCS = 1024 };

/* Sums over everything that was seen. */
struct trace_sums {
    uint64_t collections[3], pauses, paused_ns, longest_ns;
};

struct trace_view {
    struct trace_builder b; /* the events that are still needed */
    struct event_schemas schemas;
    bool topics[TRACE_TOPICS];
    uint64_t start_ns, interval_ns, interval_from_ns;
    struct name_tally allocated, interval_allocated, thrown;
    struct trace_requests requests;
    struct trace_sums sums;
    uint32_t printed[TRACE_PRINTED_GCS]; /* numbers of collections, 0: none */
    size_t printed_at;
    struct buffer *out;
    struct json_writer *json; /* or NULL: events as JSON lines, as they are, and nothing else */
    struct buffer scratch;
};

/* Lines are appended to `out`. Events go into view->b.trace; the caller ends it. */
void trace_view_init(struct trace_view *view, const bool topics[TRACE_TOPICS], uint64_t interval_ns,
                     struct buffer *out);
void trace_view_done(struct trace_view *view);
/* Takes the event that was added to the trace last; older ones than that are not wanted any more. */
void trace_view_event(struct trace_view *view);
/* It is that late: prints what is due from time to time. */
void trace_view_tick(struct trace_view *view, uint64_t now_ns);
/* What it was in all. `lost`: events the runtime dropped, at least. */
void trace_view_summary(const struct trace_view *view, uint64_t now_ns, uint64_t lost);

#endif
