/*
 * byte_stream: bytes taken one after the other from a file, a pipe or memory, through a window in which one
 * can look ahead.
 */
#ifndef CLRPERF_READ_BYTE_STREAM_H
#define CLRPERF_READ_BYTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/source.h"

struct byte_stream {
    struct source source;         /* of a regular file or memory; size 0 and unused for a pipe */
    int pipe_fd;                  /* borrowed, or -1 */
    uint64_t pos;                 /* offset of the next byte to be taken */
    uint8_t *window;              /* owned */
    size_t window_size, from, to; /* window[from..to) was read and not taken */
    bool ended;                   /* there is nothing behind window[to] */
    bool in_long_line;            /* the rest of a cut line comes next */
    bool line_is_open;            /* the bytes ended before the line that was taken last did */
};

/* `window_size`: the longest look ahead. The descriptor is borrowed and may be a pipe. */
bool byte_stream_open(struct byte_stream *s, int fd, size_t window_size, struct error *err);
void byte_stream_over(struct byte_stream *s, struct span memory, size_t window_size);
void byte_stream_close(struct byte_stream *s);
/* Can it be read at any offset, through `source`? */
static inline bool byte_stream_is_seekable(const struct byte_stream *s)
{
    return s->pipe_fd < 0;
}
/* The next bytes, without taking them: at least `wanted` (at most the window), fewer only at the end. */
bool byte_stream_peek(struct byte_stream *s, size_t wanted, struct span *out, struct error *err);
/* Takes bytes that were looked at. */
void byte_stream_take(struct byte_stream *s, size_t count);
/* Takes bytes without looking; fewer when the stream ends before: *out_skipped says how many. */
bool byte_stream_skip(struct byte_stream *s, uint64_t count, uint64_t *out_skipped, struct error *err);
/*
 * The next line without its "\n" or "\r\n"; *out_any is false at the end. A line longer than the window is
 * cut, and its rest is skipped. Valid until the next call.
 */
bool byte_stream_line(struct byte_stream *s, struct span *out, bool *out_any, struct error *err);

#endif
