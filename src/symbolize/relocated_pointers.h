/*
 * relocated_pointers: what the loader writes into an image's .data.rel.ro, and the names that some of it
 * leads to.
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
    uint64_t addr, value; /* as linked */
};

struct relocated_pointers {
    const struct elf *elf;             /* borrowed */
    const struct eh_ranges *functions; /* borrowed */
    const struct elf_section *section; /* .data.rel.ro */
    struct relocated_pointer *rows;    /* in it, by address */
    size_t count, capacity;
    struct rodata_names names;
};

/* Fails when the image has no such section, or nothing in it that is relocated. Undo with
 * relocated_pointers_done(). */
bool relocated_pointers_read(const struct elf *e, const struct eh_ranges *functions,
                             struct relocated_pointers *out, struct error *err);
void relocated_pointers_done(struct relocated_pointers *pointers);
/* Whether the place is in the section. */
bool relocated_pointers_cover(const struct relocated_pointers *pointers, uint64_t addr);
/* 0: there is none. */
uint64_t relocated_pointer_at(const struct relocated_pointers *pointers, uint64_t addr);
/* Whether a function begins there, and how long it is. */
bool relocated_pointers_function(const struct relocated_pointers *pointers, uint64_t addr,
                                 uint64_t *out_size_bytes);

#endif
