/*
 * debug_ranges: where the code of an entry of .debug_info lies.
 *
 * From DW_AT_low_pc and DW_AT_high_pc, or DW_AT_ranges with .debug_ranges (DWARF 2 to 4) or .debug_rnglists
 * (DWARF 5). Specified in the chapters "Non-Contiguous Address Ranges" and "Range List Table".
 */
#ifndef CLRPERF_READ_DEBUG_RANGES_H
#define CLRPERF_READ_DEBUG_RANGES_H

#include "read/debug_unit.h"

struct debug_ranges {
    const struct debug_unit *unit;
    const struct debug_sections *sections;
    struct cursor list;  /* failed: there is no more */
    uint64_t base;       /* of the offsets in the list */
    uint64_t begin, end; /* of an entry without list, once; empty: none */
};

/* All borrowed. An entry without code has no ranges; of damaged lists there are those before the damage. */
struct debug_ranges debug_ranges_of(const struct debug_unit *unit, const struct debug_sections *sections,
                                    const struct debug_entry *entry);
/*
 * The next entry of the list: as linked, `*out_end` excluded. Empty, both 0, when it says nothing of code: so
 * each call is a step that takes bytes of the file. False at the end.
 */
bool debug_ranges_next(struct debug_ranges *ranges, uint64_t *out_begin, uint64_t *out_end);

#endif
