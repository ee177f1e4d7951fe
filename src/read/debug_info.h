/*
 * debug_info: which functions the compiler inlined at given addresses, from .debug_info of an ELF file.
 *
 * Specified in DWARF, versions 2 to 5, chapter "Subroutine and Entry Point Entries". What lies in other files
 * (split DWARF, a supplementary file of dwz's) is not read: code of such units has no inlined functions.
 */
#ifndef CLRPERF_READ_DEBUG_INFO_H
#define CLRPERF_READ_DEBUG_INFO_H

#include "read/debug_units.h"

enum { DEBUG_INLINED_MAX = 64 /* functions at one address; deeper ones are not answered */ };

/* One function that was inlined, and where that was. */
struct debug_inlined {
    const char *function;  /* as the linker would spell it, where that is known */
    const char *call_file; /* "" not known */
    uint32_t call_line;    /* 0 not known */
};

/* What was inlined at address `index`, the innermost first. Valid during the call. */
typedef void debug_info_fn(void *user, size_t index, const struct debug_inlined *inlined, size_t count);

/*
 * Answers those of `addrs` (as linked, ascending) at which something was inlined, each at most once. `units`:
 * of debug_units_find() for the same addresses. False when the file asks for too much work (ERROR_LIMIT):
 * what was found before counts.
 */
bool debug_info_find(const struct debug_sections *sections, const struct debug_units *units,
                     const uint64_t *addrs, debug_info_fn *answer, void *user, struct error *err);

#endif
