#include "analyse/event_schemas.h"

#include <stdlib.h>

#include "base/mem.h"

void event_schemas_init(struct event_schemas *x, const struct trace *t)
{
    x->trace = t;
    x->count = t->event_types.count;
    x->rows = mem_alloc(x->count, sizeof(struct event_schema *));
}

void event_schemas_done(struct event_schemas *x)
{
    for (size_t i = 0; i < x->count; i++)
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
    if (type >= x->count)
        type = 0;
    if (!x->rows[type])
        x->rows[type] = schema_of(x->trace, &x->trace->event_types.rows[type]);
    return x->rows[type];
}
