/*
 * managed_exception: the exception that a thread threw last, as it lies on the heap.
 *
 * A Thread of the runtime has a handle of it, also when it was handled since. Where in a Thread that is
 * differs between versions; it is found by its object's type, which derives from System.Exception
 * (dotnet/runtime, System.Private.CoreLib, Exception.cs; equal in .NET 8 to 11).
 */
#ifndef CLRPERF_CLR_MANAGED_EXCEPTION_H
#define CLRPERF_CLR_MANAGED_EXCEPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "clr/loaded_types.h"
#include "clr/managed_threads.h"

enum { MANAGED_EXCEPTIONS_MAX = 8 /* each the cause of the one before */ };

/* `type` as the runtime spells it, `message` in UTF-8, cut, empty where there is none; both valid during the
 * call. */
typedef void managed_exception_fn(void *user, const char *type, struct span message);
/* The thread's last exception, then what caused it. Nothing when it threw none, or it is not in memory. */
void managed_exception_list(struct loaded_types *types, const struct managed_thread *thread,
                            managed_exception_fn *emit, void *user);

#endif
