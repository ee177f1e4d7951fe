#include "base/recent_pages.h"

#include <string.h>

#include "base/clock.h"

enum { SPAN_PAGES_MAX = 2 }; /* larger pieces are read for themselves */

/* Neighbours have different places. */
static struct recent_page *place_of(struct recent_pages *recent, uint64_t addr)
{
    return &recent->pages[addr / MEMORY_PAGE_BYTES % RECENT_PAGES];
}

static bool copy(struct recent_pages *recent, uint64_t time_ns, uint64_t addr, void *into, size_t size)
{
    uint8_t *to = into;
    while (size) {
        size_t offset = addr % MEMORY_PAGE_BYTES, part = MEMORY_PAGE_BYTES - offset;
        const struct recent_page *page = place_of(recent, addr);
        if (page->addr != addr - offset || page->read_ns == 0 || page->read_ns < time_ns)
            return false;
        part = part < size ? part : size;
        memcpy(to, page->bytes + offset, part);
        to += part;
        addr += part;
        size -= part;
    }
    return true;
}

/* Pages of which a part is not there are not kept. */
static void read_pages(struct recent_pages *recent, const struct memory *memory, uint64_t first, size_t count)
{
    struct memory_piece pieces[SPAN_PAGES_MAX];
    struct recent_page *pages[SPAN_PAGES_MAX];
    uint64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < count; i++) {
        pages[i] = place_of(recent, first + i * MEMORY_PAGE_BYTES);
        pages[i]->addr = first + i * MEMORY_PAGE_BYTES;
        pieces[i] = (struct memory_piece){ pages[i]->addr, pages[i]->bytes, MEMORY_PAGE_BYTES, 0 };
    }
    memory->read(memory->user, pieces, count);
    for (size_t i = 0; i < count; i++)
        pages[i]->read_ns = pieces[i].got == MEMORY_PAGE_BYTES ? now_ns : 0;
}

bool recent_pages_read(struct recent_pages *recent, const struct memory *memory, uint64_t time_ns,
                       uint64_t addr, void *into, size_t size)
{
    uint64_t first = addr - addr % MEMORY_PAGE_BYTES;
    if (size == 0 || size > MEMORY_PAGE_BYTES || addr > UINT64_MAX - SPAN_PAGES_MAX * MEMORY_PAGE_BYTES)
        return memory_read(memory, addr, into, size);
    if (copy(recent, time_ns, addr, into, size))
        return true;
    read_pages(recent, memory, first, addr + size - first > MEMORY_PAGE_BYTES ? 2 : 1);
    return copy(recent, time_ns, addr, into, size) || memory_read(memory, addr, into, size);
}
