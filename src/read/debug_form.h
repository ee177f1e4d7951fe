/*
 * debug_form: how the DWARF sections write values: lengths, offsets, and forms.
 *
 * Specified in DWARF 5, 7.4, 7.5.5 and 7.5.6, with the forms of versions 2 to 4 and those that GNU had before
 * version 5. Addresses have 8 bytes.
 */
#ifndef CLRPERF_READ_DEBUG_FORM_H
#define CLRPERF_READ_DEBUG_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

enum { DEBUG_ADDRESS_BYTES = 8, DEBUG_FORM_NOT_FIXED = UINT8_MAX };

enum debug_value_kind {
    DEBUG_VALUE_NONE,           /* there is no such attribute, or its value lies in another file */
    DEBUG_VALUE_CONSTANT,       /* `number` is it; of a signed one, too */
    DEBUG_VALUE_ADDRESS,        /* as linked */
    DEBUG_VALUE_ADDRESS_INDEX,  /* into .debug_addr */
    DEBUG_VALUE_OFFSET,         /* in the section that the attribute means */
    DEBUG_VALUE_LIST_INDEX,     /* into the offsets at the head of .debug_rnglists or .debug_loclists */
    DEBUG_VALUE_ENTRY,          /* offset of an entry, from the start of its unit */
    DEBUG_VALUE_ENTRY_ANYWHERE, /* from the start of .debug_info */
    DEBUG_VALUE_TEXT,           /* where in the cursor's bytes a NUL-ended text starts */
    DEBUG_VALUE_STRING,         /* offset in .debug_str */
    DEBUG_VALUE_LINE_STRING,    /* in .debug_line_str */
    DEBUG_VALUE_STRING_INDEX,   /* into .debug_str_offsets */
};

struct debug_value {
    enum debug_value_kind kind;
    uint64_t number;
};

/* How a unit writes its values. */
struct debug_encoding {
    unsigned version;
    bool is_64; /* offsets have 8 bytes, not 4 */
};

/* Reads what a unit begins with: how many bytes follow, and how it writes offsets. */
uint64_t debug_length_read(struct cursor *c, bool *out_is_64);
uint64_t debug_offset_read(struct cursor *c, bool is_64);
/* Reads a value. An unknown form fails the cursor: what follows cannot be found. */
struct debug_value debug_form_read(struct cursor *c, uint64_t form, int64_t implicit,
                                   struct debug_encoding how);
/* Bytes that every value of the form has besides *out_offsets offsets, or DEBUG_FORM_NOT_FIXED. */
uint8_t debug_form_bytes(uint64_t form, uint32_t *out_offsets);

#endif
