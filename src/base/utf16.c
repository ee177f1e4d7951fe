#include "base/utf16.h"

#include <string.h>

enum { REPLACEMENT = 0xfffd };

static void append_code_point(struct buffer *out, uint32_t cp)
{
    uint8_t bytes[4];
    size_t size;
    if (cp < 0x80) {
        bytes[0] = (uint8_t)cp;
        size = 1;
    } else if (cp < 0x800) {
        bytes[0] = (uint8_t)(0xc0 | cp >> 6);
        bytes[1] = (uint8_t)(0x80 | (cp & 0x3f));
        size = 2;
    } else if (cp < 0x10000) {
        bytes[0] = (uint8_t)(0xe0 | cp >> 12);
        bytes[1] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
        bytes[2] = (uint8_t)(0x80 | (cp & 0x3f));
        size = 3;
    } else {
        bytes[0] = (uint8_t)(0xf0 | cp >> 18);
        bytes[1] = (uint8_t)(0x80 | (cp >> 12 & 0x3f));
        bytes[2] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
        bytes[3] = (uint8_t)(0x80 | (cp & 0x3f));
        size = 4;
    }
    buffer_append(out, bytes, size);
}

size_t utf16_append_utf8(struct buffer *out, struct span text)
{
    size_t replaced = 0;
    size_t units = text.size / 2;
    for (size_t i = 0; i < units; i++) {
        uint32_t unit = load_u16le(text.data + 2 * i);
        if (unit - 0xd800 < 0x800 || unit == 0) {
            uint32_t low = i + 1 < units ? load_u16le(text.data + 2 * i + 2) : 0;
            if (unit != 0 && unit < 0xdc00 && low - 0xdc00 < 0x400) {
                unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                i++;
            } else {
                unit = REPLACEMENT;
                replaced++;
            }
        }
        append_code_point(out, unit);
    }
    return replaced;
}

/* Decodes one code point at `s` and tells its length; a byte that starts none yields U+FFFD. */
static uint32_t next_code_point(const uint8_t *s, size_t *length)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t size = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    *length = 1;
    if (size == 1)
        return s[0];
    if (size == 0)
        return REPLACEMENT;
    uint32_t cp = s[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if (s[i] >> 6 != 2) /* also stops at the terminator */
            return REPLACEMENT;
        cp = cp << 6 | (s[i] & 0x3f);
    }
    if (cp < smallest[size] || cp > 0x10ffff || cp - 0xd800 < 0x800)
        return REPLACEMENT;
    *length = size;
    return cp;
}

size_t utf16_append(struct buffer *out, const char *text)
{
    size_t units = 0;
    for (const uint8_t *s = (const uint8_t *)text; *s;) {
        size_t length;
        uint32_t cp = next_code_point(s, &length);
        s += length;
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
