/*
 * heap_walk: visits the objects of a GC's heap, one after the other, in memory that stands still.
 *
 * An object begins with its MethodTable, which tells its size; the next one follows. What is between objects
 * in a heap that is in use is stepped over by the rules of the allocator: where a thread allocates there are
 * none; a word of zeroes ahead of that is an object being made; zeroes elsewhere are memory handed out and
 * being cleared. What cannot be explained is counted, up to where objects can be made out again.
 */
#ifndef CLRPERF_CLR_HEAP_WALK_H
#define CLRPERF_CLR_HEAP_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "clr/heap_map.h"
#include "clr/loaded_types.h"

enum {
    HEAP_TYPES_MAX = 1 << 18,
    HEAP_OBJECT_BYTES_MAX = 64 << 10, /* of an object's bytes that are shown */
};

/* What a MethodTable says of the size of its objects. */
struct heap_type {
    uint64_t table;
    uint32_t base_bytes;
    uint16_t component_bytes; /* of an element of an array, a character of a string; or 0 */
    bool valid;               /* it is a MethodTable */
    bool free;                /* no object, but room for some */
    bool wanted;
};

struct heap_object {
    uint64_t addr;
    uint64_t size_bytes; /* with padding */
    uint32_t type;       /* number of its type, counted up from 0 as they are met */
    struct span bytes;   /* of the object, from `addr` on; valid during the call */
};

struct heap_visitor {
    /* Asked once for each type: are its objects wanted? */
    bool (*want)(void *user, uint32_t number, const struct heap_type *type);
    void (*visit)(void *user, const struct heap_object *object);
    void *user;
};

struct heap_walk_result {
    uint64_t objects, bytes; /* of all types; bytes with padding */
    uint64_t free_bytes, unused_bytes, unexplained_bytes;
    uint64_t unreadable_bytes;
    bool late; /* it took longer than it may: the rest was left out */
};

/*
 * Visits all objects by address. `types` tells MethodTables from what only looks so. Ends at `deadline_ns`
 * (CLOCK_MONOTONIC).
 */
void heap_walk_run(struct loaded_types *types, const struct heap_map *map, const struct heap_visitor *visitor,
                   uint64_t deadline_ns, struct heap_walk_result *out);

/* Reads what a MethodTable says of sizes. False when it can be none. */
bool heap_type_read(struct loaded_types *types, uint64_t table, struct heap_type *out);

#endif
