/*
 * managed_string: a System.String as it lies in memory.
 */
#ifndef CLRPERF_CLR_MANAGED_STRING_H
#define CLRPERF_CLR_MANAGED_STRING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/memory_pages.h"

enum { MANAGED_STRING_MAX = 1024 }; /* characters of UTF-16 that are read of one */

/* Appends the string at `addr` in UTF-8, cut where it is longer than `max`. False when there is none, it is
 * empty or cannot be read. */
bool managed_string_read(struct memory_pages *pages, uint64_t addr, unsigned max, struct buffer *out);

#endif
