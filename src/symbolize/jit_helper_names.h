/*
 * jit_helper_names: names of the functions that jitted code calls in a stripped .NET runtime.
 *
 * The runtime has a table of these helpers in the order of its jithelpers.h (enum CorInfoHelpFunc): in
 * .data.rel.ro, 8 bytes a helper, either a function, nothing, or an index into a second table in .data, whose
 * functions the runtime may replace when it starts. The order is fixed for a major version; which of the
 * three each of 56 helpers or more in a row is tells the versions apart and finds the table without a symbol.
 * The tables of 8, 9, 10 and 11 are known; another version's stays without these names.
 */
#ifndef CLRPERF_SYMBOLIZE_JIT_HELPER_NAMES_H
#define CLRPERF_SYMBOLIZE_JIT_HELPER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "symbolize/relocated_pointers.h"
#include "symbolize/symbol_table.h"

/* What one place of a section holds. */
enum helper_slot_kind { HELPER_SLOT_OTHER, HELPER_SLOT_NONE, HELPER_SLOT_INDEX, HELPER_SLOT_FUNCTION };

struct helper_slot {
    uint64_t value; /* an index, or a function's address as linked */
    uint8_t kind;
};

struct helper_slots {
    struct helper_slot *rows;
    size_t count;
};

typedef void helper_found_fn(void *user, const char *name, uint64_t function);
/*
 * Finds the table in `fixed` (.data.rel.ro), and its replaceable part in `replaceable` (.data); tells the
 * named functions, those without a place in `replaceable` left out. False when there is none that is known.
 */
bool jit_helper_table_find(const struct helper_slots *fixed, const struct helper_slots *replaceable,
                           helper_found_fn *found, void *user);

/*
 * Adds what it finds to `out`, unsorted; a row's name is an offset in `strings`. Small functions beside the
 * allocation helpers that only lead to them are "[allocation helper]".
 */
bool jit_helper_names_find(const struct relocated_pointers *pointers, struct symbol_table *out,
                           struct buffer *strings, struct error *err);

#endif
