/*
 * utf8: text from strangers, one code point at a time.
 */
#ifndef CLRPERF_BASE_UTF8_H
#define CLRPERF_BASE_UTF8_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"

enum { UTF8_INVALID = 0xfffd };

/*
 * The code point at the cursor, which moves past it. Over-long forms, surrogates, values above
 * U+10FFFF and broken sequences give UTF8_INVALID and take one byte. Fails at the end only.
 */
uint32_t utf8_next(struct cursor *c);
/* The text without the first bytes of a character whose others are behind its end: it was cut there. */
struct span utf8_whole(struct span text);
/* Appends the code point, which must be a valid one. */
void utf8_append(struct buffer *out, uint32_t code_point);

/* May it reach a terminal as it is? No for C0, DEL, C1 and characters that change the writing direction. */
bool utf8_is_printable(uint32_t code_point);
/*
 * Appends `text` so that a terminal cannot be steered by it: what utf8_is_printable() refuses becomes
 * \n, \r, \t, \xNN or \u{NNNN}, what is no UTF-8 becomes U+FFFD.
 */
void utf8_escape(struct buffer *out, struct span text);
/* Columns that utf8_escape(text) takes, when every character is one column wide. */
size_t utf8_width(struct span text);

#endif
