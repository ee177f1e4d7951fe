#include "collect/il_offsets.h"

#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/mem.h"

/* What is known of a method's code; without points when it has no map. */
struct code_map {
    uint32_t process;
    uint64_t addr, size_bytes;
    struct il_map map;
};

struct il_offsets {
    struct trace *t;
    struct code_map *maps; /* id - 1 */
    size_t count, capacity, points;
    struct id_map ids;
    size_t *next; /* by process: the first location that was not looked at */
    size_t next_capacity;
};

/* A piece of code, by its address. */
struct code_start {
    uint64_t addr;
    uint32_t code;
};

struct il_offsets *il_offsets_new(struct trace *t)
{
    struct il_offsets *offsets = mem_alloc(1, sizeof *offsets);
    offsets->t = t;
    return offsets;
}

void il_offsets_free(struct il_offsets *offsets)
{
    if (!offsets)
        return;
    for (size_t i = 0; i < offsets->count; i++)
        il_map_done(&offsets->maps[i].map);
    free(offsets->maps);
    free(offsets->next);
    id_map_done(&offsets->ids);
    free(offsets);
}

static bool is_map(const void *table, uint32_t id, const void *key)
{
    const struct code_map *map = &((const struct code_map *)table)[id - 1];
    const struct trace_code *code = key;
    return map->process == code->process && map->addr == code->addr && map->size_bytes == code->size_bytes;
}

/* NULL for code that has no map, or when too many are held. */
static const struct il_map *map_of(struct il_offsets *offsets, const struct trace_code *code,
                                   const struct il_map_reader *maps)
{
    uint64_t hash = hash_pair(hash_pair(code->addr, code->size_bytes), code->process);
    uint32_t id = id_map_find(&offsets->ids, hash, is_map, offsets->maps, code);
    if (!id) {
        if (offsets->count >= IL_OFFSETS_MAPS_MAX || offsets->points >= IL_OFFSETS_POINTS_MAX)
            return NULL;
        struct code_map map = { .process = code->process,
                                .addr = code->addr,
                                .size_bytes = code->size_bytes };
        const struct trace_process *process = &offsets->t->processes.rows[code->process];
        unsigned major = (unsigned)strtoul(trace_string(offsets->t, process->runtime_version), NULL, 10);
        maps->read(maps->user, major, code->addr, code->size_bytes, &map.map);
        offsets->points += map.map.count;
        offsets->maps =
            mem_grow(offsets->maps, &offsets->capacity, offsets->count + 1, sizeof *offsets->maps);
        offsets->maps[offsets->count++] = map;
        id = (uint32_t)offsets->count;
        id_map_add(&offsets->ids, hash, id);
    }
    const struct il_map *map = &offsets->maps[id - 1].map;
    return map->count ? map : NULL;
}

static void fill(struct il_offsets *offsets, struct trace_location *row, uint32_t code_id,
                 const struct il_map_reader *maps)
{
    const struct trace_code *code = &offsets->t->codes.rows[code_id];
    uint64_t inside = row->addr - (row->is_return ? 1 : 0);
    /* only what has metadata has lines */
    if (!code_id || !code->token || inside < code->addr || inside - code->addr >= code->size_bytes)
        return;
    const struct il_map *map = map_of(offsets, code, maps);
    if (!map)
        return;
    row->il_off = il_map_find(map->points, map->count, (uint32_t)(inside - code->addr));
    row->il_known = true;
}

void il_offsets_update(struct il_offsets *offsets, uint32_t process, const struct il_map_reader *maps)
{
    struct trace *t = offsets->t;
    offsets->next =
        mem_grow_zeroed(offsets->next, &offsets->next_capacity, process + 1, sizeof *offsets->next);
    for (size_t i = offsets->next[process]; i < t->locations.count; i++)
        if (t->locations.rows[i].process == process)
            fill(offsets, &t->locations.rows[i], t->locations.rows[i].code, maps);
    offsets->next[process] = t->locations.count;
}

static int start_compare(const void *a, const void *b)
{
    const struct code_start *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

/* The code of a process that was there at the end. The caller frees. */
static struct code_start *last_codes(const struct trace *t, uint32_t process, size_t *count)
{
    struct code_start *starts = mem_alloc(t->codes.count, sizeof *starts);
    *count = 0;
    for (uint32_t id = 1; id < t->codes.count; id++)
        if (t->codes.rows[id].process == process && !t->codes.rows[id].to_ns)
            starts[(*count)++] = (struct code_start){ t->codes.rows[id].addr, id };
    if (*count)
        qsort(starts, *count, sizeof *starts, start_compare);
    return starts;
}

static uint32_t code_before(const struct code_start *starts, size_t count, uint64_t addr)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (starts[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? starts[low - 1].code : 0;
}

void il_offsets_finish(struct il_offsets *offsets, uint32_t process, const struct il_map_reader *maps)
{
    struct trace *t = offsets->t;
    size_t count;
    il_offsets_update(offsets, process, maps);
    struct code_start *starts = last_codes(t, process, &count);
    for (size_t i = 1; i < t->locations.count; i++) {
        struct trace_location *row = &t->locations.rows[i];
        if (row->process == process && !row->code)
            fill(offsets, row, code_before(starts, count, row->addr - (row->is_return ? 1 : 0)), maps);
    }
    free(starts);
}
