#include "read/unpack.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/fd_write.h"
#include "base/mem.h"

enum {
    INPUT_BYTES = 64 * 1024,
    OUTPUT_BYTES = 64 * 1024,
    RATIO_MAX = 64,
    RATIO_FREE_BYTES = 1 << 20,
    XZ_MEMORY_MAX = 80 << 20, /* xz -9 needs 65 MiB */
};

/* Largest output allowed for this much input. */
static size_t output_limit(const struct source *packed, const struct buffer *out)
{
    uint64_t limit =
        packed->size > UNPACK_BYTES_MAX / RATIO_MAX ? UNPACK_BYTES_MAX : packed->size * RATIO_MAX;
    if (limit < RATIO_FREE_BYTES)
        limit = RATIO_FREE_BYTES;
    return limit < out->ceiling ? (size_t)limit : out->ceiling;
}

/* Room for the next piece of output; 0 at the limit. */
static size_t output_room(struct buffer *out, size_t limit, uint8_t **room)
{
    size_t size = limit - out->size < OUTPUT_BYTES ? limit - out->size : OUTPUT_BYTES;
    *room = size ? buffer_reserve(out, size) : NULL;
    return *room ? size : 0;
}

static bool too_large(size_t limit, struct error *err)
{
    return error_set(err, ERROR_LIMIT, "compressed data unpacks to more than %zu bytes", limit);
}

/* Reads the next piece of input; 0 bytes at the end. */
static bool next_input(const struct source *packed, uint64_t *offset, uint8_t *bytes, size_t *out_size,
                       struct error *err)
{
    uint64_t left = packed->size - *offset;
    size_t size = left < INPUT_BYTES ? (size_t)left : INPUT_BYTES;
    if (!source_read(packed, *offset, bytes, size, err))
        return false;
    *offset += size;
    *out_size = size;
    return true;
}

/* More input for a stream that has used up what it had. */
static bool inflate_refill(z_stream *stream, const struct source *packed, uint64_t *offset,
                           uint8_t input[INPUT_BYTES], struct error *err)
{
    size_t size = 0;
    if (stream->avail_in)
        return true;
    if (!next_input(packed, offset, input, &size, err))
        return false;
    stream->next_in = input;
    stream->avail_in = (uInt)size;
    return size || error_set(err, ERROR_INPUT, "compressed data ends too early");
}

static bool inflate_all(z_stream *stream, const struct source *packed, struct buffer *out, struct error *err)
{
    size_t limit = output_limit(packed, out);
    uint8_t input[INPUT_BYTES];
    uint64_t offset = 0;
    for (;;) {
        if (!inflate_refill(stream, packed, &offset, input, err))
            return false;
        uint8_t *room;
        size_t room_size = output_room(out, limit, &room);
        if (room_size == 0)
            return too_large(limit, err);
        stream->next_out = room;
        stream->avail_out = (uInt)room_size;
        int result = inflate(stream, Z_NO_FLUSH);
        out->size += room_size - stream->avail_out;
        if (result == Z_STREAM_END)
            return true;
        if (result != Z_OK)
            return error_set(err, ERROR_INPUT, "compressed data is damaged (zlib says %d)", result);
    }
}

/* `window_bits`: zlib's, negative without its frame. */
static bool inflate_stream(int window_bits, const struct source *packed, struct buffer *out,
                           struct error *err)
{
    buffer_clear(out);
    z_stream stream = { 0 };
    if (inflateInit2(&stream, window_bits) != Z_OK)
        return error_set(err, ERROR_LIMIT, "no memory for zlib");
    bool ok = inflate_all(&stream, packed, out, err);
    inflateEnd(&stream);
    return ok;
}

bool unpack_zlib(const struct source *packed, struct buffer *out, struct error *err)
{
    return inflate_stream(MAX_WBITS, packed, out, err);
}

bool unpack_deflate(const struct source *packed, struct buffer *out, struct error *err)
{
    return inflate_stream(-MAX_WBITS, packed, out, err);
}

static bool inflate_to(z_stream *stream, const struct source *packed, uint64_t bytes_max, int fd,
                       struct error *err)
{
    uint8_t input[INPUT_BYTES], output[OUTPUT_BYTES];
    uint64_t offset = 0, total = 0;
    for (int result = Z_OK; result != Z_STREAM_END;) {
        if (!inflate_refill(stream, packed, &offset, input, err))
            return false;
        stream->next_out = output;
        stream->avail_out = OUTPUT_BYTES;
        result = inflate(stream, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END)
            return error_set(err, ERROR_INPUT, "compressed data is damaged (zlib says %d)", result);
        size_t size = OUTPUT_BYTES - stream->avail_out;
        if (size > bytes_max - total)
            return too_large((size_t)bytes_max, err);
        total += size;
        if (!fd_write(fd, span_of(output, size)))
            return error_system(err, errno, "cannot write what was unpacked");
    }
    return true;
}

bool unpack_deflate_to(const struct source *packed, uint64_t bytes_max, int fd, struct error *err)
{
    z_stream stream = { 0 };
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return error_set(err, ERROR_LIMIT, "no memory for zlib");
    bool ok = inflate_to(&stream, packed, bytes_max, fd, err);
    inflateEnd(&stream);
    return ok;
}

static bool decode_all(lzma_stream *stream, const struct source *packed, struct buffer *out,
                       struct error *err)
{
    size_t limit = output_limit(packed, out);
    uint8_t input[INPUT_BYTES];
    uint64_t offset = 0;
    for (;;) {
        if (stream->avail_in == 0 && offset < packed->size) {
            if (!next_input(packed, &offset, input, &stream->avail_in, err))
                return false;
            stream->next_in = input;
        }
        uint8_t *room;
        size_t room_size = output_room(out, limit, &room);
        if (room_size == 0)
            return too_large(limit, err);
        stream->next_out = room;
        stream->avail_out = room_size;
        lzma_ret result = lzma_code(stream, offset == packed->size ? LZMA_FINISH : LZMA_RUN);
        out->size += room_size - stream->avail_out;
        if (result == LZMA_STREAM_END)
            return true;
        if (result == LZMA_MEMLIMIT_ERROR)
            return error_set(err, ERROR_LIMIT, "compressed data needs more than %d bytes to unpack",
                             XZ_MEMORY_MAX);
        if (result != LZMA_OK)
            return error_set(err, ERROR_INPUT, "compressed data is damaged (xz says %d)", (int)result);
    }
}

bool unpack_xz(const struct source *packed, struct buffer *out, struct error *err)
{
    buffer_clear(out);
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, XZ_MEMORY_MAX, 0) != LZMA_OK)
        return error_set(err, ERROR_LIMIT, "no memory for xz");
    bool ok = decode_all(&stream, packed, out, err);
    lzma_end(&stream);
    return ok;
}

struct unpacking {
    struct source packed;
    uint64_t offset; /* of the next input */
    struct buffer out;
    size_t size; /* room in `out`, from the start: what was given away must not move */
    z_stream stream;
    bool ended;
    uint8_t input[INPUT_BYTES];
};

bool unpacking_open(const struct source *packed, uint64_t size, size_t ceiling, struct unpacking **out,
                    struct error *err)
{
    struct unpacking *u = mem_alloc(1, sizeof *u);
    buffer_init(&u->out, ceiling);
    u->packed = *packed;
    size_t limit = output_limit(packed, &u->out);
    if (size > limit || (size && !buffer_reserve(&u->out, (size_t)size)) || inflateInit(&u->stream) != Z_OK) {
        buffer_done(&u->out);
        free(u);
        return too_large(limit, err);
    }
    inflateValidate(&u->stream, 0); /* its checksum stands at an end that is not reached */
    u->size = (size_t)size;
    *out = u;
    return true;
}

void unpacking_close(struct unpacking *u)
{
    if (!u)
        return;
    inflateEnd(&u->stream);
    buffer_done(&u->out);
    free(u);
}

/* One piece more. */
static bool unpack_on(struct unpacking *u)
{
    if (u->stream.avail_in == 0) {
        size_t size = 0;
        if (!next_input(&u->packed, &u->offset, u->input, &size, NULL) || size == 0)
            return false;
        u->stream.next_in = u->input;
        u->stream.avail_in = (uInt)size;
    }
    size_t room = u->size - u->out.size < OUTPUT_BYTES ? u->size - u->out.size : OUTPUT_BYTES;
    u->stream.next_out = u->out.data + u->out.size;
    u->stream.avail_out = (uInt)room;
    int result = inflate(&u->stream, Z_NO_FLUSH);
    u->out.size += room - u->stream.avail_out;
    return result == Z_OK;
}

struct span unpacking_get(struct unpacking *u, uint64_t end)
{
    while (!u->ended && u->out.size < end && u->out.size < u->size)
        u->ended = !unpack_on(u);
    struct span all = buffer_span(&u->out);
    return end < all.size ? span_part(all, 0, end) : all;
}
