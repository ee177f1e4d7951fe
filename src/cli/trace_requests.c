#include "cli/trace_requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void trace_requests_done(struct trace_requests *requests)
{
    free(requests->open);
    *requests = (struct trace_requests){ 0 };
}

static void forget(struct trace_requests *requests, size_t i)
{
    memmove(requests->open + i, requests->open + i + 1, (--requests->count - i) * sizeof *requests->open);
}

void trace_requests_begin(struct trace_requests *requests, const struct trace_request *request)
{
    if (requests->count == TRACE_REQUESTS_OPEN_MAX)
        forget(requests, 0);
    requests->open =
        mem_grow(requests->open, &requests->capacity, requests->count + 1, sizeof *requests->open);
    requests->open[requests->count++] = *request;
}

bool trace_requests_end(struct trace_requests *requests, const uint8_t activity[16], bool sent,
                        uint64_t time_ns, struct trace_request *out)
{
    size_t i = requests->count;
    while (i > 0 && (requests->open[i - 1].sent != sent ||
                     memcmp(requests->open[i - 1].activity, activity, sizeof out->activity) != 0))
        i--;
    if (i == 0) {
        requests->unmatched++;
        return false;
    }
    *out = requests->open[i - 1];
    forget(requests, i - 1);
    uint64_t took_ns = time_ns > out->from_ns ? time_ns - out->from_ns : 0;
    requests->ended++;
    requests->total_ns += took_ns;
    if (took_ns > requests->longest_ns)
        requests->longest_ns = took_ns;
    return true;
}
