#include "base/cursor.h"

#include <string.h>

void cursor_skip(struct cursor *c, uint64_t count)
{
    cursor_bytes(c, count);
}

void cursor_seek(struct cursor *c, uint64_t offset)
{
    if (offset > c->bytes.size)
        c->failed = true;
    if (!c->failed)
        c->pos = (size_t)offset;
}

void cursor_align(struct cursor *c, size_t alignment)
{
    cursor_skip(c, (alignment - c->pos % alignment) % alignment);
}

uint16_t cursor_u16le(struct cursor *c)
{
    struct span b = cursor_bytes(c, 2);
    return b.size ? load_u16le(b.data) : 0;
}

uint32_t cursor_u32le(struct cursor *c)
{
    struct span b = cursor_bytes(c, 4);
    return b.size ? load_u32le(b.data) : 0;
}

uint64_t cursor_u64le(struct cursor *c)
{
    struct span b = cursor_bytes(c, 8);
    return b.size ? load_u64le(b.data) : 0;
}

static uint64_t cursor_leb128(struct cursor *c, unsigned bits)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
        uint8_t byte = cursor_u8(c);
        unsigned room = bits - shift;
        if (room < 7 && (byte & 0x7f) >> room) {
            c->failed = true;
            return 0;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return c->failed ? 0 : value;
    }
    c->failed = true;
    return 0;
}

uint32_t cursor_varuint32(struct cursor *c)
{
    return (uint32_t)cursor_leb128(c, 32);
}

uint64_t cursor_varuint64(struct cursor *c)
{
    return cursor_leb128(c, 64);
}

int64_t cursor_sleb64(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(c);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if (byte & 0x40 && shift + 7 < 64)
                value |= UINT64_MAX << (shift + 7);
            return (int64_t)value;
        }
    }
    c->failed = true;
    return 0;
}

int64_t cursor_zigzag64(struct cursor *c)
{
    uint64_t coded = cursor_varuint64(c);
    return (int64_t)(coded >> 1 ^ (~(coded & 1) + 1));
}

struct span cursor_zstring(struct cursor *c)
{
    size_t left = cursor_left(c);
    const uint8_t *start = left ? c->bytes.data + c->pos : NULL;
    const uint8_t *nul = left ? memchr(start, 0, left) : NULL;
    if (!nul) {
        c->failed = true;
        return (struct span){ 0 };
    }
    c->pos += (size_t)(nul - start) + 1;
    return (struct span){ start, (size_t)(nul - start) };
}

bool cursor_finish(const struct cursor *c, struct error *err, const char *what)
{
    if (!c->failed)
        return true;
    return error_set(err, ERROR_INPUT, "%s ends too early (at byte %zu of %zu)", what, c->pos, c->bytes.size);
}

struct span span_part(struct span whole, uint64_t offset, uint64_t size)
{
    if (offset > whole.size || size > whole.size - offset)
        return (struct span){ 0 };
    return (struct span){ whole.data + offset, (size_t)size };
}

bool span_begins(struct span text, const char *with)
{
    size_t size = strlen(with);
    return text.size >= size && memcmp(text.data, with, size) == 0;
}

bool span_ends(struct span text, const char *with)
{
    size_t size = strlen(with);
    return text.size >= size && memcmp(text.data + text.size - size, with, size) == 0;
}

bool span_equals(struct span a, struct span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
