#include "base/utf16.h"

#include <string.h>

#include "base/utf8.h"

/* Appends what is ASCII at the beginning of `text`, four units at a time. Returns how many units that were.
 */
static size_t append_ascii(struct buffer *out, struct span text)
{
    enum { AT_ONCE = 256 };
    const uint64_t others = 0xff80ff80ff80ff80, ones = 0x0001000100010001, highest = 0x8000800080008000;
    uint8_t bytes[AT_ONCE];
    size_t units = 0, count = text.size / 2;
    while (count - units >= 4) {
        size_t have = 0;
        while (have + 4 <= AT_ONCE && count - units - have >= 4) {
            uint64_t four = load_u64le(text.data + 2 * (units + have));
            if ((four & others) | ((four - ones) & highest)) /* above 0x7f, or a zero */
                break;
            for (unsigned i = 0; i < 4; i++)
                bytes[have++] = (uint8_t)(four >> 16 * i);
        }
        buffer_append(out, bytes, have);
        units += have;
        if (have < AT_ONCE)
            break;
    }
    return units;
}

static size_t append_utf8(struct buffer *out, struct span text, bool keep_zeros)
{
    size_t replaced = 0;
    size_t units = text.size / 2;
    for (size_t i = append_ascii(out, text); i < units; i++) {
        uint32_t unit = load_u16le(text.data + 2 * i);
        if (unit - 0xd800 < 0x800 || (unit == 0 && !keep_zeros)) {
            uint32_t low = i + 1 < units ? load_u16le(text.data + 2 * i + 2) : 0;
            if (unit != 0 && unit < 0xdc00 && low - 0xdc00 < 0x400) {
                unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                i++;
            } else {
                unit = UTF8_INVALID;
                replaced++;
            }
        }
        utf8_append(out, unit);
    }
    return replaced;
}

size_t utf16_append_utf8(struct buffer *out, struct span text)
{
    return append_utf8(out, text, false);
}

void utf16_append_whole(struct buffer *out, struct span text)
{
    append_utf8(out, text, true);
}

static size_t append_units(struct buffer *out, struct span text)
{
    size_t units = 0;
    struct cursor c = cursor_over(text);
    while (cursor_left(&c)) {
        uint32_t cp = utf8_next(&c);
        if (cp >= 0x10000) {
            buffer_u16le(out, (uint16_t)(0xd800 + ((cp - 0x10000) >> 10)));
            cp = 0xdc00 + ((cp - 0x10000) & 0x3ff);
            units++;
        }
        buffer_u16le(out, (uint16_t)cp);
        units++;
    }
    return units;
}

void utf16_append_zstring(struct buffer *out, struct span text)
{
    append_units(out, text);
    buffer_u16le(out, 0);
}

size_t utf16_append(struct buffer *out, const char *text)
{
    return append_units(out, span_of(text, strlen(text)));
}

struct span utf16_zstring(struct cursor *c)
{
    size_t left = cursor_left(c);
    const uint8_t *start = left ? c->bytes.data + c->pos : NULL;
    for (size_t i = 0; left - i >= 2; i += 2)
        if (start[i] == 0 && start[i + 1] == 0) {
            c->pos += i + 2;
            return (struct span){ start, i };
        }
    c->failed = true;
    return (struct span){ 0 };
}

bool utf16_equals_ascii(struct span text, const char *ascii)
{
    size_t length = strlen(ascii);
    if (text.size != 2 * length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text.data[2 * i] != (uint8_t)ascii[i] || text.data[2 * i + 1] != 0)
            return false;
    return true;
}
