/*
 * async_method: the methods whose code is not their own, as the runtime suspends them (from .NET 11 on).
 *
 * A compiler that leaves suspending to the runtime marks a method (MethodImplAttributes.Async). What was
 * written is then compiled as the form that is awaited; the form that returns a Task is the runtime's, and
 * calls it: METHOD_ASYNC_THUNK in clr/method_name. Of a method without the mark both forms are compiled from
 * what was written. Source: docs/design/specs/runtime-async.md in dotnet/runtime, and what 11.0.0 shows in
 * its own stacks.
 */
#ifndef CLRPERF_SYMBOLIZE_ASYNC_METHOD_H
#define CLRPERF_SYMBOLIZE_ASYNC_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "read/ecma_metadata.h"

/* Of the form of a method (a row of MethodDef) that is not the one that is awaited. */
bool async_method_is_thunk(const struct ecma_metadata *md, uint32_t method);

#endif
