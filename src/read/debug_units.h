/*
 * debug_units: which units of .debug_info tell of the code at given addresses.
 *
 * By .debug_aranges, and for units that it does not list (clang writes none) by what each says of itself.
 * Specified in DWARF, versions 2 to 5, chapter "Accelerated Access".
 */
#ifndef CLRPERF_READ_DEBUG_UNITS_H
#define CLRPERF_READ_DEBUG_UNITS_H

#include "read/debug_unit.h"

#define DEBUG_NO_UNIT UINT64_MAX

struct debug_units {
    uint64_t *of_addr; /* offset of the unit in .debug_info, or DEBUG_NO_UNIT */
    size_t addr_count;
    uint64_t *offsets; /* the same, each once, ascending */
    size_t count;
};

/*
 * `addrs`: as linked, ascending. Where tables are damaged units are missing. False, with nothing in *out,
 * when the file asks for too much work (ERROR_LIMIT).
 */
bool debug_units_find(const struct debug_sections *sections, const uint64_t *addrs, size_t count,
                      struct debug_units *out, struct error *err);
void debug_units_done(struct debug_units *units);
/* Where their programs of .debug_line are, each once, ascending; `out` has room for one a unit. How many. */
size_t debug_units_line_programs(const struct debug_units *units, const struct debug_sections *sections,
                                 uint64_t *out);

#endif
