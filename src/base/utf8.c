#include "base/utf8.h"

static uint32_t continued(struct cursor *c, uint32_t head, unsigned count, uint32_t smallest)
{
    struct cursor ahead = *c;
    uint32_t value = head;
    for (unsigned i = 0; i < count; i++) {
        uint8_t byte = cursor_u8(&ahead);
        if (!cursor_ok(&ahead) || (byte & 0xc0) != 0x80)
            return UTF8_INVALID;
        value = value << 6 | (byte & 0x3f);
    }
    if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return UTF8_INVALID;
    *c = ahead;
    return value;
}

uint32_t utf8_next(struct cursor *c)
{
    uint8_t head = cursor_u8(c);
    if (head < 0x80)
        return head;
    if (head >= 0xc2 && head < 0xe0)
        return continued(c, head & 0x1f, 1, 0x80);
    if (head >= 0xe0 && head < 0xf0)
        return continued(c, head & 0x0f, 2, 0x800);
    if (head >= 0xf0 && head < 0xf5)
        return continued(c, head & 0x07, 3, 0x10000);
    return UTF8_INVALID;
}

struct span utf8_whole(struct span text)
{
    for (size_t bytes = 1; bytes <= text.size && bytes < 4; bytes++) {
        uint8_t byte = text.data[text.size - bytes];
        if ((byte & 0xc0) == 0x80)
            continue;
        size_t wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        if (wanted > bytes)
            text.size -= bytes;
        break;
    }
    return text;
}

void utf8_append(struct buffer *out, uint32_t value)
{
    uint8_t bytes[4];
    size_t count;
    if (value < 0x80) {
        bytes[0] = (uint8_t)value;
        count = 1;
    } else if (value < 0x800) {
        bytes[0] = (uint8_t)(0xc0 | value >> 6);
        count = 2;
    } else if (value < 0x10000) {
        bytes[0] = (uint8_t)(0xe0 | value >> 12);
        count = 3;
    } else {
        bytes[0] = (uint8_t)(0xf0 | value >> 18);
        count = 4;
    }
    for (size_t i = 1; i < count; i++)
        bytes[i] = (uint8_t)(0x80 | (value >> 6 * (count - 1 - i) & 0x3f));
    buffer_append(out, bytes, count);
}

bool utf8_is_printable(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return false;
    /* marks and overrides of writing direction, line and paragraph separators */
    return !(c == 0x061c || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
             (c >= 0x2066 && c <= 0x2069) || c == 0xfeff);
}

/* What stands behind the backslash for a character that everybody writes so; 0 for others. */
static char escape_letter(uint32_t c)
{
    return c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;
}

void utf8_escape(struct buffer *out, struct span text)
{
    struct cursor c = cursor_over(text);
    while (cursor_left(&c)) {
        uint32_t value = utf8_next(&c);
        if (utf8_is_printable(value))
            utf8_append(out, value);
        else if (escape_letter(value))
            buffer_format(out, "\\%c", escape_letter(value));
        else if (value < 0x100)
            buffer_format(out, "\\x%02x", value);
        else
            buffer_format(out, "\\u{%04x}", value);
    }
}

size_t utf8_width(struct span text)
{
    struct cursor c = cursor_over(text);
    size_t width = 0;
    while (cursor_left(&c)) {
        uint32_t value = utf8_next(&c);
        width += utf8_is_printable(value) ? 1 : escape_letter(value) ? 2 : value < 0x100 ? 4 : 8;
    }
    return width;
}
