/*
 * managed_lock: a monitor or a System.Threading.Lock as it lies in memory, with who holds it.
 *
 * A monitor that somebody waits for is a SyncBlock (dotnet/runtime, src/coreclr/vm/syncblk.h; equal in .NET
 * 8, 9 and 10 but for how it names its owner); its object is found in the table of sync blocks, whose slot of
 * g_dacTable moves even between servicing releases and is therefore recognised by objects that point back.
 * From 11 on a monitor that somebody waits for is a System.Threading.Lock that its SyncBlock has a handle of.
 */
#ifndef CLRPERF_CLR_MANAGED_LOCK_H
#define CLRPERF_CLR_MANAGED_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/managed_threads.h"

struct managed_lock {
    uint64_t object; /* its address, 0 when it was not found */
    uint64_t table;  /* MethodTable of the object, or 0 */
    pid_t owner;     /* as the process sees it; 0: nobody holds it, or its number is not known */
    uint32_t recursion;
    bool abandoned; /* its owner is none of the threads: it has ended, and nobody will leave it */
};

/* A monitor. False when what is there contradicts itself: its owner is none of `threads`, and no object has
 * it. */
bool managed_lock_read_monitor(struct memory_pages *pages, struct managed_threads *threads,
                               uint64_t sync_block, struct managed_lock *out);
/* Whether monitors are System.Threading.Locks. */
bool managed_lock_in_monitors(const struct managed_threads *threads);
/* The object whose monitor is that System.Threading.Lock, or 0: it is nobody's monitor. */
uint64_t managed_lock_monitor_of(struct memory_pages *pages, const struct managed_threads *threads,
                                 uint64_t lock);
/* A System.Threading.Lock object (9 and later). False when nobody of `threads` holds it. */
bool managed_lock_read_object(struct memory_pages *pages, const struct managed_threads *threads,
                              uint64_t object, struct managed_lock *out);
/* The MethodTable of an object, or 0. */
uint64_t managed_object_table(struct memory_pages *pages, uint64_t object);
/* Whether `addr`, any word, is where objects can be. */
bool managed_object_may_be_at(const struct memory_pages *pages, uint64_t addr);
/* The same where `addr` is any word, and perhaps no object: 0 when it cannot be one. */
uint64_t managed_object_at(struct memory_pages *pages, uint64_t addr);

#endif
