/*
 * event_field: what lies where in an event's payload, as a tree of fields in one array.
 *
 * Filled from the catalogue (clr/event_layout.h) or from an event's own description
 * (clr/event_description.h); read by clr/event_schema.c.
 */
#ifndef CLRPERF_CLR_EVENT_FIELD_H
#define CLRPERF_CLR_EVENT_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "clr/event_enum.h"

enum {
    EVENT_FIELDS_MAX = 4096,    /* of one event, members of objects counted */
    EVENT_FIELD_DEPTH_MAX = 16, /* objects and arrays in each other */
    EVENT_FIELD_SLOTS = 4,      /* numbers that lengths of later fields of the same object refer to */
};

enum event_field_type {
    FIELD_NONE,
    FIELD_BOOL, /* of 1 or 4 bytes */
    FIELD_INT,
    FIELD_UINT,
    FIELD_POINTER, /* an unsigned number shown in hex */
    FIELD_FLOAT,
    FIELD_CHAR,
    FIELD_GUID,
    FIELD_TIME,
    FIELD_PAD,  /* bytes that mean nothing */
    FIELD_TIER, /* no bytes of its own: part of the method's flags */
    /* from here on of a length that the payload says */
    FIELD_TEXT16,
    FIELD_TEXT8,
    FIELD_COUNTED_TEXT8, /* UTF-8 behind its length, u16 */
    FIELD_VARINT,
    FIELD_VARUINT,
    FIELD_BYTES, /* as many as a number before says; an object where the text before is `when` */
    FIELD_OBJECT,
    FIELD_ARRAY,
    FIELD_PART, /* 4 bytes: where in the payload it lies, and how long it is */
};

/* How many items an array has. */
enum event_field_count {
    COUNT_SLOT,   /* as the field with that slot said */
    COUNT_PREFIX, /* u16 in front of them */
    COUNT_FIXED,  /* `count` */
};

struct event_field {
    const char *name;
    const struct event_enum *names; /* or NULL */
    const char *when;               /* or NULL */
    uint8_t type;                   /* enum event_field_type */
    uint8_t size;                   /* bytes of a number */
    uint8_t counted;                /* enum event_field_count */
    uint8_t slot;                   /* of what it is counted by */
    uint8_t keeps;                  /* 1 + the slot that its value is kept in, or 0 */
    bool from_end;                  /* PART: the place is counted from the end of this field, else from the
                                       payload's start */
    uint16_t count;                 /* COUNT_FIXED */
    int32_t offset;          /* in the payload, of a field of the event itself; -1: depends on others */
    uint32_t first, members; /* of an object: its fields; of an array or a PART: `first` is the item */
};

/* `rows` of one object's members lie next to each other. */
struct event_fields {
    struct event_field *rows; /* owned */
    size_t count, capacity;
    uint32_t root, root_count; /* the event's own fields */
    struct arena names;
};

void event_fields_init(struct event_fields *f);
void event_fields_done(struct event_fields *f);
/* Room for `count` rows next to each other, zeroed: the first's index, or UINT32_MAX when they are too many.
 */
uint32_t event_fields_add(struct event_fields *f, size_t count);

#endif
