/*
 * http_spans: requests a program served (ASP.NET Core) and sent (HttpClient), from their event sources.
 *
 * Begin and end are matched by the activity the events belong to, else by their thread, or for Kestrel by the
 * request's id. Kestrel's own events count where those of the hosting layer are missing, and tell requests
 * apart that have the same activity.
 */
#ifndef CLRPERF_ANALYSE_HTTP_SPANS_H
#define CLRPERF_ANALYSE_HTTP_SPANS_H

#include "analyse/span_table.h"

/*
 * Kinds are "server" and "client", names "GET /path" and "scheme://host:port/path", without the query; groups
 * are names with the pattern of the path.
 */
struct http_spans {
    struct span_table table;
    uint64_t malformed;
    uint64_t by_thread; /* began without an activity: an end on the same thread may be another one's */
    bool any;
};

/* The events that it is made of, and those of collections. */
bool http_spans_wants(const char *provider, uint32_t event_id);
/* `own_groups`: each name is a group. */
void http_spans_init(struct http_spans *spans, const struct trace *t, bool own_groups, uint64_t from_ns,
                     uint64_t to_ns);
void http_spans_done(struct http_spans *spans);
/* Whether some process was asked for them. */
bool http_spans_asked(const struct trace *t);

#endif
