#include "analyse/sample_events.h"

#include <string.h>

#include "base/cursor.h"
#include "trace/facts.h"

#define PROVIDER "Linux"

/* One field: UInt32 CPU. */
static const uint8_t fields[] = { 1, 0, 0, 0, 10, 0, 0, 0, 'C', 0, 'P', 0, 'U', 0, 0, 0 };

static uint32_t add_type(struct trace *t, const char *name)
{
    struct trace_event_type type = {
        .provider = trace_add_string(t, PROVIDER),
        .name = trace_add_string(t, name),
        .fields = trace_add_span(t, span_of(fields, sizeof fields)),
        .params = trace_add_string(t, ""),
        .description = EVENT_DESCRIBED_V5,
    };
    uint32_t id = trace_push(&t->event_types);
    t->event_types.rows[id] = type;
    return id;
}

/* NULL: samples of this kind are not made events. */
static const char *name_of(const struct trace *t, enum sample_kind kind)
{
    if (kind == SAMPLE_CPU)
        return "cpu";
    return kind == SAMPLE_EVENT ? trace_fact_value(t, FACT_COUNTED_EVENT) : NULL;
}

static bool add_event(struct trace *t, size_t sample, uint32_t type)
{
    const struct trace_samples *s = &t->samples;
    uint16_t cpu = s->cpu[sample];
    uint8_t payload[4] = { (uint8_t)cpu, (uint8_t)(cpu >> 8) };
    struct trace_event event = {
        .time_ns = s->time_ns[sample],
        .type = type,
        .process = t->threads.rows[s->thread[sample]].process,
        .thread = s->thread[sample],
        .stack = s->stack[sample],
    };
    return trace_push_event(t, &event, span_of(payload, sizeof payload));
}

bool sample_events_add(struct trace *t)
{
    uint32_t types[SAMPLE_KINDS] = { 0 };
    bool all = true;
    for (size_t i = 0; i < t->samples.count && all; i++) {
        enum sample_kind kind = (enum sample_kind)t->samples.kind[i];
        const char *name = name_of(t, kind);
        if (name && !types[kind])
            types[kind] = add_type(t, name);
        all = !name || add_event(t, i, types[kind]);
    }
    return all;
}

bool sample_events_has(const struct trace *t, const struct trace_event *event)
{
    return strcmp(trace_string(t, t->event_types.rows[event->type].provider), PROVIDER) == 0;
}
