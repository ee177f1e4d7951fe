/*
 * jit_unwind: what the unwinder needs to know of one jitted method.
 *
 * A method's start leads to all of it: the word before the code points to the code header, which holds the
 * table of the body and its funclets (dotnet/runtime, src/coreclr/vm/codeman.h, RealCodeHeader; equal in .NET
 * 8, 9 and 10).
 */
#ifndef CLRPERF_UNWIND_JIT_UNWIND_H
#define CLRPERF_UNWIND_JIT_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/pe_unwind.h"

/* Reads exactly `size` bytes of the target; false when they are not there. */
typedef bool unwind_read_fn(void *user, uint64_t addr, void *into, size_t size);

enum { JIT_FUNCTIONS_MAX = 1024 };

struct jit_unwind;

/*
 * Reads what belongs to the method whose code starts at `start` (virtual, in the target), of the machine of
 * `format`. ERROR_INPUT when no
 * code header is there: the method was freed, or there is none. On success the caller ends with free().
 */
bool jit_unwind_read(const struct unwind_format *format, unwind_read_fn *read, void *user, uint64_t start,
                     struct jit_unwind **out, struct error *err);
/* The function around an address in the target; its begin and end are addresses there. */
bool jit_unwind_find(const struct jit_unwind *method, uint64_t addr, struct unwind_function *out);
size_t jit_unwind_bytes(const struct jit_unwind *method);

#endif
