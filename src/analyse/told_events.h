/*
 * told_events: the events of one provider that an analysis reads, by process and time.
 *
 * A trace holds events in order per thread only; what is told here by several threads of one process comes in
 * the order it happened.
 */
#ifndef CLRPERF_ANALYSE_TOLD_EVENTS_H
#define CLRPERF_ANALYSE_TOLD_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/event_schemas.h"
#include "trace/trace.h"

struct told_event {
    uint64_t time_ns;
    uint32_t process;
    uint32_t event; /* of the trace */
    uint32_t id;    /* of the provider's events */
};

struct told_events {
    const struct trace *trace; /* borrowed */
    struct event_schemas schemas;
    struct told_event *rows;
    size_t count;
};

/* Which of them: `ids` end with 0; times are those of the trace, `to_ns` 0 is to its end. */
struct told_choice {
    const char *provider;
    const uint16_t *ids;
    uint64_t from_ns, to_ns;
};

/* Whether a list of ids holds one. */
bool told_ids_have(const uint16_t *ids, uint32_t id);

void told_events_init(struct told_events *told, const struct trace *t, const struct told_choice *choice);
void told_events_done(struct told_events *told);

/* The next process's rows behind `*at`, which is 0 at first. Their number; 0 at the end. */
size_t told_events_process(const struct told_events *told, size_t *at, const struct told_event **out_rows);

/* The event's row, type and payload. */
static inline const struct trace_event *told_row(const struct told_events *told, const struct told_event *e)
{
    return &told->trace->events.rows[e->event];
}
struct span told_payload(const struct told_events *told, const struct told_event *e);
/* Bytes of an address in the event's payload: 4 or 8. */
uint32_t told_pointer_size(const struct told_events *told, const struct told_event *e);

/* A field by its name in the schema (clr/event_schema.h). False when the payload does not have it. */
bool told_field(struct told_events *told, const struct told_event *e, const char *name,
                struct event_value *out);
/* The same of numbers: `fallback` when it is not there. */
uint64_t told_number(struct told_events *told, const struct told_event *e, const char *name,
                     uint64_t fallback);

/*
 * Whether some process was asked for such events: those that are not there then did not happen. `keywords`:
 * some of them; 0: the provider counts, as most event sources have none.
 */
bool told_was_asked(const struct trace *t, const char *provider, uint64_t keywords, uint8_t level);

#endif
