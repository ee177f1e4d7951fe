#include "analyse/event_schemas.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void event_schemas_init(struct event_schemas *x, const struct trace *t)
{
    *x = (struct event_schemas){ .trace = t };
}

void event_schemas_done(struct event_schemas *x)
{
    for (size_t i = 0; i < x->capacity; i++)
        event_schema_free(x->rows[i]);
    free(x->rows);
    *x = (struct event_schemas){ 0 };
}

static struct event_schema *schema_of(const struct trace *t, const struct trace_event_type *type)
{
    return event_schema_new(&(struct event_description){
        .provider = trace_string(t, type->provider),
        .event_id = type->event_id,
        .version = type->version,
        .name = trace_string(t, type->name),
        .opcode = type->opcode,
        .fields = trace_string_span(t, type->fields),
        .params = trace_string_span(t, type->params),
        .pointer_size = type->pointer_size,
        .v6 = type->description == EVENT_DESCRIBED_V6,
    });
}

const struct event_schema *event_schemas_get(struct event_schemas *x, uint32_t type)
{
    if (type >= x->trace->event_types.count)
        type = 0;
    x->rows = mem_grow_zeroed(x->rows, &x->capacity, (size_t)type + 1, sizeof(struct event_schema *));
    if (!x->rows[type])
        x->rows[type] = schema_of(x->trace, &x->trace->event_types.rows[type]);
    return x->rows[type];
}

/* The runtime's own events have no names in traces. */
unsigned event_type_edge(const struct trace *t, uint32_t type)
{
    const struct trace_event_type *row = &t->event_types.rows[type];
    const char *name = trace_string(t, row->name);
    unsigned opcode = *name ? event_opcode_of(name, row->opcode) : EVENT_OPCODE_INFO;
    return opcode == EVENT_OPCODE_START || opcode == EVENT_OPCODE_STOP ? opcode : EVENT_OPCODE_INFO;
}
