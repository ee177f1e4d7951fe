#include "render/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/mem.h"

enum { OUTPUT_BUFFER_SIZE = 256 * 1024, GZIP_WINDOW_BITS = 15 + 16 /* 16: gzip instead of zlib framing */ };

struct output_gzip {
    z_stream stream;
    uint8_t packed[64 * 1024];
};

static void output_fail(struct output *out, enum error_kind kind, int os_error, const char *what)
{
    if (out->failed)
        return;
    out->failed = true;
    if (os_error)
        error_system(&out->error, os_error, "%s", what);
    else
        error_set(&out->error, kind, "%s", what);
    if (os_error == ENOSPC || os_error == EDQUOT)
        error_hint(&out->error, "free some space, or write to another place");
}

static void sink_write(struct output *out, const uint8_t *bytes, size_t count)
{
    if (out->memory) {
        buffer_append(out->memory, bytes, count);
        if (out->memory->failed)
            output_fail(out, ERROR_LIMIT, 0, "the output is larger than the memory it may take");
        return;
    }
    while (count > 0 && !out->failed) {
        ssize_t written = write(out->fd, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            output_fail(out, ERROR_SYSTEM, errno, "cannot write");
            return;
        }
        bytes += written;
        count -= (size_t)written;
    }
}

static void gzip_write(struct output *out, const uint8_t *bytes, size_t count, int flush)
{
    z_stream *stream = &out->gzip->stream;
    while (!out->failed) {
        /* avail_in is 32 bits wide */
        size_t part = count > UINT32_MAX / 2 ? UINT32_MAX / 2 : count;
        stream->next_in = bytes;
        stream->avail_in = (uInt)part;
        bool ended = false;
        do {
            stream->next_out = out->gzip->packed;
            stream->avail_out = sizeof out->gzip->packed;
            ended = deflate(stream, count > part ? Z_NO_FLUSH : flush) == Z_STREAM_END;
            sink_write(out, out->gzip->packed, sizeof out->gzip->packed - stream->avail_out);
        } while (!ended && !out->failed && (stream->avail_out == 0 || stream->avail_in > 0));
        bytes += part;
        count -= part;
        if (count == 0)
            return;
    }
}

static void output_pass(struct output *out, const uint8_t *bytes, size_t count)
{
    if (out->failed || count == 0)
        return;
    if (out->gzip)
        gzip_write(out, bytes, count, Z_NO_FLUSH);
    else
        sink_write(out, bytes, count);
}

void output_over_fd(struct output *out, int fd)
{
    *out = (struct output){ .fd = fd, .data = mem_alloc(OUTPUT_BUFFER_SIZE, 1) };
}

void output_over_buffer(struct output *out, struct buffer *memory)
{
    *out = (struct output){ .fd = -1, .memory = memory, .data = mem_alloc(OUTPUT_BUFFER_SIZE, 1) };
}

void output_flush(struct output *out)
{
    output_pass(out, out->data, out->used);
    out->used = 0;
}

bool output_ok(const struct output *out, struct error *err)
{
    if (out->failed && err)
        *err = out->error;
    return !out->failed;
}

bool output_close(struct output *out, struct error *err)
{
    output_gzip_end(out);
    output_flush(out);
    free(out->data);
    out->data = NULL;
    return output_ok(out, err);
}

void output_gzip_begin(struct output *out)
{
    output_flush(out);
    out->gzip = mem_alloc(1, sizeof *out->gzip);
    if (deflateInit2(&out->gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return;
    free(out->gzip);
    out->gzip = NULL;
    output_fail(out, ERROR_LIMIT, 0, "no memory to compress the output");
}

void output_gzip_end(struct output *out)
{
    if (!out->gzip)
        return;
    output_flush(out);
    gzip_write(out, NULL, 0, Z_FINISH);
    deflateEnd(&out->gzip->stream);
    free(out->gzip);
    out->gzip = NULL;
}

void output_write(struct output *out, const void *bytes, size_t count)
{
    if (out->failed)
        return;
    if (count > OUTPUT_BUFFER_SIZE - out->used) {
        output_flush(out);
        if (count > OUTPUT_BUFFER_SIZE) {
            output_pass(out, bytes, count);
            return;
        }
    }
    if (count == 0)
        return;
    memcpy(out->data + out->used, bytes, count);
    out->used += count;
}

void output_text(struct output *out, const char *text)
{
    output_write(out, text, strlen(text));
}

void output_char(struct output *out, char c)
{
    output_write(out, &c, 1);
}

void output_u64_padded(struct output *out, uint64_t value, unsigned digits)
{
    char text[20];
    size_t start = sizeof text;
    do {
        text[--start] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (start > 0 && sizeof text - start < digits)
        text[--start] = '0';
    output_write(out, text + start, sizeof text - start);
}

void output_u64(struct output *out, uint64_t value)
{
    output_u64_padded(out, value, 1);
}

void output_hex(struct output *out, uint64_t value)
{
    char text[16];
    size_t start = sizeof text;
    do {
        text[--start] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    output_write(out, text + start, sizeof text - start);
}

void output_fixed(struct output *out, uint64_t value, unsigned decimals)
{
    uint64_t one = 1;
    for (unsigned i = 0; i < decimals; i++)
        one *= 10;
    output_u64(out, value / one);
    if (decimals == 0)
        return;
    output_char(out, '.');
    output_u64_padded(out, value % one, decimals);
}
