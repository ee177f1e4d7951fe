/*
 * fcall_names: names of the functions that a stripped .NET runtime implements managed methods by.
 *
 * A table in .data.rel.ro has three pointers a class: to its name and its namespace in .rodata, and to a list
 * of its functions: {flags, function, name}, 24 bytes or, with bit 1 of the flags, 32; bit 0 ends it
 * (dotnet/runtime, src/coreclr/vm/ecalllist.h and ecall.h). libcoreclr.so 8.0 has about 370, 10.0 200.
 */
#ifndef CLRPERF_SYMBOLIZE_FCALL_NAMES_H
#define CLRPERF_SYMBOLIZE_FCALL_NAMES_H

#include "base/buffer.h"
#include "symbolize/relocated_pointers.h"
#include "symbolize/symbol_table.h"

/* Adds what it finds to `out`, unsorted: "Namespace.Class.Method"; a row's name is an offset in `strings`. */
void fcall_names_find(struct relocated_pointers *pointers, struct symbol_table *out, struct buffer *strings);

#endif
