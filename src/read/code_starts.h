/*
 * code_starts: where the functions of an ELF image begin that no table tells of.
 *
 * A stripped library without unwind tables says of a function only that somebody refers to it: calls, takes
 * its address, has it in a table of pointers; or that it follows one of which more is known. All code is read
 * once for that. What is found is a function's start nearly always, but not every start is found: then the
 * function before it seems to go on. x86-64 only.
 */
#ifndef CLRPERF_READ_CODE_STARTS_H
#define CLRPERF_READ_CODE_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/eh_frame.h"
#include "read/elf.h"

/* Sorted; from elf_base_addr(). */
struct code_starts {
    uint64_t base;
    uint32_t *rows;
    size_t count, capacity;
};

/*
 * `functions` are those that the unwind tables tell of. Fails for another machine, and when the image has
 * more than 256 MiB of code, or 64 sections of it.
 */
bool code_starts_read(const struct elf *e, const struct eh_ranges *functions, struct code_starts *out,
                      struct error *err);
/*
 * Whether that may name anything to speak of: not where there is much code, and the tables tell of nearly all
 * of it. Compilers and browsers have 20 to 150 MiB, which take a second to be read.
 */
bool code_starts_are_worth_it(const struct elf *e, const struct eh_ranges *functions);
void code_starts_done(struct code_starts *starts);
/* The nearest start at or before `addr`; false when there is none. */
bool code_starts_before(const struct code_starts *starts, uint64_t addr, uint64_t *out_start);
/*
 * The start of the function around `addr`, which lies in none that the tables tell of. False when another
 * section, or one of those, begins or ends in between.
 */
bool code_starts_find(const struct code_starts *starts, const struct elf *e,
                      const struct eh_ranges *functions, uint64_t addr, uint64_t *out_start);

#endif
