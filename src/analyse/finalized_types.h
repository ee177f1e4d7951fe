/*
 * finalized_types: how many objects of each type ran their finalizer.
 *
 * Of FinalizeObject events, which come with the GC's verbose ones. The runtime tells a type's name once, in a
 * BulkType event, where it was asked for (keyword 0x80000); else there is its id only.
 */
#ifndef CLRPERF_ANALYSE_FINALIZED_TYPES_H
#define CLRPERF_ANALYSE_FINALIZED_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

struct finalized_type {
    uint32_t process; /* of the trace */
    uint64_t type_id;
    uint64_t count;
    char *name; /* owned; as the runtime spells it, "MODULE!TOKEN" when it leaves that out, or NULL */
};

struct finalized_types {
    struct finalized_type *rows; /* the most frequent first */
    size_t count, capacity;
};

/* The events that it is made of. */
bool finalized_types_wants(const char *provider, uint32_t event_id);
void finalized_types_init(struct finalized_types *types, const struct trace *t, uint64_t from_ns,
                          uint64_t to_ns);
void finalized_types_done(struct finalized_types *types);

#endif
