/*
 * trace_requests: HTTP requests between the events that begin and end them.
 *
 * Both carry the activity of the request: served ones from Microsoft.AspNetCore.Hosting, sent ones from
 * System.Net.Http.
 */
#ifndef CLRPERF_CLI_TRACE_REQUESTS_H
#define CLRPERF_CLI_TRACE_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TRACE_REQUESTS_OPEN_MAX = 4096, TRACE_REQUEST_TEXT_MAX = 256 };

struct trace_request {
    uint8_t activity[16];
    uint64_t from_ns;
    bool sent;
    char text[TRACE_REQUEST_TEXT_MAX]; /* "GET /orders" */
};

struct trace_requests {
    struct trace_request *open; /* of too many the oldest is given up */
    size_t count, capacity;
    uint64_t ended, total_ns, longest_ns, unmatched;
};

void trace_requests_done(struct trace_requests *requests);
void trace_requests_begin(struct trace_requests *requests, const struct trace_request *request);
/* The request of this activity ends: false when its begin was not seen. */
bool trace_requests_end(struct trace_requests *requests, const uint8_t activity[16], bool sent,
                        uint64_t time_ns, struct trace_request *out);

#endif
