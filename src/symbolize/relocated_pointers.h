/*
 * relocated_pointers: what the loader writes into an image's .data.rel.ro and .data, and the names that some
 * of it leads to.
 */
#ifndef CLRPERF_SYMBOLIZE_RELOCATED_POINTERS_H
#define CLRPERF_SYMBOLIZE_RELOCATED_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/eh_frame.h"
#include "read/elf.h"
#include "symbolize/rodata_names.h"

struct relocated_pointer {
    uint64_t addr, value;    /* as linked */
    uint32_t function_bytes; /* of the function that begins at `value`; 0: none does */
    bool relative;           /* to the image; else what is written is not known */
};

struct relocated_pointers {
    const struct elf *elf;                  /* borrowed */
    const struct eh_ranges *functions;      /* borrowed */
    const struct elf_section *fixed, *data; /* .data.rel.ro; .data, which may be NULL */
    struct relocated_pointer *rows;         /* in both, by address */
    size_t count, capacity;
    struct rodata_names names;
};

/* Fails when the image has no .data.rel.ro, or nothing is relocated; of very many the first are read. Undo
 * with relocated_pointers_done(). */
bool relocated_pointers_read(const struct elf *e, const struct eh_ranges *functions,
                             struct relocated_pointers *out, struct error *err);
void relocated_pointers_done(struct relocated_pointers *pointers);
/* Whether the place is in .data.rel.ro. */
bool relocated_pointers_fix(const struct relocated_pointers *pointers, uint64_t addr);
/* NULL: nothing is written there. */
const struct relocated_pointer *relocated_pointer_at(const struct relocated_pointers *pointers,
                                                     uint64_t addr);

#endif
