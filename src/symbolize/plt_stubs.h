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
    uint32_t symbol;   /* in .dynsym, or 0 */
    uint64_t resolver; /* with symbol 0: the address of the function that chooses the target */
};

struct plt_stubs {
    const struct elf *elf;  /* borrowed */
    struct plt_slot *slots; /* sorted, read when the first stub is asked for */
    size_t count, capacity;
    bool known;
};

void plt_stubs_init(struct plt_stubs *stubs, const struct elf *e);
void plt_stubs_done(struct plt_stubs *stubs);
struct plt_stub {
    uint64_t start;
    /*
     * With an empty name: the function of this image that chooses the target (an ifunc's resolver,
     * which the symbol table knows by the name of the ifunc), or 0.
     */
    uint64_t resolver;
};

/*
 * Puts the raw name of the function behind the stub at `addr` into `name`, NUL-ended; "" when no
 * dynamic symbol tells it. False when `addr` is in no section of stubs.
 */
bool plt_stubs_find(struct plt_stubs *stubs, uint64_t addr, struct buffer *name, struct plt_stub *out);

#endif
