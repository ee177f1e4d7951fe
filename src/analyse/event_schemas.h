/*
 * event_schemas: the schema of each type of event in a trace, made when it is first asked for.
 */
#ifndef CLRPERF_ANALYSE_EVENT_SCHEMAS_H
#define CLRPERF_ANALYSE_EVENT_SCHEMAS_H

#include "clr/event_schema.h"
#include "trace/trace.h"

struct event_schemas {
    const struct trace *trace;
    struct event_schema **rows; /* by type; NULL: not asked for yet */
    size_t capacity;
};

/* EVENT_OPCODE_START or _STOP of what an event source begins or ends; EVENT_OPCODE_INFO of all others. */
unsigned event_type_edge(const struct trace *t, uint32_t type);

/* The trace must live as long; types may be added to it. */
void event_schemas_init(struct event_schemas *x, const struct trace *t);
void event_schemas_done(struct event_schemas *x);
/* Of a type's id. Never NULL; an id that does not exist has the schema of an unknown event. Owned by `x`. */
const struct event_schema *event_schemas_get(struct event_schemas *x, uint32_t type);

#endif
