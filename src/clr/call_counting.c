#include "clr/call_counting.h"

enum {
    TABLE_AT = 0, /* in the manager */
    SIZE_AT = 8,
    ENTRY_METHOD = 8,
    ENTRY_STAGE = 0x1a,
    ENTRY_BYTES = 0x20,
    STAGE_OFF = 4,
    TABLE_SIZE_MIN = 2,
    TABLE_SIZE_MAX = 1 << 24,
    STEPS_MAX = 64, /* measured: at most 9 */
};

void call_counting_open(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t heap,
                        struct call_counting *counting)
{
    if (counting->heap == heap)
        return;
    *counting = (struct call_counting){ .heap = heap };
    if (!heap || layout->counting.manager == LAYOUT_NONE)
        return;
    uint64_t allocator = memory_pages_u64(pages, heap + layout->counting.allocator);
    uint64_t manager = allocator ? memory_pages_u64(pages, allocator + layout->counting.manager) : 0;
    uint32_t size = manager ? memory_pages_u32(pages, manager + SIZE_AT) : 0;
    if (size < TABLE_SIZE_MIN || size > TABLE_SIZE_MAX)
        return;
    counting->table = memory_pages_u64(pages, manager + TABLE_AT);
    counting->size = counting->table ? size : 0;
}

/* Of the pointer that is looked at first. */
static uint64_t first_place(const struct call_counting *counting, uint64_t method)
{
    return counting->table + 8 * (uint64_t)((uint32_t)method % counting->size);
}

void call_counting_want_place(struct memory_pages *pages, const struct call_counting *counting,
                              uint64_t method)
{
    if (counting->size)
        memory_pages_want(pages, first_place(counting, method), 8);
}

void call_counting_want_entry(struct memory_pages *pages, const struct call_counting *counting,
                              uint64_t method)
{
    uint64_t entry = counting->size ? memory_pages_u64(pages, first_place(counting, method)) : 0;
    if (entry)
        memory_pages_want(pages, entry, ENTRY_BYTES);
}

bool call_counting_is_off(struct memory_pages *pages, const struct call_counting *counting, uint64_t method)
{
    enum { DELETED = 1 };
    if (!counting->size || !method)
        return false;
    uint32_t size = counting->size, place = (uint32_t)method % size, step = (uint32_t)method % (size - 1) + 1;
    for (unsigned i = 0; i < STEPS_MAX; i++) {
        uint64_t entry = memory_pages_u64(pages, counting->table + 8 * (uint64_t)place);
        if (!entry)
            return false;
        if (entry != DELETED && memory_pages_u64(pages, entry + ENTRY_METHOD) == method)
            return memory_pages_u8(pages, entry + ENTRY_STAGE) == STAGE_OFF;
        place = place < size - step ? place + step : place - (size - step);
    }
    return false;
}
