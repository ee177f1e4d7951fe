#include "render/shown_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "base/utf8.h"

/* One character; what reorders others or is no character in XML (U+FFFE, U+FFFF) is UTF8_INVALID. */
static uint32_t shown_text_next(struct cursor *text)
{
    uint32_t c = utf8_next(text);
    bool reorders = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
                    c == 0x200f || c == 0x061c;
    return reorders || c == 0xfffe || c == 0xffff ? UTF8_INVALID : c;
}

static bool shown_text_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

/* Most of a name is printable ASCII with nothing to escape: runs of it are copied at once. */
static size_t shown_text_harmless(const uint8_t *text, size_t size)
{
    static const bool harmful[256] = {
        [0 ... 0x1f] = true, [0x7f ... 0xff] = true, ['&'] = true, ['<'] = true,
        ['>'] = true,        ['"'] = true,           ['\''] = true
    };
    size_t n = 0;
    while (n < size && !harmful[text[n]])
        n++;
    return n;
}

static void shown_text_xml_char(struct buffer *out, uint32_t c)
{
    switch (c) {
    case '&':
        buffer_string(out, "&amp;");
        break;
    case '<':
        buffer_string(out, "&lt;");
        break;
    case '>':
        buffer_string(out, "&gt;");
        break;
    case '"':
        buffer_string(out, "&quot;");
        break;
    case '\'':
        buffer_string(out, "&#39;");
        break;
    default:
        utf8_append(out, c);
    }
}

typedef void shown_text_put_fn(struct buffer *out, uint32_t c);

static inline void shown_text_put(struct buffer *out, const char *text, shown_text_put_fn *put)
{
    struct cursor at = cursor_over(span_of(text, strlen(text)));
    for (;;) {
        struct span easy = cursor_bytes(&at, shown_text_harmless(at.bytes.data + at.pos, cursor_left(&at)));
        buffer_append(out, easy.data, easy.size);
        if (!cursor_left(&at))
            return;
        uint32_t c = shown_text_next(&at);
        if (!shown_text_is_control(c))
            put(out, c);
    }
}

void shown_text_plain(struct buffer *out, const char *text)
{
    shown_text_put(out, text, utf8_append);
}

void shown_text_xml(struct buffer *out, const char *text)
{
    shown_text_put(out, text, shown_text_xml_char);
}

void shown_text_xml_cut(struct buffer *out, const char *text, size_t characters)
{
    size_t shown = 0;
    struct cursor all = cursor_over(span_of(text, strlen(text))), at = all;
    while (cursor_left(&all) && shown <= characters)
        shown += !shown_text_is_control(shown_text_next(&all));
    bool cut = shown > characters;
    size_t room = cut ? (characters > 2 ? characters - 2 : 0) : characters;
    while (cursor_left(&at) && room > 0) {
        uint32_t c = shown_text_next(&at);
        if (shown_text_is_control(c))
            continue;
        shown_text_xml_char(out, c);
        room--;
    }
    if (cut)
        buffer_string(out, "..");
}
