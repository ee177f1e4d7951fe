/*
 * method_map: jitted methods by address, disjoint and in order.
 *
 * Kept in blocks of limited size, so that one of 100,000 methods comes and goes as cheaply as one of ten,
 * whatever the order.
 */
#ifndef CLRPERF_UNWIND_METHOD_MAP_H
#define CLRPERF_UNWIND_METHOD_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/jit_unwind.h"

struct code_method {
    uint64_t start, end;    /* virtual, [start, end) */
    struct jit_unwind *jit; /* the owner's of the map; NULL: not read, or not to be had */
    bool tried;
};

struct method_block;

struct method_map {
    struct method_block **blocks; /* none is empty */
    size_t block_count, block_capacity;
    size_t count; /* of methods */
};

/* Told of each method that leaves the map. */
typedef void method_map_fn(void *user, const struct code_method *method);

/* Empties it and frees its memory. `gone` as in method_map_cut(). */
void method_map_done(struct method_map *map, method_map_fn *gone, void *user);
/* The method that holds `addr`, or NULL. Valid until the map is changed, as all pointers into it. */
struct code_method *method_map_at(const struct method_map *map, uint64_t addr);
/* Takes away all methods that touch [start, end), start < end. Returns how many. */
size_t method_map_cut(struct method_map *map, uint64_t start, uint64_t end, method_map_fn *gone, void *user);
/* Adds one that touches no other. */
struct code_method *method_map_add(struct method_map *map, uint64_t start, uint64_t end);

#endif
