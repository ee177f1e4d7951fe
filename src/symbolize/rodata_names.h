/*
 * rodata_names: the identifiers that an image keeps in .rodata, by their addresses.
 */
#ifndef CLRPERF_SYMBOLIZE_RODATA_NAMES_H
#define CLRPERF_SYMBOLIZE_RODATA_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/source.h"
#include "read/elf.h"

struct rodata_names {
    const struct elf_section *section; /* borrowed */
    struct source bytes;               /* of it */
    struct buffer memory, text;
};

/* False when the image has no .rodata. `e` must outlive it; undo with rodata_names_done(). */
bool rodata_names_open(const struct elf *e, struct rodata_names *out);
void rodata_names_done(struct rodata_names *names);
bool rodata_names_cover(const struct rodata_names *names, uint64_t addr);
/*
 * The NUL-ended name at `addr`, until the next call: letters, digits, underscores and, `dotted`, dots. NULL
 * when there is none. At most 255 bytes.
 */
const char *rodata_names_at(struct rodata_names *names, uint64_t addr, bool dotted);

#endif
