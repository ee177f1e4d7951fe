/*
 * elf_symbols: an ELF file that holds nothing but names of code in another file.
 *
 * For tools that know ELF symbols only: perf looks for the symbols of any mapped file in an ELF file of that
 * path below its --symfs directory, or below /usr/lib/debug, and takes addresses for offsets in the mapped
 * file where the ELF file's sections say that the two are equal. Specified in the System V ABI, "Object
 * Files".
 */
#ifndef CLRPERF_RENDER_ELF_SYMBOLS_H
#define CLRPERF_RENDER_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "render/output.h"

struct elf_symbols_row {
    uint64_t file_off, size_bytes; /* in the other file */
    size_t name;                   /* offset of its NUL-ended text in the strings */
};

/*
 * `symbols` ascend; `strings` begins with a NUL. `build_id` is the other file's, in hex, or "": readers
 * compare. The strings' ceiling is below 4 GiB.
 */
void elf_symbols_write(const struct elf_symbols_row *symbols, size_t count, const struct buffer *strings,
                       const char *build_id, struct output *out);

#endif
