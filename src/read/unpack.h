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
/* The same into a file, at most `bytes_max` of it. */
bool unpack_deflate_to(const struct source *packed, uint64_t bytes_max, int fd, struct error *err);
/* An xz file. */
bool unpack_xz(const struct source *packed, struct buffer *out, struct error *err);

/* A zlib stream that is unpacked as far as it is asked for. */
struct unpacking;

/*
 * `packed` is copied, what it is over is borrowed. `size`: of the whole, as the stream's owner claims.
 * ERROR_LIMIT when that is more than `ceiling`, or than the input may ask for.
 */
bool unpacking_open(const struct source *packed, uint64_t size, size_t ceiling, struct unpacking **out,
                    struct error *err);
void unpacking_close(struct unpacking *u);
/* The bytes up to `end`, fewer when the stream is damaged or ends before. They stay where they are. */
struct span unpacking_get(struct unpacking *u, uint64_t end);

#endif
