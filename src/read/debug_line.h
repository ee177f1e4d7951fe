/*
 * debug_line: the source lines of native code, from the section .debug_line of an ELF file.
 *
 * Specified in DWARF, versions 2 to 5, chapter "Line Number Information". Nothing else of DWARF is read, so
 * that before version 5 a path that the compiler was given relative stays so, and code that was inlined has
 * the line of where it came from.
 */
#ifndef CLRPERF_READ_DEBUG_LINE_H
#define CLRPERF_READ_DEBUG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

enum { DEBUG_LINE_PATH_MAX = 4096 };

/* `index` of the address; `file` is NUL-ended and valid during the call. At most once for an address. */
typedef void debug_line_fn(void *user, size_t index, const char *file, uint32_t line);

/*
 * Answers `addrs` (as linked, ascending) in one pass over the section. `strings` is .debug_line_str, or
 * empty. A unit that is damaged or of an unknown version is left out. False when the section's list of units
 * breaks off: what was found before counts.
 */
bool debug_line_find(struct span section, struct span strings, const uint64_t *addrs, size_t count,
                     debug_line_fn *answer, void *user, struct error *err);

#endif
