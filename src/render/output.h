/*
 * output: a buffered sink of bytes over a file descriptor or a memory buffer.
 *
 * Errors stick: after the first one everything is dropped, and output_close() reports it, so a writer
 * is straight-line code. Between output_gzip_begin() and output_gzip_end() the bytes are compressed;
 * the stream carries no time and no name, so equal input gives equal files.
 */
#ifndef CLRPERF_RENDER_OUTPUT_H
#define CLRPERF_RENDER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"

struct output_gzip;

struct output {
    int fd;                   /* borrowed, or -1: then `memory` takes the bytes */
    struct buffer *memory;    /* borrowed */
    struct output_gzip *gzip; /* owned; NULL while nothing is compressed */
    uint8_t *data;            /* owned: bytes that were not passed on yet */
    size_t used;
    bool failed;
    struct error error; /* the first one */
};

/* The descriptor stays the caller's and must be blocking. */
void output_over_fd(struct output *out, int fd);
/* Reaching the buffer's ceiling is an error of kind ERROR_LIMIT. */
void output_over_buffer(struct output *out, struct buffer *memory);
/*
 * Passes on what is buffered, ends a compressed stream that is still open, and frees what it holds.
 * False when anything written before could not be; a second call is harmless.
 */
bool output_close(struct output *out, struct error *err);
/* False, with the first error, when something failed so far. */
bool output_ok(const struct output *out, struct error *err);
/* Passes on what is buffered. */
void output_flush(struct output *out);

/* From here on the bytes are compressed (RFC 1952). Does not nest. */
void output_gzip_begin(struct output *out);
void output_gzip_end(struct output *out);

void output_write(struct output *out, const void *bytes, size_t count);
void output_text(struct output *out, const char *text);
void output_char(struct output *out, char c);
/* Decimal. */
void output_u64(struct output *out, uint64_t value);
/* Decimal with at least `digits` (<= 20) digits, filled up with zeros. */
void output_u64_padded(struct output *out, uint64_t value, unsigned digits);
/* Hex, lower case, no 0x. */
void output_hex(struct output *out, uint64_t value);
/* `value` / 10^decimals, exactly, with that many decimals (<= 9): 1500 with 3 is 1.500. */
void output_fixed(struct output *out, uint64_t value, unsigned decimals);

static inline void output_span(struct output *out, struct span bytes)
{
    output_write(out, bytes.data, bytes.size);
}

#endif
