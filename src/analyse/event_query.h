/*
 * event_query: the events of a trace that someone wants to see, in the order of their times.
 */
#ifndef CLRPERF_ANALYSE_EVENT_QUERY_H
#define CLRPERF_ANALYSE_EVENT_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/event_schemas.h"
#include "analyse/thread_filter.h"
#include "base/buffer.h"
#include "trace/trace.h"

enum event_relation { EVENT_IS, EVENT_IS_NOT, EVENT_LESS, EVENT_MORE, EVENT_AT_MOST, EVENT_AT_LEAST };

/*
 * A field that is there and holds that. Numbers are compared as numbers (also with 0x7f and 1.5); everything
 * else, names of enumerations too, as text, of which EVENT_IS may be a glob. Cases are ignored.
 */
struct event_condition {
    const char *field; /* as the event's schema has it; "Payload.Mean": in another */
    enum event_relation relation;
    const char *value;
};

/* All borrowed. NULL is any. Globs ignore cases. */
struct event_wish {
    const char *provider; /* glob */
    const char *event;    /* glob on its name, or its id */
    struct thread_filter who;
    const char *text;        /* part of the name or a field, cases ignored; "!text": of neither */
    uint64_t from_ns, to_ns; /* of the trace's clock; to_ns 0: to its end */
    const struct event_condition *conditions; /* all have to hold */
    size_t condition_count;
};

struct event_query {
    const struct trace *trace;
    struct event_wish wish;
    struct event_schemas schemas;
    uint32_t *order; /* of events, or NULL: as they are */
    size_t at;
    uint8_t *types, *processes, *threads; /* whether they are wanted: 0 not looked at yet, 1 yes, 2 no */
    int *fields; /* by type and condition: the field's index, -1 none, -2 inside one */
    struct buffer text;
};

/* `by_time` false: in any order, which needs no memory. */
void event_query_init(struct event_query *q, const struct trace *t, const struct event_wish *wish,
                      bool by_time);
void event_query_done(struct event_query *q);

/* The next event that is wanted; 0 at the end. */
uint32_t event_query_next(struct event_query *q);
/* Whether an event of the wish's provider and name has this field. */
bool event_query_has_field(struct event_query *q, const char *field);
/* What fields they have, each once, at most so many; names are the query's. Returns how many. */
size_t event_query_fields(struct event_query *q, const char **names, size_t most);
static inline const struct event_schema *event_query_schema(struct event_query *q, uint32_t event)
{
    return event_schemas_get(&q->schemas, q->trace->events.rows[event].type);
}

#endif
