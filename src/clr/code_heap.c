#include "clr/code_heap.h"

#include "base/own.h"
#include "clr/method_path.h"
#include "clr/nibble_map.h"

enum {
    STUB_KIND_MAX = 15,
    UNWIND_RECORDS_MAX = 100000,
    UNWIND_RECORD_BYTES = 12,
    NODE_BYTES = 0x30,
};

void code_heap_want(struct memory_pages *pages, const struct code_range *range)
{
    memory_pages_want(pages, range->heap, NODE_BYTES);
}

bool code_heap_read(struct memory_pages *pages, const struct runtime_layout *layout,
                    const struct code_range *range, size_t map_bytes_max, struct code_heap *out)
{
    uint64_t node = range->heap;
    uint64_t start = memory_pages_u64(pages, node + layout->heap.start);
    uint64_t end = memory_pages_u64(pages, node + layout->heap.end);
    uint64_t base = memory_pages_u64(pages, node + layout->heap.base);
    uint64_t map = memory_pages_u64(pages, node + layout->heap.map);
    /* the map is stale behind the heap's end, and the heap's end may lie behind the range's */
    if (end > range->end)
        end = range->end;
    if (node == 0 || map == 0 || start < range->begin || start > end || base > start ||
        start - base >= MEMORY_PAGE_BYTES)
        return false;
    uint64_t size = (end - base + NIBBLE_MAP_COVERS - 1) / NIBBLE_MAP_COVERS * 4;
    if (size > map_bytes_max)
        return false;
    *out = (struct code_heap){ .range = range, .base = base, .map_addr = map };
    buffer_init(&out->map, (size_t)size);
    memory_pages_want(pages, map, size);
    return true;
}

void code_heap_read_map(struct memory_pages *pages, struct code_heap *heap)
{
    size_t size = heap->map.ceiling;
    uint8_t *bytes = size ? buffer_reserve(&heap->map, size) : NULL;
    if (!bytes)
        return;
    memory_pages_read(pages, heap->map_addr, bytes, size);
    heap->map.size = size;
}

void code_heap_done(struct code_heap *heap)
{
    buffer_done(&heap->map);
}

uint64_t code_heap_word(struct memory_pages *pages, uint64_t start)
{
    return memory_pages_u64(pages, start - 8);
}

bool code_heap_body_of_word(struct memory_pages *pages, const struct runtime_layout *layout,
                            const struct code_heap *heap, uint64_t start, uint64_t word,
                            struct code_body *out)
{
    const struct code_range *range = heap->range;
    uint64_t offset = start - heap->base;
    struct code_body body = { .begin = start,
                              .mark = heap->map_addr + offset / NIBBLE_MAP_COVERS * 4,
                              .mark_offset = (uint8_t)(offset % NIBBLE_MAP_COVERS) };
    if (word == 0)
        return false;
    if (word <= STUB_KIND_MAX) {
        body.stub = (uint8_t)word;
        *out = body;
        return true;
    }
    uint32_t count = memory_pages_u32(pages, word + layout->header.unwind_count);
    if (word % 8 != 0 || count == 0 || count > UNWIND_RECORDS_MAX)
        return false;
    uint64_t first = word + layout->header.unwinds,
             last = first + (uint64_t)UNWIND_RECORD_BYTES * (count - 1);
    body.header = word;
    body.method = memory_pages_u64(pages, word + layout->header.method);
    body.end = range->begin + memory_pages_u32(pages, last + 4);
    if (range->begin + memory_pages_u32(pages, first) != start || body.end <= start ||
        body.end > range->end || body.method == 0 || body.method % 8 != 0)
        return false;
    *out = body;
    return true;
}

bool code_heap_find(struct memory_pages *pages, const struct runtime_layout *layout,
                    const struct code_heap *heap, uint64_t addr, struct code_body *out)
{
    uint64_t offset;
    struct code_body body;
    struct memory_path path;
    if (addr < heap->base ||
        !nibble_map_find(buffer_span(&heap->map), layout->constant, addr - heap->base, &offset))
        return false;
    uint64_t start = heap->base + offset;
    if (start <= heap->range->begin)
        return false;
    method_path_of(layout, heap->range->begin, start, &path);
    memory_pages_follow(pages, 0, &path);
    if (!code_heap_body_of_word(pages, layout, heap, start, code_heap_word(pages, start), &body) ||
        (body.end && addr >= body.end))
        return false;
    *out = body;
    return true;
}

const char *code_stub_name(unsigned kind)
{
    static const char *const names[] = {
        NULL,
        "[jump stub]",
        "[precode]",
        "[dynamic helper]",
        "[stub precode]",
        "[fixup precode]",
        "[dispatch stub]",
        "[resolve stub]",
        "[lookup stub]",
        "[vtable call stub]",
    };
    return kind < ARRAY_LEN(names) && names[kind] ? names[kind] : "[stub]";
}
