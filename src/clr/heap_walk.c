#include "clr/heap_walk.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/id_map.h"
#include "base/mem.h"

enum {
    WINDOW_BYTES = 1 << 20,
    HEAD_BYTES = 16, /* the MethodTable and, of what has a length, the length */
    ALIGNMENT = 8,
    OBJECT_BYTES_MIN = 24,
    BASE_BYTES_MIN = 16,
    BASE_BYTES_MAX = 1 << 24,
    BIRTH_BYTES_MAX = 16 << 10,      /* from an object being made to where its thread allocates */
    HANDED_OUT_BYTES_MAX = 64 << 10, /* at a segment's end: given to a thread that has not told so yet */
    OBJECTS_A_LOOK = 1 << 14,        /* at the clock */
    FREE_BASE_BYTES = 24,
};
#define HAS_COMPONENTS UINT32_C(0x80000000)
#define TABLE_MASK     (~UINT64_C(7)) /* the GC's marks are in the lower bits */

struct heap_walk {
    struct loaded_types *types;
    const struct heap_map *map;
    const struct heap_visitor *visitor;
    uint64_t deadline_ns;
    struct heap_walk_result *result;
    struct heap_type *known; /* id - 1 */
    size_t known_count, known_capacity;
    struct id_map ids;
    uint8_t *window; /* WINDOW_BYTES, of which window_size are there */
    uint64_t window_addr;
    size_t window_size;
};

bool heap_type_read(struct loaded_types *types, uint64_t table, struct heap_type *out)
{
    const struct runtime_layout *layout = types->layout;
    struct memory_pages *pages = types->pages;
    struct method_table checked;
    if (table == 0 || table % ALIGNMENT != 0 || !memory_mapping_at(pages->memory, table))
        return false;
    uint32_t flags = memory_pages_u32(pages, table + layout->table.flags);
    struct heap_type type = {
        .table = table,
        .base_bytes = memory_pages_u32(pages, table + layout->table.base_size),
        .component_bytes = flags & HAS_COMPONENTS ? (uint16_t)flags : 0,
        .valid = true,
    };
    if (type.base_bytes < BASE_BYTES_MIN || type.base_bytes > BASE_BYTES_MAX)
        return false;
    if (!method_table_read(pages, layout, table, &checked)) {
        /* that of free room is no type's: bytes, and nothing behind it */
        type.free = type.base_bytes == FREE_BASE_BYTES && type.component_bytes == 1 &&
                    memory_pages_u64(pages, table + layout->table.class_or_canonical) == 0;
        if (!type.free)
            return false;
    }
    *out = type;
    return true;
}

static bool is_known(const void *table, uint32_t id, const void *key)
{
    return ((const struct heap_type *)table)[id - 1].table == *(const uint64_t *)key;
}

/* Its number + 1, also of what is no MethodTable; 0 when it was not met before. */
static uint32_t met_type(const struct heap_walk *w, uint64_t table)
{
    return id_map_find(&w->ids, hash_pair(table, 0), is_known, w->known, &table);
}

/* The same of any; 0 when there are too many. */
static uint32_t find_type(struct heap_walk *w, uint64_t table)
{
    uint32_t id = met_type(w, table);
    if (id || w->known_count == HEAP_TYPES_MAX)
        return id;
    struct heap_type type = { .table = table };
    if (heap_type_read(w->types, table, &type) && !type.free)
        type.wanted = w->visitor->want(w->visitor->user, (uint32_t)w->known_count, &type);
    w->known = mem_grow(w->known, &w->known_capacity, w->known_count + 1, sizeof *w->known);
    w->known[w->known_count++] = type;
    id_map_add(&w->ids, hash_pair(table, 0), (uint32_t)w->known_count);
    return (uint32_t)w->known_count;
}

/* Up to `size` bytes at `addr`, fewer where they end before `end`. */
static struct span look(struct heap_walk *w, uint64_t addr, uint64_t end, size_t size)
{
    if (size > end - addr)
        size = (size_t)(end - addr);
    uint64_t offset = addr - w->window_addr;
    if (addr < w->window_addr || offset > w->window_size || w->window_size - offset < size) {
        struct memory_piece piece = { .addr = addr, .into = w->window, .size = WINDOW_BYTES };
        if (piece.size > end - addr)
            piece.size = (size_t)(end - addr);
        w->types->pages->memory->read(w->types->pages->memory->user, &piece, 1);
        w->window_addr = addr;
        w->window_size = piece.got;
        offset = 0;
    }
    size_t there = w->window_size - (size_t)offset;
    return span_of(w->window + offset, size < there ? size : there);
}

/* The object's size, 0 when there is none at `addr`. */
static uint64_t object_size(struct heap_walk *w, uint64_t addr, const struct heap_segment *s,
                            uint32_t *out_id)
{
    struct span head = look(w, addr, s->end, HEAD_BYTES);
    if (head.size < 8)
        return 0;
    *out_id = find_type(w, load_u64le(head.data) & TABLE_MASK);
    if (!*out_id || !w->known[*out_id - 1].valid)
        return 0;
    const struct heap_type *type = &w->known[*out_id - 1];
    uint64_t count = type->component_bytes && head.size == HEAD_BYTES ? load_u32le(head.data + 8) : 0;
    return type->base_bytes + count * type->component_bytes;
}

static uint64_t padded(uint64_t size)
{
    uint64_t whole = (size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
    return size && whole < OBJECT_BYTES_MIN ? OBJECT_BYTES_MIN : whole;
}

static void visit(struct heap_walk *w, uint64_t addr, uint64_t size, uint32_t id,
                  const struct heap_segment *s)
{
    if (w->known[id - 1].free) {
        w->result->free_bytes += size;
        return;
    }
    w->result->objects++;
    w->result->bytes += size;
    if (!w->known[id - 1].wanted)
        return;
    size_t shown = size < HEAP_OBJECT_BYTES_MAX ? (size_t)size : HEAP_OBJECT_BYTES_MAX;
    struct heap_object object = { addr, size, id - 1, look(w, addr, s->end, shown) };
    w->visitor->visit(w->visitor->user, &object);
}

/* An object of a type that was met before, and behind it another one or the segment's end. */
static bool is_between_objects(struct heap_walk *w, uint64_t addr, const struct heap_segment *s)
{
    uint32_t id;
    struct span word = look(w, addr, s->end, 8);
    if (word.size < 8 || !met_type(w, load_u64le(word.data) & TABLE_MASK))
        return false;
    uint64_t size = padded(object_size(w, addr, s, &id));
    return size && size <= s->end - addr &&
           (size == s->end - addr || object_size(w, addr + size, s, &id) ||
            heap_map_gap_at(w->map, addr + size));
}

/*
 * Where the next object is, when there is none at `addr`: where a thread allocates close by; else behind
 * memory that is handed out and being cleared, the first place that only can be one. 0 when there is none.
 */
static uint64_t find_next(struct heap_walk *w, uint64_t addr, const struct heap_segment *s, bool zero)
{
    const struct heap_gap *gap = heap_map_gap_after(w->map, addr);
    unsigned count = 0;
    if (zero && gap && gap->begin < s->end && gap->begin - addr <= BIRTH_BYTES_MAX)
        return gap->begin;
    for (addr += ALIGNMENT; addr < s->end && !w->result->late; addr += ALIGNMENT) {
        struct span there = look(w, addr, s->end, 8);
        if (there.size < 8)
            return 0;
        if (load_u64le(there.data) != 0 && is_between_objects(w, addr, s))
            return addr;
        if (++count % OBJECTS_A_LOOK == 0)
            w->result->late = clock_monotonic_ns() >= w->deadline_ns;
    }
    return addr >= s->end ? s->end : 0;
}

/* There is no object at `addr`: where to go on, or the segment's end. */
static uint64_t step_over(struct heap_walk *w, uint64_t addr, const struct heap_segment *s)
{
    struct span there = look(w, addr, s->end, 8);
    bool zero = there.size == 8 && load_u64le(there.data) == 0;
    uint64_t next = there.size == 8 ? find_next(w, addr, s, zero) : 0;
    uint64_t over = (next ? next : s->end) - addr;
    if (next == 0)
        w->result->unreadable_bytes += over;
    else if (zero || (s->generation == 0 && s->end - addr <= HANDED_OUT_BYTES_MAX))
        w->result->unused_bytes += over;
    else
        w->result->unexplained_bytes += over;
    return next ? next : s->end;
}

static void walk_segment(struct heap_walk *w, const struct heap_segment *s)
{
    unsigned count = 0;
    for (uint64_t addr = s->begin; addr < s->end && !w->result->late;) {
        const struct heap_gap *gap = heap_map_gap_at(w->map, addr);
        uint32_t id;
        if (++count % OBJECTS_A_LOOK == 0)
            w->result->late = clock_monotonic_ns() >= w->deadline_ns;
        if (gap) {
            w->result->unused_bytes += (gap->end < s->end ? gap->end : s->end) - addr;
            addr = gap->end;
            continue;
        }
        uint64_t size = padded(object_size(w, addr, s, &id));
        if (size == 0 || size > s->end - addr) {
            addr = step_over(w, addr, s);
            continue;
        }
        visit(w, addr, size, id, s);
        addr += size;
    }
}

void heap_walk_run(struct loaded_types *types, const struct heap_map *map, const struct heap_visitor *visitor,
                   uint64_t deadline_ns, struct heap_walk_result *out)
{
    *out = (struct heap_walk_result){ 0 };
    struct heap_walk w = { .types = types,
                           .map = map,
                           .visitor = visitor,
                           .deadline_ns = deadline_ns,
                           .result = out,
                           .window = mem_alloc(1, WINDOW_BYTES) };
    for (size_t i = 0; i < map->segment_count && !out->late; i++) {
        walk_segment(&w, &map->segments[i]);
        out->late |= clock_monotonic_ns() >= deadline_ns;
    }
    free(w.window);
    free(w.known);
    id_map_done(&w.ids);
}
