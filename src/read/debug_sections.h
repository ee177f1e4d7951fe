/*
 * debug_sections: the DWARF sections of one ELF file that tell functions and lines.
 *
 * Specified in DWARF 5, 7.1.
 */
#ifndef CLRPERF_READ_DEBUG_SECTIONS_H
#define CLRPERF_READ_DEBUG_SECTIONS_H

#include "read/debug_line.h"
#include "read/elf_bytes.h"

enum { DEBUG_SECTIONS = 8 };

/* Without compression; those that the file does not have, or that are too large, are empty. */
struct debug_sections {
    struct elf_bytes info; /* large, and little of it is needed */
    struct source str;     /* large: when it is not compressed it stays in the file */
    struct span abbrev, addr, str_offsets, ranges, rnglists, aranges;
    struct debug_line_sections lines;
    struct buffer memory[DEBUG_SECTIONS]; /* owned: of the above */
    size_t memory_count;
};

/* What they are called in a file; NULL behind the last. */
extern const char *const debug_section_names[];

/* `e` is borrowed until they are closed. */
void debug_sections_open(const struct elf *e, struct debug_sections *out);
void debug_sections_close(struct debug_sections *sections);

#endif
