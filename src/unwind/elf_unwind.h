/*
 * elf_unwind: what the unwinder needs to know of one ELF image.
 */
#ifndef CLRPERF_UNWIND_ELF_UNWIND_H
#define CLRPERF_UNWIND_ELF_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/source.h"
#include "read/code_starts.h"
#include "read/eh_index.h"

/* Addresses as linked. Belongs to one thread. */
struct elf_unwind {
    struct eh_index *index;    /* of the functions, or NULL */
    struct eh_rows rows;       /* where there is no index */
    struct code_starts starts; /* of the functions of an image that was built without tables */
    uint64_t entry;            /* the image's */
    uint64_t hijack; /* OnHijackTripThread, to which the .NET runtime bends return addresses; 0: not here */
    uint64_t hijack_end;
    uint64_t ahead; /* methods compiled ahead (Native AOT), of which tables tell prologs only; 0: none */
    uint64_t ahead_end;
    struct elf_segment *segments; /* the loaded ones */
    size_t segment_count;
};

/* `file` is not kept. Fails when it is no ELF file; one without unwind information has no rows. */
bool elf_unwind_open(const struct source *file, struct elf_unwind **out, struct error *err);
void elf_unwind_close(struct elf_unwind *image);

/* As eh_rows_find() and eh_rows_function(). A rule is valid until the image is asked again. */
const struct frame_rule *elf_unwind_rule(const struct elf_unwind *image, uint64_t addr);
bool elf_unwind_function(const struct elf_unwind *image, uint64_t addr, uint64_t *out_start,
                         uint64_t *out_end);
/*
 * The rule there with the register of that DWARF number in the place of the frame pointer. False when it is
 * not known, or not any more (all functions were compiled).
 */
bool elf_unwind_register(const struct elf_unwind *image, uint64_t addr, uint8_t number,
                         struct frame_rule *out);
/* Where the code around `addr`, of which no table tells, begins, nearly always. False when that is not known.
 */
bool elf_unwind_start(const struct elf_unwind *image, uint64_t addr, uint64_t *out_start);

/*
 * What to take from an address in the target to have it as linked, when file_off of the image is mapped at
 * `start`. False when that part of the file is not loaded: it is no code of this image.
 */
bool elf_unwind_bias(const struct elf_unwind *image, uint64_t start, uint64_t file_off, uint64_t *out_bias);

#endif
