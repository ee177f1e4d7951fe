/*
 * unpack: decompression of bytes from strangers into a bounded buffer.
 *
 * A small input may ask for any amount of memory, so the output is limited twice: by the ceiling of
 * the buffer, and, beyond 1 MiB, to 64 bytes for each byte of input.
 */
#ifndef CLRPERF_READ_UNPACK_H
#define CLRPERF_READ_UNPACK_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/source.h"

/* Total output of one call, whatever the buffer allows. */
#define UNPACK_BYTES_MAX ((size_t)512 << 20)

/* A zlib stream (RFC 1950). ERROR_LIMIT past a limit; `out` then holds what came before. */
bool unpack_zlib(const struct source *packed, struct buffer *out, struct error *err);
/* A raw deflate stream (RFC 1951), without zlib's frame. */
bool unpack_deflate(const struct source *packed, struct buffer *out, struct error *err);
/* An xz file. */
bool unpack_xz(const struct source *packed, struct buffer *out, struct error *err);

#endif
