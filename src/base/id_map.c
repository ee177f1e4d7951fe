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

static void id_map_grow(struct id_map *m)
{
    size_t capacity = m->capacity ? m->capacity * 2 : 64;
    uint64_t *slots = mem_alloc(capacity, sizeof *slots);
    for (size_t i = 0; i < m->capacity; i++)
        if (m->slots[i])
            id_map_put(slots, capacity, m->slots[i]);
    free(m->slots);
    m->slots = slots;
    m->capacity = capacity;
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
