/*
 * elf_bytes: the bytes of one section of an ELF file, read or unpacked as far as they are asked for.
 *
 * For sections of which only a few parts are needed, and which are too large to be loaded for that.
 */
#ifndef CLRPERF_READ_ELF_BYTES_H
#define CLRPERF_READ_ELF_BYTES_H

#include "read/elf.h"

struct unpacking;

struct elf_bytes {
    struct source bytes; /* when they are not compressed; borrowed */
    struct unpacking *unpacking;
    uint64_t size;
};

/* `e` is borrowed. Fails as elf_section_source(); ERROR_LIMIT when it unpacks to more than `ceiling`. */
bool elf_bytes_open(const struct elf *e, const struct elf_section *section, size_t ceiling,
                    struct elf_bytes *out, struct error *err);
struct elf_bytes elf_bytes_over_span(struct span bytes);
void elf_bytes_close(struct elf_bytes *b);
/*
 * A part; empty when it is not all there. Valid as long as `b`, or until `memory` is used again, into which
 * what lies in a file is read.
 */
struct span elf_bytes_get(const struct elf_bytes *b, uint64_t offset, uint64_t size, struct buffer *memory);

#endif
