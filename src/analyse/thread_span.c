#include "analyse/thread_span.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/runtime_events.h"

/* The runtime tells what process it is when a recording ends: that counts as the last look at its thread. */
static void last_seen(const struct trace *t, uint64_t *ends_ns)
{
    for (size_t i = t->events.count; i-- > 1;) {
        const struct trace_event_type *type = &t->event_types.rows[t->events.rows[i].type];
        if (type->event_id == 1 && strcmp(trace_string(t, type->provider), RUNTIME_STREAM_PROVIDER) == 0)
            ends_ns[t->events.rows[i].thread] = t->events.rows[i].time_ns;
    }
}

uint64_t *thread_span_weights(const struct trace *t)
{
    const struct trace_samples *s = &t->samples;
    uint64_t *weights = mem_alloc(s->count, sizeof *weights);
    AUTO_FREE uint64_t *next_ns = mem_alloc(t->threads.count, sizeof *next_ns); /* 0: none */
    last_seen(t, next_ns);
    for (size_t i = s->count; i-- > 0;) {
        if (s->kind[i] != SAMPLE_WALL)
            continue;
        uint64_t next = next_ns[s->thread[i]],
                 until_ns = next || !s->runs ? next : s->time_ns[i] + s->runs[i].length_ns;
        weights[i] = until_ns > s->time_ns[i] ? until_ns - s->time_ns[i] : 0;
        next_ns[s->thread[i]] = s->time_ns[i];
    }
    return weights;
}
