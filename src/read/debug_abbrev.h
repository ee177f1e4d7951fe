/*
 * debug_abbrev: one table of .debug_abbrev, which says what attributes the entries of a DWARF unit have.
 *
 * Specified in DWARF, versions 2 to 5, chapter "Abbreviations Tables". Read as far as it is asked.
 */
#ifndef CLRPERF_READ_DEBUG_ABBREV_H
#define CLRPERF_READ_DEBUG_ABBREV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct debug_attribute {
    uint16_t name, form;
    int64_t implicit; /* the value itself, of DW_FORM_implicit_const */
};

struct debug_abbrev {
    uint64_t code;
    uint16_t tag;
    bool has_children;
    bool is_fixed;        /* its entries' attributes take fixed_bytes, and as many offsets and addresses */
    uint32_t fixed_bytes; /* without those */
    uint32_t fixed_offsets;
    uint32_t first, count; /* attributes */
};

struct debug_abbrevs {
    struct cursor rest; /* what was not read yet; failed: there is no more */
    struct debug_abbrev *items;
    size_t count, capacity;
    struct debug_attribute *attributes;
    size_t attribute_count, attribute_capacity;
    uint64_t looked; /* how many were read or passed, ever: work that a file can ask for */
};

/* Takes the table at `offset`; `a` is zero or was in use, and keeps its memory. `section` is borrowed. */
void debug_abbrevs_open(struct debug_abbrevs *a, struct span section, uint64_t offset);
void debug_abbrevs_done(struct debug_abbrevs *a);
/* NULL when the table has no such code. Valid until the next call. */
const struct debug_abbrev *debug_abbrevs_find(struct debug_abbrevs *a, uint64_t code);

#endif
