/*
 * shown_text: a name from a stranger made safe to show.
 *
 * Control characters (C0, C1, DEL, tab and line ends too) are left out; invalid UTF-8 and the
 * characters that reorder what a reader sees (Unicode bidirectional controls) become U+FFFD.
 */
#ifndef CLRPERF_RENDER_SHOWN_TEXT_H
#define CLRPERF_RENDER_SHOWN_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Appends the text itself, cleaned. */
void shown_text_plain(struct buffer *out, const char *text);
/* For the content or a quoted attribute of XML and HTML. */
void shown_text_xml(struct buffer *out, const char *text);
/* As shown_text_xml(), the first `characters` characters at most; ".." ends a cut one. */
void shown_text_xml_cut(struct buffer *out, const char *text, size_t characters);

#endif
