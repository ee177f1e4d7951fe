/*
 * aot_names: names of the methods in a Native AOT program, also in a stripped one.
 */
#ifndef CLRPERF_SYMBOLIZE_AOT_NAMES_H
#define CLRPERF_SYMBOLIZE_AOT_NAMES_H

#include "base/buffer.h"
#include "read/elf.h"
#include "symbolize/symbol_table.h"

/*
 * Adds the methods to `out`, unsorted, and their handlers of exceptions, which are functions of their own
 * behind them. A row's name is an offset in `strings`: "Assembly!Ns.Type`1+Nested::Method", NUL-ended.
 * Nothing for another image.
 */
void aot_names_find(const struct elf *e, struct symbol_table *out, struct buffer *strings);

#endif
