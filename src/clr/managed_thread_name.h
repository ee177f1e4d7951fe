/*
 * managed_thread_name: the name that a program gave a thread, as it lies on its heap.
 *
 * A Thread of the runtime has a handle of its object, a System.Threading.Thread, and that leads back to it.
 * Where in a Thread the handle is differs between versions and is found by just that; where in the object the
 * name is, by the names of the fields (dotnet/runtime, System.Private.CoreLib, Thread.CoreCLR.cs; equal in
 * .NET 8 to 11).
 */
#ifndef CLRPERF_CLR_MANAGED_THREAD_NAME_H
#define CLRPERF_CLR_MANAGED_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "clr/loaded_types.h"
#include "clr/managed_threads.h"

enum { MANAGED_THREAD_NAME_MAX = 256 }; /* characters of UTF-16 that are read of one */

/* Where names are, in bytes. */
struct managed_thread_name_place {
    uint32_t handle; /* into a Thread */
    uint32_t thread; /* into its object: the Thread again */
    uint32_t name;   /* into its object: a string */
};

/* False when none of `threads` has an object in the memory that `types` are read from, as in a small dump. */
bool managed_thread_name_place_find(struct loaded_types *types, const struct managed_threads *threads,
                                    struct managed_thread_name_place *out);

/* Appends the name in UTF-8, cut where it is longer than what is read. False when the thread has none, or its
 * object cannot be read. */
bool managed_thread_name_read(struct memory_pages *pages, const struct managed_thread_name_place *place,
                              const struct managed_thread *thread, struct buffer *out);

#endif
