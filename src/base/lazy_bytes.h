/*
 * lazy_bytes: a part of a file whose pieces are read when somebody looks at them.
 *
 * For large parts of which little is needed, as an assembly's metadata. The bytes have one address from the
 * start, and what nobody asked for takes no memory. A piece that cannot be read, because the file became
 * shorter, is zero.
 */
#ifndef CLRPERF_BASE_LAZY_BYTES_H
#define CLRPERF_BASE_LAZY_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/source.h"

enum { LAZY_PIECE_BYTES = 4 << 10 };

struct lazy_bytes {
    struct source file; /* the part, by a descriptor of our own; unused when all was read at once */
    uint8_t *bytes;
    size_t size;
    uint64_t *is_read; /* a bit for each piece; NULL: all was read */
};

/*
 * The part of `file` from `offset` on; the file itself may be closed afterwards. Small parts, and those of
 * files in memory, are read at once. NULL past `ceiling` (ERROR_LIMIT) and past the end (ERROR_INPUT).
 */
struct lazy_bytes *lazy_bytes_open(const struct source *file, uint64_t offset, uint64_t size,
                                   uint64_t ceiling, struct error *err);
void lazy_bytes_close(struct lazy_bytes *lazy); /* which may be NULL */

/* All of them: only those that were asked for may be looked at. */
static inline struct span lazy_bytes_span(const struct lazy_bytes *lazy)
{
    return span_of(lazy->bytes, lazy->size);
}

/* Reads pieces [first, last] that were not read. */
void lazy_bytes_read(struct lazy_bytes *lazy, size_t first, size_t last);

/* The bytes at `at`, which lies in them, will be looked at; what lies behind the end does not count. */
static inline void lazy_bytes_need(struct lazy_bytes *lazy, const uint8_t *at, size_t size)
{
    if (!lazy->is_read || size == 0)
        return;
    size_t from = (size_t)(at - lazy->bytes);
    size_t last_byte = size < lazy->size - from ? from + size - 1 : lazy->size - 1;
    size_t first = from / LAZY_PIECE_BYTES, last = last_byte / LAZY_PIECE_BYTES;
    if (first != last || !(lazy->is_read[first / 64] >> first % 64 & 1))
        lazy_bytes_read(lazy, first, last);
}

#endif
