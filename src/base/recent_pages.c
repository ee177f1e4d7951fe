#include "base/recent_pages.h"

#include <string.h>

#include "base/clock.h"

enum { SPAN_PAGES_MAX = 2 }; /* larger pieces are read for themselves */

static const struct recent_page *find_page(const struct recent_pages *recent, uint64_t addr, uint64_t time_ns)
{
    for (size_t i = 0; i < RECENT_PAGES; i++) {
        const struct recent_page *page = &recent->pages[i];
        if (page->addr == addr && page->read_ns && page->read_ns >= time_ns)
            return page;
    }
    return NULL;
}

static bool copy(const struct recent_pages *recent, uint64_t time_ns, uint64_t addr, void *into, size_t size)
{
    uint8_t *to = into;
    while (size) {
        size_t offset = addr % RECENT_PAGE_BYTES, part = RECENT_PAGE_BYTES - offset;
        const struct recent_page *page = find_page(recent, addr - offset, time_ns);
        if (!page)
            return false;
        part = part < size ? part : size;
        memcpy(to, page->bytes + offset, part);
        to += part;
        addr += part;
        size -= part;
    }
    return true;
}

/* That of an older one of the same address, or of who came first. */
static struct recent_page *make_room(struct recent_pages *recent, uint64_t addr)
{
    for (size_t i = 0; i < RECENT_PAGES; i++)
        if (recent->pages[i].addr == addr && recent->pages[i].read_ns)
            return &recent->pages[i];
    return &recent->pages[recent->next++ % RECENT_PAGES];
}

/* Pages of which a part is not there are not kept. */
static void read_pages(struct recent_pages *recent, const struct memory *memory, uint64_t first, size_t count)
{
    struct memory_piece pieces[SPAN_PAGES_MAX];
    struct recent_page *pages[SPAN_PAGES_MAX];
    uint64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < count; i++) {
        pages[i] = make_room(recent, first + i * RECENT_PAGE_BYTES);
        pages[i]->addr = first + i * RECENT_PAGE_BYTES;
        pieces[i] = (struct memory_piece){ pages[i]->addr, pages[i]->bytes, RECENT_PAGE_BYTES, 0 };
    }
    memory->read(memory->user, pieces, count);
    for (size_t i = 0; i < count; i++)
        pages[i]->read_ns = pieces[i].got == RECENT_PAGE_BYTES ? now_ns : 0;
}

bool recent_pages_read(struct recent_pages *recent, const struct memory *memory, uint64_t time_ns,
                       uint64_t addr, void *into, size_t size)
{
    uint64_t first = addr - addr % RECENT_PAGE_BYTES;
    if (size == 0 || size > RECENT_PAGE_BYTES || addr > UINT64_MAX - SPAN_PAGES_MAX * RECENT_PAGE_BYTES)
        return memory_read(memory, addr, into, size);
    if (copy(recent, time_ns, addr, into, size))
        return true;
    read_pages(recent, memory, first, addr + size - first > RECENT_PAGE_BYTES ? 2 : 1);
    return copy(recent, time_ns, addr, into, size) || memory_read(memory, addr, into, size);
}
