#include "unwind/method_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { BLOCK_METHODS = 256 };

struct method_block {
    size_t count;
    struct code_method methods[BLOCK_METHODS];
};

struct place {
    size_t block, at;
};

/* Of the first method that ends behind `addr`; behind the last block when there is none. */
static struct place find_place(const struct method_map *map, uint64_t addr)
{
    size_t low = 0, high = map->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct method_block *block = map->blocks[middle];
        if (block->methods[block->count - 1].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    struct place place = { low, 0 };
    if (low == map->block_count)
        return place;
    const struct method_block *block = map->blocks[low];
    for (size_t top = block->count; place.at < top;) {
        size_t middle = place.at + (top - place.at) / 2;
        if (block->methods[middle].end <= addr)
            place.at = middle + 1;
        else
            top = middle;
    }
    return place;
}

struct code_method *method_map_at(const struct method_map *map, uint64_t addr)
{
    struct place place = find_place(map, addr);
    if (place.block == map->block_count)
        return NULL;
    struct code_method *method = &map->blocks[place.block]->methods[place.at];
    return method->start <= addr ? method : NULL;
}

static void remove_block(struct method_map *map, size_t at)
{
    free(map->blocks[at]);
    map->block_count--;
    memmove(map->blocks + at, map->blocks + at + 1, (map->block_count - at) * sizeof *map->blocks);
}

static struct method_block *insert_block(struct method_map *map, size_t at)
{
    map->blocks = mem_grow(map->blocks, &map->block_capacity, map->block_count + 1, sizeof *map->blocks);
    memmove(map->blocks + at + 1, map->blocks + at, (map->block_count - at) * sizeof *map->blocks);
    map->block_count++;
    return map->blocks[at] = mem_alloc(1, sizeof **map->blocks);
}

size_t method_map_cut(struct method_map *map, uint64_t start, uint64_t end, method_map_fn *gone, void *user)
{
    struct place place = find_place(map, start);
    size_t removed = 0;
    while (place.block < map->block_count) {
        struct method_block *block = map->blocks[place.block];
        size_t last = place.at;
        for (; last < block->count && block->methods[last].start < end; last++)
            gone(user, &block->methods[last]);
        if (last == place.at)
            break;
        memmove(block->methods + place.at, block->methods + last,
                (block->count - last) * sizeof *block->methods);
        removed += last - place.at;
        block->count -= last - place.at;
        if (place.at < block->count)
            break;
        if (block->count == 0)
            remove_block(map, place.block);
        else
            place.block++;
        place.at = 0;
    }
    map->count -= removed;
    return removed;
}

/* Moves the upper half of a full block into one of its own. */
static struct place split(struct method_map *map, struct place place)
{
    enum { HALF = BLOCK_METHODS / 2 };
    struct method_block *upper = insert_block(map, place.block + 1), *lower = map->blocks[place.block];
    memcpy(upper->methods, lower->methods + HALF, (BLOCK_METHODS - HALF) * sizeof *lower->methods);
    upper->count = BLOCK_METHODS - HALF;
    lower->count = HALF;
    return place.at > HALF ? (struct place){ place.block + 1, place.at - HALF } : place;
}

/* Where there is room for a method that starts at `start`. */
static struct place make_room(struct method_map *map, uint64_t start)
{
    struct place place = find_place(map, start);
    if (place.block == map->block_count) { /* behind all: methods often come in order, so blocks are filled */
        if (map->block_count == 0 || map->blocks[map->block_count - 1]->count == BLOCK_METHODS)
            insert_block(map, map->block_count);
        place.block = map->block_count - 1;
        place.at = map->blocks[place.block]->count;
    }
    return map->blocks[place.block]->count == BLOCK_METHODS ? split(map, place) : place;
}

struct code_method *method_map_add(struct method_map *map, uint64_t start, uint64_t end)
{
    struct place place = make_room(map, start);
    struct method_block *block = map->blocks[place.block];
    memmove(block->methods + place.at + 1, block->methods + place.at,
            (block->count - place.at) * sizeof *block->methods);
    block->count++;
    map->count++;
    block->methods[place.at] = (struct code_method){ .start = start, .end = end };
    return &block->methods[place.at];
}

void method_map_done(struct method_map *map, method_map_fn *gone, void *user)
{
    for (size_t i = 0; i < map->block_count; i++) {
        for (size_t k = 0; k < map->blocks[i]->count; k++)
            gone(user, &map->blocks[i]->methods[k]);
        free(map->blocks[i]);
    }
    free(map->blocks);
    *map = (struct method_map){ 0 };
}
