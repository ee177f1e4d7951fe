/*
 * qcall_names: names of functions that a stripped .NET runtime still tells.
 *
 * Managed code calls into the runtime through tables of {name, function}, which must stay in the
 * image: two relocations next to each other in .data.rel.ro, the first to a C identifier in .rodata,
 * the second to a function. libcoreclr.so 10.0 has about 400 of them.
 */
#ifndef CLRPERF_SYMBOLIZE_QCALL_NAMES_H
#define CLRPERF_SYMBOLIZE_QCALL_NAMES_H

#include "symbolize/relocated_pointers.h"
#include "symbolize/symbol_table.h"

/* Adds what it finds to `out`, unsorted; a row's name is an offset in the file. */
void qcall_names_find(struct relocated_pointers *pointers, struct symbol_table *out);

#endif
