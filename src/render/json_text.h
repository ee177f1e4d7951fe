/*
 * json_text: the pieces of JSON that need more care than punctuation, written to an output.
 */
#ifndef CLRPERF_RENDER_JSON_TEXT_H
#define CLRPERF_RENDER_JSON_TEXT_H

#include "render/output.h"

/*
 * A quoted string (RFC 8259). `text` is UTF-8. Besides what JSON demands, '<' and the line separators
 * U+2028/U+2029 are escaped, so that the text may stand inside an HTML script, and so are the
 * bidirectional controls, so that a name cannot turn around what follows it.
 */
void json_text_string(struct output *out, const char *text);
/* The string, or null for NULL and "". */
void json_string_or_null(struct output *out, const char *text);
/* `"key":"text"`, with a comma in front when not `first`. */
void json_member(struct output *out, bool first, const char *key, const char *text);
/* `,"key":value` */
void json_member_u64(struct output *out, const char *key, uint64_t value);
/* A comma, but for item 0. */
static inline void json_comma(struct output *out, size_t item)
{
    if (item > 0)
        output_char(out, ',');
}
/* 9 significant digits; null when it is not finite. */
void json_text_double(struct output *out, double value);

#endif
