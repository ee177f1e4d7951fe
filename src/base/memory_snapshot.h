/*
 * memory_snapshot: memory that was recorded, for tests and fuzzing.
 *
 * Little-endian: "CLRPMEM1", u32 mappings, u32 runs; each mapping u64 start, u64 end, u64 file_off,
 * u64 inode, u8 flags (1 r, 2 w, 4 x, 8 shared), u16 length and bytes of its path; each run u64 addr, u32
 * size and its bytes. Runs that overlap: the first one counts. What is in a mapping and in no run is zero;
 * outside of the mappings nothing can be read.
 */
#ifndef CLRPERF_BASE_MEMORY_SNAPSHOT_H
#define CLRPERF_BASE_MEMORY_SNAPSHOT_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/memory.h"

struct memory_snapshot {
    struct memory memory;
    struct arena arena;
    struct memory_run {
        uint64_t addr;
        struct span bytes;
    } * runs;
    size_t run_count;
};

/* `bytes` is borrowed for as long as the snapshot is used. Undo with memory_snapshot_done(). */
bool memory_snapshot_open(struct span bytes, struct memory_snapshot *out, struct error *err);
void memory_snapshot_done(struct memory_snapshot *snapshot);

#endif
