/*
 * managed_thread_object: the System.Threading.Thread that a program has of a thread.
 *
 * It leads to the runtime's own Thread (dotnet/runtime, System.Private.CoreLib, Thread.CoreCLR.cs; equal in
 * .NET 8 to 11).
 */
#ifndef CLRPERF_CLR_MANAGED_THREAD_OBJECT_H
#define CLRPERF_CLR_MANAGED_THREAD_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/loaded_types.h"
#include "clr/managed_threads.h"

#define MANAGED_THREAD_TYPE  "System.Threading.Thread"
#define MANAGED_THREAD_FIELD "_DONT_USE_InternalThread"

/* Whether objects of this MethodTable are such. */
bool managed_thread_is_type(struct loaded_types *types, uint64_t table);
/*
 * The thread whose object lies at `addr`, which is any word; NULL when no object of a thread that runs does.
 * `pages`: where objects are read.
 */
const struct managed_thread *managed_thread_of_object(struct loaded_types *types, struct memory_pages *pages,
                                                      const struct managed_threads *threads, uint64_t addr);

#endif
