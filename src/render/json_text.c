#include "render/json_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void json_escape(struct output *out, unsigned code)
{
    char text[7];
    int size = snprintf(text, sizeof text, "\\u%04x", code);
    output_write(out, text, (size_t)size);
}

/* U+2028..U+202E and U+2066..U+2069: separators and bidirectional controls; all are E2 80/81 xx. */
static unsigned separator_or_bidi(const unsigned char *at)
{
    if (at[0] != 0xe2 || (at[1] != 0x80 && at[1] != 0x81))
        return 0;
    unsigned code = 0x2000u + (at[1] - 0x80u) * 64 + (at[2] & 0x3fu);
    bool listed = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return listed && at[2] >= 0x80 ? code : 0;
}

static void json_short_escape(struct output *out, unsigned char c)
{
    static const char letters[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'
    };
    if (c < sizeof letters && letters[c]) {
        char text[2] = { '\\', letters[c] };
        output_write(out, text, sizeof text);
    } else {
        json_escape(out, c);
    }
}

void json_text_string(struct output *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *clean = at;
    output_char(out, '"');
    for (; *at; at++) {
        unsigned wide = separator_or_bidi(at);
        if (!wide && *at >= 0x20 && *at != '"' && *at != '\\' && *at != '<' && *at != 0x7f)
            continue;
        output_write(out, clean, (size_t)(at - clean));
        if (wide) {
            json_escape(out, wide);
            at += 2;
        } else {
            json_short_escape(out, *at);
        }
        clean = at + 1;
    }
    output_write(out, clean, (size_t)(at - clean));
    output_char(out, '"');
}

void json_string_or_null(struct output *out, const char *text)
{
    if (text && *text)
        json_text_string(out, text);
    else
        output_text(out, "null");
}

void json_member(struct output *out, bool first, const char *key, const char *text)
{
    json_comma(out, !first);
    json_text_string(out, key);
    output_char(out, ':');
    json_text_string(out, text);
}

void json_member_u64(struct output *out, const char *key, uint64_t value)
{
    output_char(out, ',');
    json_text_string(out, key);
    output_char(out, ':');
    output_u64(out, value);
}

void json_text_double(struct output *out, double value)
{
    char text[32];
    if (!isfinite(value)) {
        output_text(out, "null");
        return;
    }
    int size = snprintf(text, sizeof text, "%.9g", value);
    output_write(out, text, (size_t)size);
}
