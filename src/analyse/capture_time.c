#include "analyse/capture_time.h"

#include <string.h>

#include "trace/facts.h"

struct capture_time capture_time_of(const struct trace *t)
{
    struct capture_time time = { 0 };
    trace_fact_number(t, FACT_STARTED_MONOTONIC_NS, &time.start_ns);
    trace_fact_number(t, FACT_DURATION_NS, &time.duration_ns);
    trace_fact_number(t, FACT_STARTED_REALTIME_NS, &time.realtime_ns);
    uint64_t first = UINT64_MAX, last = 0;
    if (time.start_ns && time.duration_ns)
        return time;
    for (size_t i = 1; i < t->events.count; i++) {
        uint64_t at = t->events.rows[i].time_ns;
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    for (size_t i = 0; i < t->samples.count; i++) {
        uint64_t at = t->samples.time_ns[i];
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    if (!time.start_ns && first != UINT64_MAX)
        time.start_ns = first;
    if (!time.duration_ns && last > time.start_ns)
        time.duration_ns = last - time.start_ns;
    return time;
}

double capture_time_s(const struct capture_time *time, uint64_t time_ns)
{
    return (double)(int64_t)(time_ns - time->start_ns) / 1e9;
}

uint64_t capture_time_asked_ns(const struct capture_time *time, const struct trace *t, uint32_t process,
                               const char *provider, uint64_t keywords)
{
    uint64_t end = time->start_ns + time->duration_ns, from = UINT64_MAX, to = 0;
    for (size_t i = 1; i < t->subscriptions.count; i++) {
        const struct trace_subscription *row = &t->subscriptions.rows[i];
        if (row->process != process || !(row->keywords & keywords) ||
            strcmp(trace_string(t, row->provider), provider) != 0)
            continue;
        uint64_t row_to = row->to_ns && row->to_ns < end ? row->to_ns : end;
        uint64_t row_from = row->from_ns > time->start_ns ? row->from_ns : time->start_ns;
        from = row_from < from ? row_from : from;
        to = row_to > to ? row_to : to;
    }
    return to > from ? to - from : time->duration_ns;
}
