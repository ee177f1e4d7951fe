/*
 * cursor: bounded reading of bytes from strangers.
 *
 * A cursor borrows a span. Every read is checked; once one fails all later ones give zero, so a
 * reader is straight-line code that asks once, with cursor_finish() or cursor_ok().
 * All integers are little-endian.
 */
#ifndef CLRPERF_BASE_CURSOR_H
#define CLRPERF_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct span {
    const uint8_t *data;
    size_t size;
};

struct cursor {
    struct span bytes; /* borrowed */
    size_t pos;        /* <= bytes.size */
    bool failed;
};

static inline struct cursor cursor_over(struct span bytes)
{
    return (struct cursor){ .bytes = bytes };
}

static inline bool cursor_ok(const struct cursor *c)
{
    return !c->failed;
}

static inline size_t cursor_left(const struct cursor *c)
{
    return c->failed ? 0 : c->bytes.size - c->pos;
}

/* The next `count` bytes; an empty span (and failure) when there are fewer. */
static inline struct span cursor_bytes(struct cursor *c, uint64_t count)
{
    if (count > c->bytes.size - c->pos) /* never pos + count: that can wrap */
        c->failed = true;
    if (c->failed || count == 0)
        return (struct span){ 0 };
    struct span taken = { c->bytes.data + c->pos, (size_t)count };
    c->pos += taken.size;
    return taken;
}
void cursor_skip(struct cursor *c, uint64_t count);
/* Moves to an absolute offset within the span. */
void cursor_seek(struct cursor *c, uint64_t offset);
/* Moves forward so that the position is a multiple of `alignment`, a power of two. */
void cursor_align(struct cursor *c, size_t alignment);

static inline uint8_t cursor_u8(struct cursor *c)
{
    if (c->failed || c->pos == c->bytes.size) {
        c->failed = true;
        return 0;
    }
    return c->bytes.data[c->pos++];
}
uint16_t cursor_u16le(struct cursor *c);
uint32_t cursor_u32le(struct cursor *c);
uint64_t cursor_u64le(struct cursor *c);
/* LEB128: at most 5 and 10 bytes; a longer or wider one fails. */
uint32_t cursor_varuint32(struct cursor *c);
uint64_t cursor_varuint64(struct cursor *c);
/* Signed LEB128, as DWARF has it: at most 10 bytes. */
int64_t cursor_sleb64(struct cursor *c);
/* Zigzag-coded LEB128, as buffer_zigzag64() writes it. */
int64_t cursor_zigzag64(struct cursor *c);
/* Bytes up to a NUL, which is passed but not counted; fails when there is none. */
struct span cursor_zstring(struct cursor *c);

/* False, with ERROR_INPUT naming `what`, when a read ran past the end. Bytes left over are fine. */
bool cursor_finish(const struct cursor *c, struct error *err, const char *what);

/* A part of a span; empty when it does not lie inside. */
struct span span_part(struct span whole, uint64_t offset, uint64_t size);
bool span_equals(struct span a, struct span b);
/* Whether a text begins, or ends, with that. */
bool span_begins(struct span text, const char *with);
bool span_ends(struct span text, const char *with);
static inline struct span span_of(const void *data, size_t size)
{
    return (struct span){ (const uint8_t *)data, size };
}

/* Unchecked loads, for offsets that were checked already. One instruction each, once compiled. */
static inline uint16_t load_u16le(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline void store_u16le(uint8_t *bytes, uint16_t value)
{
    for (unsigned i = 0; i < sizeof value; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static inline void store_u32le(uint8_t *bytes, uint32_t value)
{
    for (unsigned i = 0; i < sizeof value; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static inline uint32_t load_u32le(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t load_u64le(const uint8_t *bytes)
{
    return (uint64_t)load_u32le(bytes) | (uint64_t)load_u32le(bytes + 4) << 32;
}

#endif
