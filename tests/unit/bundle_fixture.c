#include "bundle_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"

enum { FILE_BYTES_MAX = 4 << 20, ASSEMBLY = 1, DEFLATED_SPARE = 64 };

static const uint8_t mark[32] = {
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
    0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
};

void bundle_fixture_mark(struct buffer *file, uint64_t directory)
{
    buffer_u64le(file, directory);
    buffer_append(file, mark, sizeof mark);
}

void bundle_fixture_entry(struct buffer *file, uint32_t major, uint64_t offset, uint64_t size,
                          uint64_t compressed, const char *path)
{
    buffer_u64le(file, offset);
    buffer_u64le(file, size);
    if (major >= 6)
        buffer_u64le(file, compressed);
    buffer_u8(file, ASSEMBLY);
    buffer_varuint(file, strlen(path));
    buffer_string(file, path);
}

/* A raw deflate stream, as .NET's DeflateStream writes. */
static struct span deflated(struct span content, uint8_t **out_owned)
{
    z_stream z = { 0 };
    size_t room = content.size + content.size / 100 + DEFLATED_SPARE;
    *out_owned = mem_alloc(room, 1);
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    z.next_in = (Bytef *)(uintptr_t)content.data;
    z.avail_in = (uInt)content.size;
    z.next_out = *out_owned;
    z.avail_out = (uInt)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    struct span all = span_of(*out_owned, z.total_out);
    deflateEnd(&z);
    return all;
}

size_t bundle_fixture_make(struct buffer *out, const char *path, struct span content, bool packed)
{
    uint8_t *owned = NULL;
    struct span held = packed ? deflated(content, &owned) : content;
    buffer_init(out, FILE_BYTES_MAX);
    for (int i = 0; i < BUNDLE_HOST_BYTES; i++)
        buffer_u8(out, 'h');
    bundle_fixture_mark(out, BUNDLE_HELD_AT + held.size);
    buffer_append(out, held.data, held.size);
    buffer_u32le(out, 6);
    buffer_u32le(out, 0);
    buffer_u32le(out, 1);
    buffer_varuint(out, 0); /* its id */
    for (int i = 0; i < 5; i++)
        buffer_u64le(out, 0);
    bundle_fixture_entry(out, 6, BUNDLE_HELD_AT, content.size, packed ? held.size : 0, path);
    free(owned);
    return held.size;
}
