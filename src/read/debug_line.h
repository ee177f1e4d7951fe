/*
 * debug_line: the source lines of native code, from the section .debug_line of an ELF file.
 *
 * Specified in DWARF, versions 2 to 5, chapter "Line Number Information". Nothing else of DWARF is read, so
 * that before version 5 a path that the compiler was given relative stays so, and code that was inlined has
 * the line of where it came from: read/debug_info.h knows into what.
 */
#ifndef CLRPERF_READ_DEBUG_LINE_H
#define CLRPERF_READ_DEBUG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/elf_bytes.h"

enum { DEBUG_LINE_PATH_MAX = 4096 };

/* `index` of the address; `file` is NUL-ended and valid during the call. At most once for an address. */
typedef void debug_line_fn(void *user, size_t index, const char *file, uint32_t line);

struct debug_line_sections {
    struct elf_bytes line; /* .debug_line: of units that are not asked for nothing is read */
    struct span strings;   /* .debug_line_str, or empty */
};

/*
 * Answers `addrs` (as linked, ascending) in one pass over the units at `programs` (ascending), or over all,
 * when that is NULL. A unit that is damaged or of an unknown version is left out. False when the section's
 * list of units breaks off: what was found before counts.
 */
bool debug_line_find(const struct debug_line_sections *sections, const uint64_t *programs,
                     size_t program_count, const uint64_t *addrs, size_t count, debug_line_fn *answer,
                     void *user, struct error *err);

/*
 * Spells the path of a file by its number in the unit at `program`. False when the unit does not tell. Adds
 * to *work how many bytes it read, which is not bounded by the size of the answer.
 */
bool debug_line_path(const struct debug_line_sections *sections, uint64_t program, uint64_t file,
                     char path[DEBUG_LINE_PATH_MAX], uint64_t *work);

#endif
