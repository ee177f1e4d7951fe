#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void buffer_init(struct buffer *b, size_t ceiling)
{
    *b = (struct buffer){ .ceiling = ceiling };
}

void buffer_done(struct buffer *b)
{
    free(b->data);
    *b = (struct buffer){ 0 };
}

void buffer_clear(struct buffer *b)
{
    b->size = 0;
    b->failed = false;
}

uint8_t *buffer_reserve(struct buffer *b, size_t count)
{
    if (b->failed || count > b->ceiling - b->size) {
        b->failed = true;
        return NULL;
    }
    if (count > b->capacity - b->size)
        b->data = mem_grow(b->data, &b->capacity, b->size + count, 1);
    return b->data + b->size;
}

void buffer_append_more(struct buffer *b, const void *bytes, size_t count)
{
    uint8_t *room = buffer_reserve(b, count);
    if (!room)
        return;
    memcpy(room, bytes, count);
    b->size += count;
}

void buffer_decimal(struct buffer *b, uint64_t value)
{
    uint8_t text[20];
    unsigned at = sizeof text;
    do {
        text[--at] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value);
    buffer_append(b, text + at, sizeof text - at);
}

void buffer_hex(struct buffer *b, uint64_t value, unsigned digits_min)
{
    uint8_t text[16];
    unsigned at = sizeof text;
    do {
        text[--at] = (uint8_t) "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (at > 0 && (value || sizeof text - at < digits_min));
    buffer_append(b, text + at, sizeof text - at);
}

void buffer_format(struct buffer *b, const char *format, ...)
{
    __attribute__((uninitialized)) char text[1024]; /* clearing it would take as long as most texts */
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size < 0)
        return;
    if ((size_t)size < sizeof text) {
        buffer_append(b, text, (size_t)size);
        return;
    }
    char *room = (char *)buffer_reserve(b, (size_t)size + 1);
    if (!room)
        return;
    va_start(args, format);
    vsnprintf(room, (size_t)size + 1, format, args);
    va_end(args);
    b->size += (size_t)size;
}

void buffer_u16le(struct buffer *b, uint16_t value)
{
    uint8_t bytes[2] = { (uint8_t)value, (uint8_t)(value >> 8) };
    buffer_append(b, bytes, sizeof bytes);
}

void buffer_u32le(struct buffer *b, uint32_t value)
{
    uint8_t bytes[4];
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    buffer_append(b, bytes, sizeof bytes);
}

void buffer_u64le(struct buffer *b, uint64_t value)
{
    buffer_u32le(b, (uint32_t)value);
    buffer_u32le(b, (uint32_t)(value >> 32));
}

void buffer_varuint(struct buffer *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count] = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        value >>= 7;
        count++;
    } while (value);
    buffer_append(b, bytes, count);
}

void buffer_zigzag64(struct buffer *b, int64_t value)
{
    buffer_varuint(b, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}
