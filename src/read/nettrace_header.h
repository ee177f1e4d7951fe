/*
 * nettrace_header: the head of a compressed record, which says what changed since the record before.
 *
 * Inline, as a trace has millions of them. The caller sees to it that NETTRACE_HEADER_ROOM bytes can be read,
 * so that no byte needs a check of its own.
 */
#ifndef CLRPERF_READ_NETTRACE_HEADER_H
#define CLRPERF_READ_NETTRACE_HEADER_H

#include <string.h>

#include "base/cursor.h"

enum { /* its first byte */
       NETTRACE_HAS_TYPE = 0x01,
       NETTRACE_HAS_SEQUENCE = 0x02,
       NETTRACE_HAS_THREAD = 0x04,
       NETTRACE_HAS_STACK = 0x08,
       NETTRACE_HAS_ACTIVITY = 0x10, /* version 6: labels */
       NETTRACE_HAS_RELATED_ACTIVITY = 0x20,
       NETTRACE_IS_SORTED = 0x40,
       NETTRACE_HAS_PAYLOAD_SIZE = 0x80,
};

enum {
    NETTRACE_ACTIVITY_BYTES = 16,
    NETTRACE_SHORT_IDS = 128, /* that are told in one byte */
    /* of the longest: flags, six 32-bit and three 64-bit numbers, two activities */
    NETTRACE_HEADER_ROOM = 1 + 6 * 5 + 3 * 10 + 2 * NETTRACE_ACTIVITY_BYTES,
};

struct nettrace_number {
    uint64_t value;
    const uint8_t *after; /* NULL: it has more than `bytes_max` bytes, or its last one is above `last_max` */
};

/* A LEB128 number. */
struct nettrace_number nettrace_take_long(const uint8_t *at, unsigned bytes_max, uint8_t last_max);

/* The same. Most have up to three bytes: numbers of threads do. */
static inline __attribute__((always_inline)) struct nettrace_number
nettrace_take_varuint(const uint8_t *at, unsigned bytes_max, uint8_t last_max)
{
    if (__builtin_expect(at[0] < 0x80, true))
        return (struct nettrace_number){ at[0], at + 1 };
    if (at[1] < 0x80)
        return (struct nettrace_number){ (at[0] & 0x7fu) | (uint32_t)at[1] << 7, at + 2 };
    if (at[2] < 0x80)
        return (struct nettrace_number){ (at[0] & 0x7fu) | (at[1] & 0x7fu) << 7 | (uint32_t)at[2] << 14,
                                         at + 3 };
    return nettrace_take_long(at, bytes_max, last_max);
}

static inline __attribute__((always_inline)) struct nettrace_number nettrace_take_varuint32(const uint8_t *at)
{
    return nettrace_take_varuint(at, 5, 0x0f);
}

static inline __attribute__((always_inline)) struct nettrace_number nettrace_take_varuint64(const uint8_t *at)
{
    return nettrace_take_varuint(at, 10, 0x01);
}

/* An activity id of zeros is none. */
static inline struct span nettrace_activity(struct span id)
{
    static const uint8_t none[NETTRACE_ACTIVITY_BYTES];
    return id.size && memcmp(id.data, none, sizeof none) != 0 ? id : (struct span){ 0 };
}

#endif
