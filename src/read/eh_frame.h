/*
 * eh_frame: the call frame information of an ELF image's functions.
 *
 * Every function that can be unwound has an FDE with its address range, also in stripped images.
 * Specified in the Linux Standard Base, "Exception Frames", and DWARF 5, 6.4.
 */
#ifndef CLRPERF_READ_EH_FRAME_H
#define CLRPERF_READ_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/elf.h"

struct eh_cie {
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    uint8_t pointer_encoding; /* of the FDE's addresses, DW_EH_PE_* */
    uint8_t lsda_encoding;    /* of where a language keeps data of its own of an FDE's function */
    bool has_augmentation;    /* its FDEs carry an augmentation, length first */
    bool signal_frame;        /* the kernel calls it: its return address is not after a call */
    struct span instructions;
};

struct eh_fde {
    struct eh_cie cie;
    uint64_t start, size_bytes; /* the function's addresses, as linked */
    struct span instructions;   /* empty: no rows but the CIE's */
    struct span augmentation;
};

struct eh_frame_iterator {
    struct cursor c;
    uint64_t section_addr;
    uint64_t cie_off; /* of the CIE in `cie`; most FDEs share the last one */
    struct eh_cie cie;
    bool cie_known;
    uint64_t skipped; /* records that could not be understood */
};

/*
 * The section of an image and where it is linked. *out is initialised here and the caller's to end, also on
 * failure. Fails without .eh_frame, or when it exceeds 128 MiB.
 */
bool eh_frame_load(const struct elf *e, struct buffer *out, uint64_t *out_addr, struct error *err);
/* `section` is the content of .eh_frame, borrowed, and linked at `section_addr`. */
struct eh_frame_iterator eh_frame_over(struct span section, uint64_t section_addr);
/* The next FDE; false at the end or where the section is damaged. */
bool eh_frame_next(struct eh_frame_iterator *it, struct eh_fde *out);

/* Where the function's language keeps data of its own; false when it has none there. */
bool eh_fde_lsda(const struct eh_frame_iterator *it, const struct eh_fde *fde, uint64_t *out_addr);

struct eh_range {
    uint32_t start; /* from the table's base */
    uint32_t size_bytes;
};

/* The functions of an image, sorted by their start; of two with the same start the larger one comes last. */
struct eh_ranges {
    uint64_t base; /* as elf_base_addr() */
    struct eh_range *rows;
    size_t count;
    uint32_t *steps; /* [i]: how many rows start below i << step_bits; NULL: not known */
    size_t step_count;
    unsigned step_bits;
};

/* Fails as eh_frame_load() does. */
bool eh_ranges_read(const struct elf *e, struct eh_ranges *out, struct error *err);
void eh_ranges_done(struct eh_ranges *ranges);
/* As u32le count, and of each row u32le start and size. */
void eh_ranges_append(const struct eh_ranges *ranges, struct buffer *out);
/* What was appended of the same image. False when it cannot be that; *out has no rows then. */
bool eh_ranges_take(struct cursor *c, const struct elf *e, struct eh_ranges *out);
/* The function around `addr`; false when none covers it. */
bool eh_ranges_find(const struct eh_ranges *ranges, uint64_t addr, uint64_t *out_start, uint64_t *out_size);

#endif
