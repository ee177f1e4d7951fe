/*
 * plt_stubs: names of the jump stubs through which an image calls functions of other images.
 *
 * A stub loads its target from a slot; the dynamic relocation of that slot names the function. The
 * stub is shown as "malloc@plt", as debuggers do. Specified in the psABI of each machine, "Procedure
 * Linkage Table".
 */
#ifndef CLRPERF_SYMBOLIZE_PLT_STUBS_H
#define CLRPERF_SYMBOLIZE_PLT_STUBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "read/elf.h"

struct plt_slot {
    uint64_t addr;
    uint32_t symbol; /* in .dynsym */
};

struct plt_stubs {
    const struct elf *elf;  /* borrowed */
    struct plt_slot *slots; /* sorted, read when the first stub is asked for */
    size_t count, capacity;
    bool known;
};

void plt_stubs_init(struct plt_stubs *stubs, const struct elf *e);
void plt_stubs_done(struct plt_stubs *stubs);
/*
 * Puts the raw name of the function behind the stub at `addr` into `name`, NUL-ended; "" when it
 * cannot be told. False when `addr` is in no section of stubs.
 */
bool plt_stubs_find(struct plt_stubs *stubs, uint64_t addr, struct buffer *name, uint64_t *out_start);

#endif
