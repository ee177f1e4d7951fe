/*
 * id_map: finds the id of a row by the row's hash.
 *
 * Holds (hash, id) pairs only; rows live in the caller's table, and the caller says whether the row
 * behind an id is the one it looks for. Open addressing, grows by doubling, never forgets.
 */
#ifndef CLRPERF_BASE_ID_MAP_H
#define CLRPERF_BASE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_map {
    uint64_t *slots; /* high 32 bits of the hash above the id; 0 is empty */
    size_t count;
    size_t capacity; /* a power of two, or 0 */
};

typedef bool id_map_same_fn(const void *table, uint32_t id, const void *key);

void id_map_done(struct id_map *m);
/* The id whose row equals `key`, or 0. Ids are 1 and up. */
uint32_t id_map_find(const struct id_map *m, uint64_t hash, id_map_same_fn *same, const void *table,
                     const void *key);
/* Has the hash's place brought from memory, for a look at it that comes a little later. */
static inline void id_map_prefetch(const struct id_map *m, uint64_t hash)
{
    if (m->capacity)
        __builtin_prefetch(&m->slots[(size_t)(hash >> 32) & (m->capacity - 1)]);
}
/* An id whose row probably equals the key of this hash, or 0: then no row does. */
uint32_t id_map_guess(const struct id_map *m, uint64_t hash);
/* Adds an id that id_map_find() did not find. */
void id_map_add(struct id_map *m, uint64_t hash, uint32_t id);
/* Puts another id in the place of one that was added with this hash. */
void id_map_replace(struct id_map *m, uint64_t hash, uint32_t old_id, uint32_t new_id);
/* Empties it and keeps the memory. */
void id_map_clear(struct id_map *m);

/* XXH3 of the bytes. */
uint64_t hash_bytes(const void *bytes, size_t size);
/* A good mix of two words. */
static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd6e8feb86659fd93ull);
    uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64);
    return mixed ^ mixed >> 29;
}

#endif
