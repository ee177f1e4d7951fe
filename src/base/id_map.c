#include "base/id_map.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

uint64_t hash_bytes(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

void id_map_done(struct id_map *m)
{
    free(m->slots);
    *m = (struct id_map){ 0 };
}

void id_map_clear(struct id_map *m)
{
    if (m->slots)
        memset(m->slots, 0, m->capacity * sizeof *m->slots);
    m->count = 0;
}

/* The low bits choose the slot, the high 32 are kept: growing rehashes from those alone. */
static size_t id_map_slot(uint64_t hash, size_t capacity)
{
    return (size_t)(hash >> 32) & (capacity - 1);
}

static void id_map_put(uint64_t *slots, size_t capacity, uint64_t entry)
{
    size_t i = id_map_slot(entry, capacity);
    while (slots[i])
        i = (i + 1) & (capacity - 1);
    slots[i] = entry;
}

/*
 * Doubles in place, so that no second table has to be made of fresh pages. In the order of a run of slots an
 * entry stays, moves down, or goes as far into the new half: none is moved over one that is still to come.
 * The first run begins behind a free slot, as the last one may go on at the table's beginning.
 */
static void id_map_grow(struct id_map *m)
{
    size_t old = m->capacity, gap = 0;
    m->capacity = old ? old * 2 : 64;
    m->slots = mem_resize(m->slots, m->capacity, sizeof *m->slots);
    memset(m->slots + old, 0, (m->capacity - old) * sizeof *m->slots);
    while (gap < old && m->slots[gap])
        gap++;
    for (size_t n = 1; n <= old; n++) {
        uint64_t *slot = &m->slots[(gap + n) & (old - 1)], entry = *slot;
        *slot = 0;
        if (entry)
            id_map_put(m->slots, m->capacity, entry);
    }
}

uint32_t id_map_find(const struct id_map *m, uint64_t hash, id_map_same_fn *same, const void *table,
                     const void *key)
{
    if (!m->capacity)
        return 0;
    for (size_t i = id_map_slot(hash, m->capacity);; i = (i + 1) & (m->capacity - 1)) {
        uint64_t entry = m->slots[i];
        if (!entry)
            return 0;
        if (entry >> 32 == hash >> 32 && same(table, (uint32_t)entry, key))
            return (uint32_t)entry;
    }
}

static bool any_row(const void *table, uint32_t id, const void *key)
{
    (void)table, (void)id, (void)key;
    return true;
}

uint32_t id_map_guess(const struct id_map *m, uint64_t hash)
{
    return id_map_find(m, hash, any_row, NULL, NULL);
}

void id_map_add(struct id_map *m, uint64_t hash, uint32_t id)
{
    if ((m->count + 1) * 2 > m->capacity)
        id_map_grow(m);
    id_map_put(m->slots, m->capacity, (hash & 0xffffffff00000000ull) | id);
    m->count++;
}

void id_map_replace(struct id_map *m, uint64_t hash, uint32_t old_id, uint32_t new_id)
{
    uint64_t kept = hash & 0xffffffff00000000ull;
    for (size_t i = id_map_slot(hash, m->capacity); m->slots[i]; i = (i + 1) & (m->capacity - 1))
        if (m->slots[i] == (kept | old_id)) {
            m->slots[i] = kept | new_id;
            return;
        }
}
