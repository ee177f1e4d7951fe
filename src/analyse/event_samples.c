#include "analyse/event_samples.h"

#include <string.h>

#include "analyse/capture_time.h"
#include "analyse/event_schemas.h"
#include "trace/facts.h"

/* What a runtime told before the recording began is in none of its answers. */
static bool is_sample(const struct trace_event *row, uint64_t start_ns)
{
    return row->stack >= STACK_ROOTS && row->thread && row->time_ns >= start_ns;
}

/* By time: the type of the first event of that name that is a sample; 0: none is. */
static uint32_t first_type(const struct trace *t, struct event_schemas *schemas, const char *name,
                           uint64_t start_ns)
{
    const struct trace_event *first = NULL;
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        if (is_sample(row, start_ns) && (!first || row->time_ns < first->time_ns) &&
            (!name || strcmp(event_schema_name(event_schemas_get(schemas, row->type)), name) == 0))
            first = row;
    }
    return first ? first->type : 0;
}

/* Versions of an event are the same event. */
static bool same_event(const struct trace_event_type *a, const struct trace_event_type *b)
{
    return a->provider == b->provider && a->event_id == b->event_id && a->name == b->name;
}

static void add_type(struct trace *t, uint32_t type, uint64_t start_ns)
{
    const struct trace_event_type *wanted = &t->event_types.rows[type];
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        if (is_sample(row, start_ns) && same_event(&t->event_types.rows[row->type], wanted))
            trace_push_sample(&t->samples, row->time_ns, row->thread, row->stack, 1, SAMPLE_EVENT, 0);
    }
}

bool event_samples_add(struct trace *t, const char *name)
{
    uint64_t start_ns = capture_time_of(t).start_ns;
    struct event_schemas schemas;
    if (t->samples.count)
        return false;
    event_schemas_init(&schemas, t);
    uint32_t type = first_type(t, &schemas, name, start_ns);
    if (type) {
        add_type(t, type, start_ns);
        trace_set_fact(t, FACT_COUNTED_EVENT, event_schema_name(event_schemas_get(&schemas, type)));
    }
    event_schemas_done(&schemas);
    return type != 0;
}
