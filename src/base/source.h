/*
 * source: random access to bytes somewhere: a file, a part of a file, or memory.
 *
 * Files of others are never mapped (they can be truncated under us): every read is a pread into
 * memory of ours.
 */
#ifndef CLRPERF_BASE_SOURCE_H
#define CLRPERF_BASE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"

struct source {
    int fd;             /* borrowed, or -1: then `memory` counts */
    uint64_t start;     /* of the part, in the file */
    uint64_t size;      /* bytes that can be read */
    struct span memory; /* borrowed */
};

/* The part [start, start+size) of an open file, cut to the file's size. */
bool source_over_fd(int fd, uint64_t start, uint64_t size, struct source *out, struct error *err);
struct source source_over_span(struct span bytes);
struct source source_part(const struct source *whole, uint64_t start, uint64_t size);
/* Reads exactly `size` bytes at `offset` into `into`; fails when they are not all there. */
bool source_read(const struct source *s, uint64_t offset, void *into, size_t size, struct error *err);
/*
 * Replaces the content of `out` by `size` bytes at `offset`. Fails past the buffer's ceiling
 * (ERROR_LIMIT) or the end of the source (ERROR_INPUT).
 */
bool source_load(const struct source *s, uint64_t offset, uint64_t size, struct buffer *out,
                 struct error *err);

#endif
