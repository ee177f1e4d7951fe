#include "clr/heap_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    SLOTS_TRIED = 40, /* the variable has been in slots 19 and 20 */
    GENERATION_BYTES_MIN = 0x40,
    GENERATION_BYTES_MAX = 0x1000,
    HEAPS_MAX = 1024,
    OBJECT_BYTES_MIN = 24, /* kept free behind where a thread allocates */
    SEGMENT_FROZEN = 1,
};

/* GcDacVars 2.1 (8, 9) and 2.4 (10). All but the first two are addresses of what they name. */
enum {
    VARS_MAJOR = 0x00,
    VARS_GENERATION_BYTES = 0x08,
    VARS_GENERATIONS = 0x10,
    VARS_GENERATION_TABLE = 0x30,
    VARS_EPHEMERAL = 0x50,
    VARS_ALLOCATED = 0x78,
    VARS_HEAPS = 0xb0,
    VARS_HEAP_TABLE = 0xb8,
    VARS_INVALID = 0xc0,
    VARS_HEAP_FIELDS = 0xf0,
    VARS_GENERATION_FIELDS = 0xf8,
};

/* Places in the lists of offsets that the server GC has for its heaps, and every GC for a generation. */
enum {
    HEAP_FIELD_ALLOCATED = 0,
    HEAP_FIELD_EPHEMERAL = 1,
    HEAP_FIELD_TABLE = 18,
    GENERATION_FIELD_CONTEXT = 0,
    GENERATION_FIELD_START = 1,
    GENERATION_FIELD_ALLOCATION = 2, /* -1 where there are regions */
};

/* heap_segment */
enum { SEGMENT_ALLOCATED = 0x00, SEGMENT_BEGIN = 0x20, SEGMENT_FLAGS = 0x28, SEGMENT_NEXT = 0x30 };

/* One GC heap: the workstation's only one, or one of the server's. */
struct heap {
    uint64_t table;                /* of its generations */
    uint64_t ephemeral, allocated; /* the segment that is allocated from, and how far */
};

static int32_t offset_at(struct memory_pages *pages, uint64_t list, unsigned place)
{
    return (int32_t)memory_pages_u32(pages, list + 4 * (uint64_t)place);
}

static uint64_t pointer_behind(struct memory_pages *pages, uint64_t vars, unsigned field)
{
    uint64_t variable = memory_pages_u64(pages, vars + field);
    return variable ? memory_pages_u64(pages, variable) : 0;
}

static bool are_vars(struct memory_pages *pages, uint64_t vars)
{
    uint64_t size = memory_pages_u64(pages, vars + VARS_GENERATION_BYTES);
    uint8_t counter[4];
    return memory_pages_u8(pages, vars + VARS_MAJOR) == 2 && size >= GENERATION_BYTES_MIN &&
           size <= GENERATION_BYTES_MAX && size % 8 == 0 &&
           memory_pages_u64(pages, vars + VARS_GENERATIONS) == HEAP_GENERATIONS &&
           memory_pages_read(pages, memory_pages_u64(pages, vars + VARS_INVALID), counter, sizeof counter);
}

bool heap_map_open(struct memory_pages *pages, const struct managed_threads *threads, struct heap_map *out,
                   struct error *err)
{
    for (unsigned slot = 0; slot < SLOTS_TRIED; slot++) {
        uint64_t variable = memory_pages_u64(pages, threads->table + 8 * (uint64_t)slot);
        uint64_t vars = variable && variable % 8 == 0 ? memory_pages_u64(pages, variable) : 0;
        if (vars == 0 || vars % 8 != 0 || !are_vars(pages, vars))
            continue;
        *out = (struct heap_map){ .vars = vars };
        return true;
    }
    return error_set(err, ERROR_UNSUPPORTED, "the runtime's GC cannot be found in its memory");
}

void heap_map_done(struct heap_map *map)
{
    free(map->segments);
    free(map->gaps);
    *map = (struct heap_map){ 0 };
}

bool heap_map_is_walkable(const struct heap_map *map, const struct memory *memory)
{
    uint64_t counter;
    uint32_t invalid;
    return memory_read(memory, map->vars + VARS_INVALID, &counter, sizeof counter) &&
           memory_read(memory, counter, &invalid, sizeof invalid) && invalid == 0;
}

static void add_segment(struct heap_map *map, struct memory_pages *pages, uint64_t addr,
                        const struct heap *heap, uint8_t generation)
{
    struct heap_segment s = { .begin = memory_pages_u64(pages, addr + SEGMENT_BEGIN),
                              .generation = generation,
                              .frozen = memory_pages_u64(pages, addr + SEGMENT_FLAGS) & SEGMENT_FROZEN };
    s.end = addr == heap->ephemeral ? heap->allocated : memory_pages_u64(pages, addr + SEGMENT_ALLOCATED);
    if (s.begin % 8 != 0 || s.end % 8 != 0 || s.begin > s.end) {
        map->cut = true;
        return;
    }
    if (s.begin == s.end)
        return;
    map->segments =
        mem_grow(map->segments, &map->segment_capacity, map->segment_count + 1, sizeof *map->segments);
    map->segments[map->segment_count++] = s;
}

static void add_gap(struct heap_map *map, uint64_t from, uint64_t to)
{
    if (from == 0 || from > to || to > UINT64_MAX - OBJECT_BYTES_MIN)
        return;
    map->gaps = mem_grow(map->gaps, &map->gap_capacity, map->gap_count + 1, sizeof *map->gaps);
    map->gaps[map->gap_count++] = (struct heap_gap){ from, to + OBJECT_BYTES_MIN };
}

/* Ends where it comes back to a segment that it had before: each is met again within twice its round. */
static void read_list(struct heap_map *map, struct memory_pages *pages, uint64_t segment,
                      const struct heap *heap, uint8_t generation)
{
    uint64_t before = 0;
    size_t hops = 0, mark = 1;
    while (segment && segment % 8 == 0 && segment != before && map->segment_count < HEAP_SEGMENTS_MAX &&
           hops < HEAP_SEGMENTS_MAX) {
        if (++hops == mark) {
            before = segment;
            mark *= 2;
        }
        add_segment(map, pages, segment, heap, generation);
        segment = memory_pages_u64(pages, segment + SEGMENT_NEXT);
    }
    map->cut |= segment != 0;
}

static void read_heap(struct heap_map *map, struct memory_pages *pages, const struct heap *heap)
{
    uint64_t size = memory_pages_u64(pages, map->vars + VARS_GENERATION_BYTES);
    uint64_t fields = memory_pages_u64(pages, map->vars + VARS_GENERATION_FIELDS);
    int32_t context = offset_at(pages, fields, GENERATION_FIELD_CONTEXT);
    int32_t start = offset_at(pages, fields, GENERATION_FIELD_START);
    map->regions = offset_at(pages, fields, GENERATION_FIELD_ALLOCATION) == -1;
    for (unsigned g = 0; g < HEAP_GENERATIONS; g++) {
        uint64_t generation = heap->table + g * size;
        add_gap(map, memory_pages_u64(pages, generation + (uint64_t)context),
                memory_pages_u64(pages, generation + (uint64_t)context + 8));
        if (!map->regions && g < HEAP_GENERATION_LARGE - 1)
            continue; /* of segments the first three have one list */
        read_list(map, pages, memory_pages_u64(pages, generation + (uint64_t)start), heap, (uint8_t)g);
    }
}

static void read_workstation(struct heap_map *map, struct memory_pages *pages)
{
    struct heap heap = { .table = memory_pages_u64(pages, map->vars + VARS_GENERATION_TABLE),
                         .ephemeral = pointer_behind(pages, map->vars, VARS_EPHEMERAL),
                         .allocated = pointer_behind(pages, map->vars, VARS_ALLOCATED) };
    read_heap(map, pages, &heap);
}

static void read_server(struct heap_map *map, struct memory_pages *pages, uint64_t heaps)
{
    uint64_t fields = memory_pages_u64(pages, map->vars + VARS_HEAP_FIELDS);
    uint64_t table = (uint64_t)offset_at(pages, fields, HEAP_FIELD_TABLE);
    uint64_t ephemeral = (uint64_t)offset_at(pages, fields, HEAP_FIELD_EPHEMERAL);
    uint64_t allocated = (uint64_t)offset_at(pages, fields, HEAP_FIELD_ALLOCATED);
    for (uint32_t i = 0; i < map->heaps; i++) {
        uint64_t at = memory_pages_u64(pages, heaps + 8 * (uint64_t)i);
        struct heap heap = { .table = at + table,
                             .ephemeral = memory_pages_u64(pages, at + ephemeral),
                             .allocated = memory_pages_u64(pages, at + allocated) };
        if (at)
            read_heap(map, pages, &heap);
    }
}

static int compare_segments(const void *a, const void *b)
{
    const struct heap_segment *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static int compare_gaps(const void *a, const void *b)
{
    const struct heap_gap *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* By address, each once: a list that runs in circles names its segments again and again. */
static void sort(struct heap_map *map)
{
    size_t kept = 0;
    if (map->gap_count)
        qsort(map->gaps, map->gap_count, sizeof *map->gaps, compare_gaps);
    if (map->segment_count)
        qsort(map->segments, map->segment_count, sizeof *map->segments, compare_segments);
    for (size_t i = 0; i < map->segment_count; i++) {
        if (kept && map->segments[i].begin < map->segments[kept - 1].end)
            map->cut = true;
        else
            map->segments[kept++] = map->segments[i];
    }
    map->segment_count = kept;
}

bool heap_map_read(struct heap_map *map, struct memory_pages *pages, const struct managed_threads *threads,
                   struct error *err)
{
    uint64_t heaps = pointer_behind(pages, map->vars, VARS_HEAP_TABLE);
    uint64_t count_at = memory_pages_u64(pages, map->vars + VARS_HEAPS);
    uint32_t count = count_at ? memory_pages_u32(pages, count_at) : 0;
    map->segment_count = map->gap_count = 0;
    map->cut = false;
    map->heaps = heaps && count <= HEAPS_MAX ? count : 0;
    if (map->heaps)
        read_server(map, pages, heaps);
    else
        read_workstation(map, pages);
    for (size_t i = 0; i < threads->count; i++)
        add_gap(map, threads->items[i].allocates_from, threads->items[i].allocates_to);
    sort(map);
    return map->segment_count > 0 || error_set(err, ERROR_INPUT, "the GC's list of segments makes no sense");
}

/* The first gap that begins at `addr` or behind. */
static size_t lower_bound(const struct heap_map *map, uint64_t addr)
{
    size_t low = 0, high = map->gap_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->gaps[middle].begin < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct heap_gap *heap_map_gap_at(const struct heap_map *map, uint64_t addr)
{
    size_t i = lower_bound(map, addr);
    return i < map->gap_count && map->gaps[i].begin == addr ? &map->gaps[i] : NULL;
}

const struct heap_gap *heap_map_gap_after(const struct heap_map *map, uint64_t addr)
{
    size_t i = lower_bound(map, addr + 1);
    return i < map->gap_count ? &map->gaps[i] : NULL;
}

uint64_t heap_map_bytes(const struct heap_map *map)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < map->segment_count; i++)
        bytes += map->segments[i].end - map->segments[i].begin;
    return bytes;
}
