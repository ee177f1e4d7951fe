/*
 * stub_code: recognises the machine code that the runtime generates beside methods.
 *
 * Precodes, call counters, virtual dispatch and lookup helpers have fixed byte patterns, in which only
 * addresses differ. x86-64 (dotnet/runtime, src/coreclr/vm/amd64: thunktemplates.S, virtualcallstubcpu.hpp,
 * cgenamd64.cpp), seen on .NET 8, 9 and 10.
 */
#ifndef CLRPERF_CLR_STUB_CODE_H
#define CLRPERF_CLR_STUB_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

/* Code to look at: this many bytes from so many before the address in question. */
enum { STUB_CODE_BEFORE = 48, STUB_CODE_BYTES = 96 };

/*
 * What the instruction at `bytes.data + at` belongs to: "[fixup precode]" and the like; NULL when it is none
 * of the known kinds. `bytes` may be shorter than STUB_CODE_BYTES.
 */
const char *stub_code_kind(struct span bytes, size_t at);
/* What begins exactly there, with the bytes that are surely part of it; NULL when nothing known does. */
const char *stub_code_begin(struct span bytes, size_t at, size_t *out_size);

/*
 * With W^X the runtime's code heap is one memory file, whose first pages have had fixed uses since .NET 8:
 * the copied write barriers at its start, the delegates' shuffle thunks at 0xE000. What is at an offset in
 * that file, or NULL.
 */
const char *stub_code_place(uint64_t file_off);

#endif
