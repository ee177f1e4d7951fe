#include "read/byte_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/*
 * What stays in the second-level cache between reading and decoding. Once as much of the window was taken it
 * is used from its begin again: behind it lies memory that is not in the cache, and before, more would have
 * to be moved.
 */
enum { READ_AT_ONCE = 128 * 1024 };

/* `size`: of all that there is. One more than that is as good as any larger window. */
static void stream_init(struct byte_stream *s, uint64_t size, size_t window_size)
{
    *s = (struct byte_stream){ .pipe_fd = -1,
                               .window_size = size < window_size ? (size_t)size + 1 : window_size };
    s->window = mem_alloc(s->window_size, 1);
}

bool byte_stream_open(struct byte_stream *s, int fd, size_t window_size, struct error *err)
{
    struct stat st;
    struct source source = { .fd = -1 };
    if (fstat(fd, &st) < 0)
        return error_system(err, errno, "cannot stat an open file");
    if (S_ISDIR(st.st_mode))
        return error_set(err, ERROR_INPUT, "it is a directory, not a file");
    if (S_ISREG(st.st_mode) && !source_over_fd(fd, 0, UINT64_MAX, &source, err))
        return false;
    stream_init(s, S_ISREG(st.st_mode) ? source.size : UINT64_MAX, window_size);
    s->source = source;
    s->pipe_fd = S_ISREG(st.st_mode) ? -1 : fd;
    return true;
}

void byte_stream_over(struct byte_stream *s, struct span memory, size_t window_size)
{
    stream_init(s, memory.size, window_size);
    s->source = source_over_span(memory);
}

void byte_stream_close(struct byte_stream *s)
{
    free(s->window);
    s->window = NULL;
    s->from = s->to = 0;
    s->ended = true;
}

static bool read_pipe(struct byte_stream *s, size_t room, size_t *out_got, struct error *err)
{
    for (;;) {
        ssize_t got = read(s->pipe_fd, s->window + s->to, room);
        if (got >= 0) {
            *out_got = (size_t)got;
            return true;
        }
        if (errno != EINTR)
            return error_system(err, errno, "cannot read the input");
    }
}

static bool stream_read(struct byte_stream *s, size_t room, struct error *err)
{
    uint64_t at = s->pos + (s->to - s->from);
    size_t got = 0;
    if (s->pipe_fd >= 0) {
        if (!read_pipe(s, room, &got, err))
            return false;
    } else if (at < s->source.size) {
        got = room < s->source.size - at ? room : (size_t)(s->source.size - at);
        if (!source_read(&s->source, at, s->window + s->to, got, err))
            return false;
    }
    s->to += got;
    if (got == 0)
        s->ended = true;
    return true;
}

bool byte_stream_peek(struct byte_stream *s, size_t wanted, struct span *out, struct error *err)
{
    if (wanted > s->window_size)
        wanted = s->window_size;
    bool anew = s->from >= READ_AT_ONCE || wanted > s->window_size - s->from;
    if (s->to - s->from < wanted && anew) {
        memmove(s->window, s->window + s->from, s->to - s->from);
        s->to -= s->from;
        s->from = 0;
    }
    while (s->to - s->from < wanted && !s->ended) {
        size_t room = s->window_size - s->to;
        if (!stream_read(s, room < READ_AT_ONCE ? room : READ_AT_ONCE, err))
            return false;
    }
    *out = span_of(s->window + s->from, s->to - s->from);
    return true;
}

void byte_stream_take(struct byte_stream *s, size_t count)
{
    size_t there = s->to - s->from;
    if (count > there)
        count = there;
    s->from += count;
    s->pos += count;
}

bool byte_stream_skip(struct byte_stream *s, uint64_t count, uint64_t *out_skipped, struct error *err)
{
    uint64_t left = count;
    while (left > 0) {
        struct span there;
        if (!byte_stream_peek(s, 1, &there, err))
            return false;
        if (there.size == 0)
            break;
        size_t part = left < there.size ? (size_t)left : there.size;
        byte_stream_take(s, part);
        left -= part;
        /* a file need not be read to be skipped */
        if (left > 0 && byte_stream_is_seekable(s) && !s->ended && s->source.size > s->pos) {
            uint64_t room = s->source.size - s->pos;
            uint64_t jump = left < room ? left : room;
            s->pos += jump;
            left -= jump;
        }
    }
    *out_skipped = count - left;
    return true;
}

/* The rest of a line that did not fit. */
static bool skip_line(struct byte_stream *s, struct error *err)
{
    for (;;) {
        struct span there;
        if (!byte_stream_peek(s, 1, &there, err))
            return false;
        const uint8_t *newline = there.size ? memchr(there.data, '\n', there.size) : NULL;
        byte_stream_take(s, newline ? (size_t)(newline - there.data) + 1 : there.size);
        if (newline || there.size == 0)
            return true;
    }
}

bool byte_stream_line(struct byte_stream *s, struct span *out, bool *out_any, struct error *err)
{
    struct span there;
    const uint8_t *newline = NULL;
    size_t searched = 0;
    if (s->in_long_line && !skip_line(s, err))
        return false;
    s->in_long_line = false;
    if (!byte_stream_peek(s, 1, &there, err))
        return false;
    for (;;) {
        newline = there.size > searched ? memchr(there.data + searched, '\n', there.size - searched) : NULL;
        if (newline || s->ended || there.size >= s->window_size)
            break;
        searched = there.size;
        if (!byte_stream_peek(s, there.size + 1, &there, err))
            return false;
    }
    *out_any = there.size > 0;
    size_t size = newline ? (size_t)(newline - there.data) : there.size;
    *out = span_of(there.data, size);
    if (out->size && out->data[out->size - 1] == '\r')
        out->size--;
    byte_stream_take(s, newline ? size + 1 : size);
    s->line_is_open = *out_any && !newline && s->ended;
    s->in_long_line = !newline && !s->ended; /* skipped at the next call: `out` lies in the window */
    return true;
}
