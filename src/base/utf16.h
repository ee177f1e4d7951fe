/*
 * utf16: text as .NET spells it, little-endian UTF-16, converted from and to UTF-8.
 */
#ifndef CLRPERF_BASE_UTF16_H
#define CLRPERF_BASE_UTF16_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/cursor.h"

/*
 * Appends `text` as UTF-8. A lone surrogate or a zero unit becomes U+FFFD; an odd last byte is
 * ignored. Returns how many units were replaced.
 */
size_t utf16_append_utf8(struct buffer *out, struct span text);
/* The same, and zero units stay what they are. */
void utf16_append_whole(struct buffer *out, struct span text);

/*
 * Appends UTF-8 `text` as UTF-16LE without a terminator. Bytes that are not UTF-8 become U+FFFD each.
 * Returns the number of units written.
 */
size_t utf16_append(struct buffer *out, const char *text);
/* The same with a zero unit at its end. */
void utf16_append_zstring(struct buffer *out, struct span text);

/* The bytes up to a zero unit, which is passed but not counted; fails when there is none. */
struct span utf16_zstring(struct cursor *c);

/* Whether `text` holds exactly the characters of `ascii`. */
bool utf16_equals_ascii(struct span text, const char *ascii);

#endif
