/*
 * event_schema: what the fields of an event are called, where they lie in its payload, and what they hold.
 *
 * Of the runtime's own providers the catalogue knows the layout (clr/event_catalogue.h); of all others the
 * description that came with them (clr/event_description.h). A payload may be longer than its description
 * knows, as providers append fields, and it may be shorter: what is cut off is not there.
 */
#ifndef CLRPERF_CLR_EVENT_SCHEMA_H
#define CLRPERF_CLR_EVENT_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/event_description.h"
#include "clr/event_value.h"

struct event_schema; /* immutable: any thread may read with it */

/* Never NULL: an event that nobody describes has no fields. Free with event_schema_free(). */
struct event_schema *event_schema_new(const struct event_description *d);
void event_schema_free(struct event_schema *s);

/* What an event is to an activity; opcodes as event sources have them. */
enum event_opcode { EVENT_OPCODE_INFO, EVENT_OPCODE_START, EVENT_OPCODE_STOP };
/* The opcode of an event, which its name tells where the event does not: "RequestStart". */
unsigned event_opcode_of(const char *name, unsigned opcode);

/* "GC/Start", "Request/Stop", "EventCounters": task and opcode, as TraceEvent prints them; "EventID(7)" of
 * one without a name. Owned by `s`, as all names are. */
const char *event_schema_name(const struct event_schema *s);
/* Top-level fields, in payload order. */
uint32_t event_schema_fields(const struct event_schema *s);
/* The field of this name, or -1. Names are as TraceEvent's PayloadNames. */
int event_schema_field(const struct event_schema *s, const char *name);
/* Whether it has that field, or those in each other: "Payload.Mean" (see clr/event_path.h). Which keys are in
 * an array of pairs only a payload tells: any may be. */
bool event_schema_has_path(const struct event_schema *s, const char *path);
/* The name of a field, by its index; NULL of what has none. */
const char *event_schema_field_name(const struct event_schema *s, uint32_t index);

/* One top-level field. False, and *out untouched, when there is none or the payload ends before its end. */
bool event_schema_read(const struct event_schema *s, struct span payload, int index, struct event_value *out);
/* The same of a number: `fallback` when it cannot be read or is none. */
uint64_t event_schema_u64(const struct event_schema *s, struct span payload, int index, uint64_t fallback);

/* Called in payload order. `name` is "" of an array's items. Callbacks may be NULL. */
struct event_visitor {
    void *user;
    void (*value)(void *user, const char *name, const struct event_value *v);
    /* Around what is in an object (or, with `array`, in an array), which value() is not called for. */
    void (*begin)(void *user, const char *name, bool array);
    void (*end)(void *user, bool array);
};

/* All fields. False when the payload ended before them: those before were visited. */
bool event_schema_visit(const struct event_schema *s, struct span payload,
                        const struct event_visitor *visitor);
#endif
