/*
 * buffer: bytes that grow up to a ceiling given at the start.
 *
 * Appending past the ceiling sets `failed` and drops the bytes; the owner asks once at the end.
 */
#ifndef CLRPERF_BASE_BUFFER_H
#define CLRPERF_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cursor.h"

struct buffer {
    uint8_t *data; /* owned */
    size_t size;
    size_t capacity;
    size_t ceiling; /* largest size allowed */
    bool failed;
};

void buffer_init(struct buffer *b, size_t ceiling);
void buffer_done(struct buffer *b);
/* Empties it and keeps the memory. */
void buffer_clear(struct buffer *b);
/* Room for `count` more bytes behind `size`, or NULL past the ceiling. `size` is not changed. */
uint8_t *buffer_reserve(struct buffer *b, size_t count);
/* For what does not fit into the memory that is there. */
void buffer_append_more(struct buffer *b, const void *bytes, size_t count);
/* Text is made of appends of a few bytes: the common case is worth no call. */
static inline void buffer_append(struct buffer *b, const void *bytes, size_t count)
{
    if (count == 0)
        return;
    if (b->failed || count > b->capacity - b->size || count > b->ceiling - b->size) {
        buffer_append_more(b, bytes, count);
        return;
    }
    memcpy(b->data + b->size, bytes, count);
    b->size += count;
}
static inline void buffer_string(struct buffer *b, const char *text)
{
    buffer_append(b, text, strlen(text));
}
void buffer_decimal(struct buffer *b, uint64_t value);
/* In lower case, without 0x; with zeros in front up to `digits_min`. */
void buffer_hex(struct buffer *b, uint64_t value, unsigned digits_min);
void buffer_format(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void buffer_u8(struct buffer *b, uint8_t value)
{
    buffer_append(b, &value, 1);
}
void buffer_u16le(struct buffer *b, uint16_t value);
void buffer_u32le(struct buffer *b, uint32_t value);
void buffer_u64le(struct buffer *b, uint64_t value);
void buffer_varuint(struct buffer *b, uint64_t value);
void buffer_zigzag64(struct buffer *b, int64_t value);

static inline struct span buffer_span(const struct buffer *b)
{
    return (struct span){ b->data, b->size };
}

#endif
