/*
 * url_pattern: the path that requests have in common when they differ in ids only: "/orders/{id}" for
 * "/orders/4711".
 *
 * A segment counts as an id when it is a number, or has 16 hexadecimal digits and dashes or more with a
 * decimal one among them (GUIDs, hashes, trace ids).
 */
#ifndef CLRPERF_ANALYSE_URL_PATTERN_H
#define CLRPERF_ANALYSE_URL_PATTERN_H

#include "base/buffer.h"
#include "base/cursor.h"

/* Appends the pattern of `path`, which begins with a slash or is empty. */
void url_pattern_append(struct buffer *out, struct span path);

#endif
