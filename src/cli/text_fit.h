/*
 * text_fit: text in as many columns as there are.
 *
 * Every character is one column wide. What is given has been escaped (base/utf8).
 */
#ifndef CLRPERF_CLI_TEXT_FIT_H
#define CLRPERF_CLI_TEXT_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Columns of the terminal that a descriptor is; 0 when it is none. */
size_t text_columns(int fd);
/* Appends the first columns' worth of a text, with a mark when more was there; `pad` fills up with spaces. */
void text_cut(struct buffer *out, struct span text, size_t columns, bool pad);
/*
 * Breaks the lines behind `from` that are longer than `width` at their spaces; what goes on is indented. A
 * longer word stays whole. `width` 0: as wide as it gets.
 */
void text_wrap(struct buffer *text, size_t from, size_t indent, size_t width);

#endif
