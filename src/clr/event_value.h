/*
 * event_value: one value of an event's payload, of whatever type it is there.
 */
#ifndef CLRPERF_CLR_EVENT_VALUE_H
#define CLRPERF_CLR_EVENT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "clr/event_enum.h"

enum event_value_kind {
    EVENT_VALUE_NONE,
    EVENT_VALUE_BOOL,    /* u */
    EVENT_VALUE_INT,     /* i */
    EVENT_VALUE_UINT,    /* u */
    EVENT_VALUE_POINTER, /* u: an address, an id that is one, a token: shown in hex */
    EVENT_VALUE_FLOAT,   /* f */
    EVENT_VALUE_TEXT16,  /* bytes: UTF-16LE, without its NUL */
    EVENT_VALUE_TEXT8,   /* bytes: without its NUL */
    EVENT_VALUE_GUID,    /* bytes: 16, as .NET keeps them */
    EVENT_VALUE_BYTES,   /* bytes */
    EVENT_VALUE_TIME,    /* u: 100 ns since 1601, UTC */
    EVENT_VALUE_ARRAY,   /* u: how many, bytes: all of them */
    EVENT_VALUE_OBJECT,  /* bytes: all of it */
};

/* `bytes` borrow from the payload. */
struct event_value {
    enum event_value_kind kind;
    uint8_t size; /* of a number, in bytes; 0 otherwise */
    uint64_t u;   /* of an INT its two's complement, of a FLOAT 0 */
    int64_t i;    /* of an UINT, POINTER or BOOL the same as `u` */
    double f;     /* of a number or BOOL the same, rounded */
    struct span bytes;
    const struct event_enum *names; /* of numbers that have names, or NULL */
};

/* Text of a TEXT16 or TEXT8 as UTF-8, zero units of UTF-16 as U+FFFD; nothing of other kinds. */
void event_value_append_text(struct buffer *out, const struct event_value *v);
/* The same with zeros as they are: a `char` may be one. */
void event_value_append_whole(struct buffer *out, const struct event_value *v);
/*
 * What a person reads: text as it is, but "\x00" for a zero in it, names of enumerations, 0x7f00 of a
 * pointer, a GUID in its usual spelling, an UTC time, "[3 items]" of an array, "{24 bytes}" of an object or
 * bytes.
 */
void event_value_append(struct buffer *out, const struct event_value *v);
/* Whether it is a number, with `f` and `i` or `u` to be compared. */
bool event_value_is_number(const struct event_value *v);

#endif
