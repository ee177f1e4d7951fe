#include "render/shown_text.h"

#include <stdbool.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd };

/* One character of UTF-8 at `*at`, which moves behind it. A byte that starts none is REPLACEMENT. */
static uint32_t shown_text_next(const uint8_t **at)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const uint8_t *s = *at;
    unsigned size = s[0] < 0x80   ? 1
                    : s[0] < 0xc2 ? 0
                    : s[0] < 0xe0 ? 2
                    : s[0] < 0xf0 ? 3
                    : s[0] < 0xf5 ? 4
                                  : 0;
    *at = s + 1;
    if (size <= 1)
        return size ? s[0] : REPLACEMENT;
    uint32_t c = s[0] & (0x7f >> size);
    for (unsigned i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return REPLACEMENT;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < smallest[size] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return REPLACEMENT;
    *at = s + size;
    /* U+FFFE and U+FFFF are no characters in XML. */
    bool reorders = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
                    c == 0x200f || c == 0x061c;
    return reorders || c == 0xfffe || c == 0xffff ? REPLACEMENT : c;
}

static bool shown_text_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

static void shown_text_utf8(struct buffer *out, uint32_t c)
{
    uint8_t bytes[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = size; i-- > 1; c >>= 6)
        bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
    bytes[0] = (uint8_t)(lead[size] | c);
    buffer_append(out, bytes, size);
}

/* Most of a name is printable ASCII with nothing to escape: runs of it are copied at once. */
static size_t shown_text_harmless(const uint8_t *text)
{
    static const bool harmful[256] = {
        [0 ... 0x1f] = true, [0x7f ... 0xff] = true, ['&'] = true, ['<'] = true,
        ['>'] = true,        ['"'] = true,           ['\''] = true
    };
    size_t n = 0;
    while (!harmful[text[n]])
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
        shown_text_utf8(out, c);
    }
}

typedef void shown_text_put_fn(struct buffer *out, uint32_t c);

static inline void shown_text_put(struct buffer *out, const char *text, shown_text_put_fn *put)
{
    const uint8_t *at = (const uint8_t *)text;
    for (;;) {
        size_t easy = shown_text_harmless(at);
        buffer_append(out, at, easy);
        at += easy;
        if (!*at)
            return;
        uint32_t c = shown_text_next(&at);
        if (!shown_text_is_control(c))
            put(out, c);
    }
}

void shown_text_plain(struct buffer *out, const char *text)
{
    shown_text_put(out, text, shown_text_utf8);
}

void shown_text_xml(struct buffer *out, const char *text)
{
    shown_text_put(out, text, shown_text_xml_char);
}

void shown_text_xml_cut(struct buffer *out, const char *text, size_t characters)
{
    size_t shown = 0;
    const uint8_t *at = (const uint8_t *)text;
    for (const uint8_t *c = at; *c && shown <= characters;)
        shown += !shown_text_is_control(shown_text_next(&c));
    bool cut = shown > characters;
    size_t room = cut ? (characters > 2 ? characters - 2 : 0) : characters;
    while (*at && room > 0) {
        uint32_t c = shown_text_next(&at);
        if (shown_text_is_control(c))
            continue;
        shown_text_xml_char(out, c);
        room--;
    }
    if (cut)
        buffer_string(out, "..");
}
