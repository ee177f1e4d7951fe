/*
 * memory: the memory of a process, seen from outside.
 *
 * One small interface over a live process, a core dump or a recorded snapshot; whoever walks structures of a
 * target sees nothing else. Every byte is the target's and untrusted, and may change between two reads.
 */
#ifndef CLRPERF_BASE_MEMORY_H
#define CLRPERF_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_PAGE_BYTES = 4096 };

struct memory_mapping {
    uint64_t start, end; /* virtual, start < end */
    uint64_t file_off;
    uint64_t inode; /* 0: of no file */
    bool readable, writable, executable, shared;
    bool deleted;     /* its file has no name any more; `path` is the one it had */
    const char *path; /* "[heap]" and the like, or ""; owned by whoever made the memory */
};

struct memory_piece {
    uint64_t addr;
    void *into; /* `size` bytes, the caller's */
    size_t size;
    size_t got; /* set by the read: how many bytes from `addr` on were there */
};

struct memory_path;
/* A page of the memory. */
typedef void memory_page_fn(void *to, uint64_t addr, const uint8_t bytes[MEMORY_PAGE_BYTES]);

struct memory {
    /* Reads all pieces; sets each piece's `got`. Never waits for the target without a deadline. */
    void (*read)(void *user, struct memory_piece *pieces, size_t count);
    void *user;
    const struct memory_mapping *mappings; /* by address, not overlapping; borrowed */
    size_t mapping_count;
    bool partial; /* a dump that left things out: an address outside of the mappings can have been one */
    /*
     * Hands out the pages that a path leads through, as far as they are there. NULL where to ask place by
     * place costs no more.
     */
    void (*follow)(void *user, const struct memory_path *path, memory_page_fn *emit, void *to);
};

/* Whether all `size` bytes at `addr` could be read into `into`, which is zeroed where they could not. */
bool memory_read(const struct memory *memory, uint64_t addr, void *into, size_t size);
/* The mapping that holds `addr`, or NULL. */
const struct memory_mapping *memory_mapping_at(const struct memory *memory, uint64_t addr);

#endif
