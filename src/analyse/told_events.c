#include "analyse/told_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

static int told_compare(const void *a, const void *b)
{
    const struct told_event *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

bool told_ids_have(const uint16_t *ids, uint32_t id)
{
    for (; *ids; ids++)
        if (*ids == id)
            return true;
    return false;
}

static bool is_chosen(const struct trace *t, const struct trace_event_type *type,
                      const struct told_choice *choice)
{
    if (strcmp(trace_string(t, type->provider), choice->provider) != 0)
        return false;
    return told_ids_have(choice->ids, type->event_id);
}

void told_events_init(struct told_events *told, const struct trace *t, const struct told_choice *choice)
{
    *told = (struct told_events){ .trace = t };
    event_schemas_init(&told->schemas, t);
    AUTO_FREE bool *chosen = mem_alloc(t->event_types.count + 1, sizeof *chosen);
    size_t capacity = 0;
    bool in_order = true; /* as what one thread tells is, and most of what several do */
    for (size_t i = 1; i < t->event_types.count; i++)
        chosen[i] = is_chosen(t, &t->event_types.rows[i], choice);
    for (uint32_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        if (!chosen[row->type] || row->time_ns < choice->from_ns ||
            (choice->to_ns && row->time_ns >= choice->to_ns))
            continue;
        told->rows = mem_grow(told->rows, &capacity, told->count + 1, sizeof *told->rows);
        told->rows[told->count++] =
            (struct told_event){ row->time_ns, row->process, i, t->event_types.rows[row->type].event_id };
        if (told->count > 1 && told_compare(&told->rows[told->count - 2], &told->rows[told->count - 1]) > 0)
            in_order = false;
    }
    if (!in_order)
        qsort(told->rows, told->count, sizeof *told->rows, told_compare);
}

void told_events_done(struct told_events *told)
{
    event_schemas_done(&told->schemas);
    free(told->rows);
}

size_t told_events_process(const struct told_events *told, size_t *at, const struct told_event **out_rows)
{
    size_t from = *at, to = from;
    while (to < told->count && told->rows[to].process == told->rows[from].process)
        to++;
    *out_rows = told->rows + from;
    *at = to;
    return to - from;
}

struct span told_payload(const struct told_events *told, const struct told_event *e)
{
    return trace_event_payload(told->trace, told_row(told, e));
}

uint32_t told_pointer_size(const struct told_events *told, const struct told_event *e)
{
    return trace_event_pointer_size(told->trace, told_row(told, e));
}

bool told_field(struct told_events *told, const struct told_event *e, const char *name,
                struct event_value *out)
{
    const struct event_schema *schema = event_schemas_get(&told->schemas, told_row(told, e)->type);
    return event_schema_read(schema, told_payload(told, e), event_schema_field(schema, name), out);
}

uint64_t told_number(struct told_events *told, const struct told_event *e, const char *name,
                     uint64_t fallback)
{
    struct event_value value;
    return told_field(told, e, name, &value) && event_value_is_number(&value) ? value.u : fallback;
}

bool told_was_asked(const struct trace *t, const char *provider, uint64_t keywords, uint8_t level)
{
    for (size_t i = 1; i < t->subscriptions.count; i++) {
        const struct trace_subscription *row = &t->subscriptions.rows[i];
        if ((!keywords || row->keywords & keywords) && row->level >= level &&
            strcmp(trace_string(t, row->provider), provider) == 0)
            return true;
    }
    return false;
}
