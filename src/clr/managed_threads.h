/*
 * managed_threads: a runtime's own list of its threads, read from memory.
 *
 * The ThreadStore, found by its slot of g_dacTable, links the Threads; a Thread tells its numbers, the
 * monitor it is blocked at (up to .NET 10: later ones wait in managed code), and where it allocates. Offsets
 * are those of .NET 8.0, 9.0 and 10.0 (dotnet/runtime, src/coreclr/vm/threads.h, syncblk.h), or what a later
 * one says itself; the slot is not trusted: a list counts only when its threads are threads of the process.
 */
#ifndef CLRPERF_CLR_MANAGED_THREADS_H
#define CLRPERF_CLR_MANAGED_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/memory_pages.h"
#include "clr/runtime_root.h"

enum {
    MANAGED_THREADS_MAX = 1 << 16,
    MANAGED_THREAD_BYTES = 0x600, /* of a Thread, in which handles are looked for */
};

enum blocking_kind { BLOCKING_NONE, BLOCKING_ENTER, BLOCKING_WAIT };

struct managed_thread {
    uint64_t addr; /* of the Thread */
    pid_t tid;     /* as the process sees it; 0: not started yet, or ended */
    uint32_t managed_id;
    uint8_t blocking;    /* enum blocking_kind */
    uint64_t sync_block; /* that it is blocked at */
    int32_t timeout_ms;  /* of that; -1: for ever */
    uint64_t allocates_from,
        allocates_to; /* where its next objects will lie: none is there yet. 0: nowhere */
};

/* Into ThreadStore (first) and Thread. The allocation context lies in the Thread, or from 9 on in what it
 * points to. */
struct managed_thread_offsets {
    uint16_t first, link, tid, managed_id;
    uint16_t linked;        /* where in a Thread links lead: up to 10 to the link, then to the Thread */
    uint16_t blocking;      /* or 0 */
    uint16_t runtime_local; /* the pointer, or 0 */
    uint16_t context;
};

struct managed_threads {
    unsigned major; /* of the runtime: 8, 9, 10, 11 */
    struct managed_thread_offsets offsets;
    uint64_t table;      /* g_dacTable */
    uint64_t store;      /* the ThreadStore */
    uint64_t sync_table; /* where the table of sync blocks is told; 0: not known yet. See managed_lock */
    struct managed_thread *items;
    size_t count, capacity;
};

/*
 * Finds the list. `layout`: as code_walk_report has it, "10.0". `tids`: the process's threads as it sees them
 * itself, ascending. ERROR_UNSUPPORTED when this runtime's list is not known, or none found fits.
 */
bool managed_threads_open(struct memory_pages *pages, const struct runtime_root *root, const char *layout,
                          const pid_t *tids, size_t tid_count, struct managed_threads *out,
                          struct error *err);
void managed_threads_done(struct managed_threads *threads);
/* Those of a version that does not tell them itself. False when they are not known. */
bool managed_thread_offsets_of(unsigned major, struct managed_thread_offsets *out);
/* Reads the list anew. False when it makes no sense just now. */
bool managed_threads_read(struct managed_threads *threads, struct memory_pages *pages);
/* The object that a handle of the runtime's is of, or 0. */
uint64_t managed_handle_object(struct memory_pages *pages, uint64_t handle);
/* NULL when there is none. */
const struct managed_thread *managed_threads_by_id(const struct managed_threads *threads,
                                                   uint32_t managed_id);
const struct managed_thread *managed_threads_by_tid(const struct managed_threads *threads, pid_t tid);

#endif
