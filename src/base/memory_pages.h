/*
 * memory_pages: a process's memory in pages, each read once a pass.
 *
 * Structures of a runtime lie close together, and a read of eight bytes costs as much as one of a page. What
 * cannot be read is zero, as a row that is not there; whoever follows pointers checks what it finds anyway.
 * A page shows the target as it was when the page was first asked for: drop them for a new look.
 */
#ifndef CLRPERF_BASE_MEMORY_PAGES_H
#define CLRPERF_BASE_MEMORY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/memory_path.h"

struct memory_pages {
    const struct memory *memory; /* borrowed */
    size_t pages_max;
    uint8_t **chunks; /* of pages, which do not move */
    size_t chunk_count, chunk_capacity;
    size_t count; /* of pages that were read, in the chunks one after the other */
    struct memory_page {
        uint64_t key;         /* its address and in the low bits its state; 0: this place is free */
        const uint8_t *bytes; /* NULL: not read yet */
    } * table;                /* by a hash of the address, in the next free place when that is taken */
    size_t table_size;        /* a power of two, at least twice as many as are taken */
    unsigned table_shift;     /* of the hash, to a group of four places */
    size_t taken;
    uint64_t *wanted; /* numbers asked for ahead */
    size_t wanted_count, wanted_capacity;
    uint64_t *again; /* numbers that were asked for before the last drop, ascending */
    size_t again_count, again_capacity;
    bool again_due; /* they were not read since */
    bool forgot;    /* some of what was asked for since the last drop */
    uint64_t reads; /* pages asked of the target so far */
};

/* At most `bytes_max` are held; pages past that cannot be read. */
void memory_pages_init(struct memory_pages *pages, const struct memory *memory, size_t bytes_max);
void memory_pages_done(struct memory_pages *pages);
/*
 * Forgets all pages; later reads see the target anew. Who looks again mostly looks at the same: the first
 * read brings the pages that were asked for since the last drop, in one go.
 */
void memory_pages_drop(struct memory_pages *pages);

/* The same for who looks at little: nothing is brought. */
void memory_pages_forget(struct memory_pages *pages);

/* Forgets all pages and gives their memory back. */
void memory_pages_trim(struct memory_pages *pages);

/* Notes that the bytes will be needed; memory_pages_fetch() reads what was noted in a few large reads. */
void memory_pages_want(struct memory_pages *pages, uint64_t addr, uint64_t size);
void memory_pages_fetch(struct memory_pages *pages);

/*
 * Reads ahead where a path leads, in one go when anything of it is not at hand, or was read before `reads`
 * was `since` (0: any time): pages that are older are replaced.
 */
void memory_pages_follow(struct memory_pages *pages, uint64_t since, const struct memory_path *path);

/*
 * Replaces each address by the pointer at `offset` from it, without the three low bits, in which runtimes
 * keep marks; 0 leads nowhere. The pages of all are read in a few large reads.
 */
void memory_pages_follow_all(struct memory_pages *pages, uint64_t *addrs, size_t count, uint64_t offset);

/* Says that a byte will be looked at soon: when its page is at hand, the CPU's caches get it meanwhile. */
void memory_pages_prefetch(const struct memory_pages *pages, uint64_t addr);

/* As memory_read(). */
bool memory_pages_read(struct memory_pages *pages, uint64_t addr, void *into, size_t size);
/* Asks the target for nothing: false unless it is all in pages that were read since `reads` was `since`. */
bool memory_pages_read_since(const struct memory_pages *pages, uint64_t since, uint64_t addr, void *into,
                             size_t size);
/* Little-endian; 0 when it cannot be read. */
uint64_t memory_pages_u64(struct memory_pages *pages, uint64_t addr);
uint32_t memory_pages_u32(struct memory_pages *pages, uint64_t addr);
uint16_t memory_pages_u16(struct memory_pages *pages, uint64_t addr);
uint8_t memory_pages_u8(struct memory_pages *pages, uint64_t addr);

#endif
