/*
 * event_enum: names of numbers in the runtime's events, spelled as TraceEvent spells them.
 */
#ifndef CLRPERF_CLR_EVENT_ENUM_H
#define CLRPERF_CLR_EVENT_ENUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"

struct event_enum_value {
    uint32_t value;
    const char *name;
};

struct event_enum {
    const char *id; /* as the catalogue refers to it: "gc_reason" */
    bool flags;     /* bits, of which several may be set: "Jitted, Generic" */
    uint32_t other; /* of flags: bits that say something else, and are left out of the names */
    const struct event_enum_value *values;
    uint32_t count;
};

/* NULL: no such one. */
const struct event_enum *event_enum_find(struct span id);
/* The name of exactly this value, or NULL. */
const char *event_enum_name(const struct event_enum *e, uint64_t value);
/* False, and nothing appended, when the value (or a bit of it) has no name. */
bool event_enum_append(struct buffer *out, const struct event_enum *e, uint64_t value);

#endif
