/*
 * qcall_names: names of functions that a stripped .NET runtime still tells.
 *
 * Managed code calls into the runtime through tables of {name, function}, which must stay in the
 * image: two relocations next to each other in .data.rel.ro, the first to a C identifier in .rodata,
 * the second to a function. libcoreclr.so 10.0 has about 400 of them.
 */
#ifndef CLRPERF_SYMBOLIZE_QCALL_NAMES_H
#define CLRPERF_SYMBOLIZE_QCALL_NAMES_H

#include <stdbool.h>

#include "read/eh_frame.h"
#include "read/elf.h"
#include "symbolize/symbol_table.h"

/* Adds what it finds to `out`, unsorted; a row's name is an offset in the file. */
bool qcall_names_read(const struct elf *e, const struct eh_ranges *functions, struct symbol_table *out,
                      struct error *err);

#endif
