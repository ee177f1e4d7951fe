/*
 * debug_unit: one unit of .debug_info, and its entries.
 *
 * Specified in DWARF, versions 2 to 5, chapter "Format of Debugging Information". Only of the attributes that
 * tell where code is, and what it is called. What lies in other files (split DWARF, a supplementary file of
 * dwz's) is not read: such values are DEBUG_VALUE_NONE.
 */
#ifndef CLRPERF_READ_DEBUG_UNIT_H
#define CLRPERF_READ_DEBUG_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "read/debug_abbrev.h"
#include "read/debug_form.h"
#include "read/debug_sections.h"

enum debug_tag {
    DEBUG_TAG_ENUMERATION_TYPE = 0x04,
    DEBUG_TAG_CLASS_TYPE = 0x02,
    DEBUG_TAG_STRUCTURE_TYPE = 0x13,
    DEBUG_TAG_UNION_TYPE = 0x17,
    DEBUG_TAG_INLINED_SUBROUTINE = 0x1d,
    DEBUG_TAG_SUBPROGRAM = 0x2e,
};

/* The attributes that are read. */
enum debug_field {
    DEBUG_SIBLING,
    DEBUG_NAME,
    DEBUG_LINKAGE_NAME,
    DEBUG_LOW_PC,
    DEBUG_HIGH_PC,
    DEBUG_RANGES,
    DEBUG_ORIGIN, /* DW_AT_abstract_origin, else DW_AT_specification */
    DEBUG_CALL_FILE,
    DEBUG_CALL_LINE,
    DEBUG_STMT_LIST,
    DEBUG_STR_OFFSETS_BASE,
    DEBUG_ADDR_BASE,
    DEBUG_RNGLISTS_BASE,
    DEBUG_FIELDS
};

struct debug_entry {
    uint16_t tag; /* enum debug_tag, or another; 0: the end of a list of children */
    bool has_children;
    struct debug_value fields[DEBUG_FIELDS];
};

struct debug_unit {
    uint64_t offset; /* in .debug_info */
    uint64_t size_bytes;
    struct debug_encoding encoding;
    struct cursor entries; /* over the unit with its header; behind that */
    struct debug_abbrevs abbrevs;
    struct debug_entry root; /* what the unit says of itself */
    uint64_t base_addr;
    struct buffer memory; /* when .debug_info is not in memory */
};

/* A zeroed unit may be opened, and again: it keeps its memory. */
void debug_unit_init(struct debug_unit *unit);
void debug_unit_done(struct debug_unit *unit);
/*
 * Opens the unit at an offset and reads what it says of itself. `sections` are borrowed. False when it is
 * damaged, of an unknown version or not of code; then only offset and size_bytes count, which is 0 when not
 * even the next unit can be found.
 */
bool debug_unit_open(struct debug_unit *unit, const struct debug_sections *sections, uint64_t offset);
/* The same of its beginning only, which is enough for its root but for nothing else. */
bool debug_unit_peek(struct debug_unit *unit, const struct debug_sections *sections, uint64_t offset);

/* Reads the entry's abbreviation; NULL at the end of a list of children, or when `c` fails. */
const struct debug_abbrev *debug_unit_next(struct debug_unit *unit, struct cursor *c);
/* Reads the rest of that entry. */
void debug_unit_read(const struct debug_unit *unit, struct cursor *c, const struct debug_abbrev *abbrev,
                     struct debug_entry *out);
/* Passes the rest of that entry. Returns how many attributes were looked at. */
uint32_t debug_unit_skip(const struct debug_unit *unit, struct cursor *c, const struct debug_abbrev *abbrev);

/* What an address, or an index of one, is. False when there is none. */
bool debug_unit_address(const struct debug_unit *unit, const struct debug_sections *sections,
                        struct debug_value value, uint64_t *out);
/* Puts a text, NUL-ended, into `out`. False when there is none. */
bool debug_unit_text(const struct debug_unit *unit, const struct debug_sections *sections,
                     struct debug_value value, struct buffer *out);

#endif
