/*
 * debug_sections: the DWARF sections of one ELF file that tell functions and lines.
 *
 * Specified in DWARF 5, 7.1.
 */
#ifndef CLRPERF_READ_DEBUG_SECTIONS_H
#define CLRPERF_READ_DEBUG_SECTIONS_H

#include "read/debug_line.h"
#include "read/elf_bytes.h"

enum debug_section {
    DEBUG_SECTION_LINE,
    DEBUG_SECTION_INFO,
    DEBUG_SECTION_LINE_STR,
    DEBUG_SECTION_STR,
    DEBUG_SECTION_ABBREV,
    DEBUG_SECTION_ADDR,
    DEBUG_SECTION_STR_OFFSETS,
    DEBUG_SECTION_RANGES,
    DEBUG_SECTION_RNGLISTS,
    DEBUG_SECTION_ARANGES,
    DEBUG_SECTIONS
};

/* Without compression; those that the file does not have, or that are too large, are empty. */
struct debug_sections {
    struct elf_bytes info; /* large, and little of it is needed */
    struct source str;     /* large: when it is not compressed it stays in the file */
    struct span abbrev, addr, str_offsets, ranges, rnglists, aranges;
    struct debug_line_sections lines;
    struct buffer memory[DEBUG_SECTIONS]; /* owned: of those above that are loaded */
};

/* NULL when the file has it not. */
const struct elf_section *debug_section_of(const struct elf *e, enum debug_section which);
const char *debug_section_name(enum debug_section which);
/* `e` is borrowed until they are closed. */
void debug_sections_open(const struct elf *e, struct debug_sections *out);
void debug_sections_close(struct debug_sections *sections);

#endif
