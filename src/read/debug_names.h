/*
 * debug_names: the names of functions that entries of .debug_info are instances of.
 *
 * An instance refers to where the function was described (DW_AT_abstract_origin, DW_AT_specification), and
 * that again, also in another unit.
 */
#ifndef CLRPERF_READ_DEBUG_NAMES_H
#define CLRPERF_READ_DEBUG_NAMES_H

#include "read/debug_unit.h"

struct debug_names {
    const struct debug_sections *sections; /* borrowed */
    struct debug_unit other;               /* the unit that was referred to last */
    bool other_open;
    uint64_t *starts; /* of all units, ascending; read when first needed */
    size_t start_count, start_capacity;
    struct buffer text;
    uint64_t steps; /* units and entries looked at, ever */
};

void debug_names_init(struct debug_names *names, const struct debug_sections *sections);
void debug_names_done(struct debug_names *names);
/*
 * The name of what the entry at `offset` of .debug_info is, or is an instance of: as the linker spells it
 * where that is known, else as the source does. `unit`: the one that refers to it. NULL when nobody says.
 * Valid until asked again.
 */
const char *debug_names_find(struct debug_names *names, struct debug_unit *unit, uint64_t offset);

#endif
