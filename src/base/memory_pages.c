#include "base/memory_pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"

enum {
    CHUNK_PAGES = 64,
    AHEAD_PAGES = 4, /* a page that is missed comes with its neighbours in this many, aligned */
    BATCH_PAGES = 512,
    WANTED_MAX = 1 << 16,
    AGAIN_MAX = 1024, /* a look at more than these was a listing of everything */
};

void memory_pages_init(struct memory_pages *pages, const struct memory *memory, size_t bytes_max)
{
    *pages = (struct memory_pages){ .memory = memory, .pages_max = bytes_max / MEMORY_PAGE_BYTES };
}

void memory_pages_done(struct memory_pages *pages)
{
    for (size_t i = 0; i < pages->chunk_count; i++)
        free(pages->chunks[i]);
    free(pages->chunks);
    free(pages->pages);
    free(pages->wanted);
    free(pages->again);
    id_map_done(&pages->ids);
    *pages = (struct memory_pages){ 0 };
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* What was asked for since the last drop; when nothing was, that of the time before stays. */
static void remember_asked(struct memory_pages *pages)
{
    size_t most = pages->pages_max / 2 < AGAIN_MAX ? pages->pages_max / 2 : AGAIN_MAX;
    if (pages->count == 0)
        return;
    pages->again_count = 0;
    for (size_t i = 0; i < pages->count && pages->again_count <= most; i++) {
        if (!pages->pages[i].asked)
            continue;
        pages->again =
            mem_grow(pages->again, &pages->again_capacity, pages->again_count + 1, sizeof *pages->again);
        pages->again[pages->again_count++] = pages->pages[i].number;
    }
    if (pages->again_count > most)
        pages->again_count = 0;
    if (pages->again_count)
        qsort(pages->again, pages->again_count, sizeof *pages->again, compare_numbers);
}

void memory_pages_drop(struct memory_pages *pages)
{
    remember_asked(pages);
    id_map_clear(&pages->ids);
    pages->count = 0;
    pages->wanted_count = 0;
    memset(pages->recent, 0, sizeof pages->recent);
}

void memory_pages_trim(struct memory_pages *pages)
{
    memory_pages_drop(pages);
    while (pages->chunk_count)
        free(pages->chunks[--pages->chunk_count]);
}

static uint64_t hash_number(uint64_t number)
{
    return hash_pair(number, 0);
}

static bool is_page(const void *table, uint32_t id, const void *key)
{
    return ((const struct memory_page *)table)[id - 1].number == *(const uint64_t *)key;
}

static uint32_t find_page(const struct memory_pages *pages, uint64_t number)
{
    return id_map_find(&pages->ids, hash_number(number), is_page, pages->pages, &number);
}

static uint8_t *page_bytes(const struct memory_pages *pages, uint32_t id)
{
    return pages->chunks[(id - 1) / CHUNK_PAGES] + (size_t)((id - 1) % CHUNK_PAGES) * MEMORY_PAGE_BYTES;
}

/* A new page's id, or 0 when there is no room. */
static uint32_t add_page(struct memory_pages *pages, uint64_t number)
{
    if (pages->count >= pages->pages_max)
        return 0;
    if (pages->count == pages->chunk_count * CHUNK_PAGES) {
        pages->chunks =
            mem_grow(pages->chunks, &pages->chunk_capacity, pages->chunk_count + 1, sizeof *pages->chunks);
        pages->chunks[pages->chunk_count++] = mem_alloc(CHUNK_PAGES, MEMORY_PAGE_BYTES);
    }
    pages->pages = mem_grow(pages->pages, &pages->capacity, pages->count + 1, sizeof *pages->pages);
    pages->pages[pages->count++] = (struct memory_page){ .number = number };
    id_map_add(&pages->ids, hash_number(number), (uint32_t)pages->count);
    return (uint32_t)pages->count;
}

/* Reads pages that are not held yet: `numbers` ascending, at most BATCH_PAGES. */
static void read_pages(struct memory_pages *pages, const uint64_t *numbers, size_t count)
{
    struct memory_piece pieces[BATCH_PAGES];
    uint32_t ids[BATCH_PAGES] = { 0 };
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t id = add_page(pages, numbers[i]);
        if (!id)
            break;
        ids[used] = id;
        pieces[used++] = (struct memory_piece){ .addr = numbers[i] * MEMORY_PAGE_BYTES,
                                                .into = page_bytes(pages, id),
                                                .size = MEMORY_PAGE_BYTES };
    }
    pages->memory->read(pages->memory->user, pieces, used);
    pages->reads += used;
    for (size_t i = 0; i < used; i++)
        pages->pages[ids[i] - 1].there = pieces[i].got == MEMORY_PAGE_BYTES;
}

/* After a drop, before anything else: what was asked for before it. */
static void read_again(struct memory_pages *pages)
{
    for (size_t at = 0; at < pages->again_count; at += BATCH_PAGES) {
        size_t left = pages->again_count - at;
        read_pages(pages, pages->again + at, left < BATCH_PAGES ? left : BATCH_PAGES);
    }
    pages->again_count = 0;
}

static void read_around(struct memory_pages *pages, uint64_t number)
{
    uint64_t numbers[AHEAD_PAGES];
    size_t count = 0;
    uint64_t first = number - number % AHEAD_PAGES;
    const struct memory_mapping *mapping = memory_mapping_at(pages->memory, number * MEMORY_PAGE_BYTES);
    for (uint64_t n = first; n < first + AHEAD_PAGES; n++) {
        uint64_t addr = n * MEMORY_PAGE_BYTES;
        bool inside = mapping && addr >= mapping->start && addr < mapping->end;
        if (n == number || (inside && !find_page(pages, n)))
            numbers[count++] = n;
    }
    read_pages(pages, numbers, count);
}

static const uint8_t *get_page(struct memory_pages *pages, uint64_t number)
{
    size_t slot = memory_pages_slot(number);
    if (pages->recent[slot].number == number && pages->recent[slot].bytes)
        return pages->recent[slot].bytes;
    uint32_t id = find_page(pages, number);
    if (!id) {
        read_again(pages);
        id = find_page(pages, number);
    }
    if (!id) {
        read_around(pages, number);
        id = find_page(pages, number);
    }
    if (!id)
        return NULL;
    pages->pages[id - 1].asked = true;
    if (!pages->pages[id - 1].there)
        return NULL;
    pages->recent[slot].number = number;
    pages->recent[slot].bytes = page_bytes(pages, id);
    return pages->recent[slot].bytes;
}

/* Asked for already, or at hand. */
static bool is_known(const struct memory_pages *pages, uint64_t number)
{
    size_t slot = memory_pages_slot(number);
    if (pages->recent[slot].number == number && pages->recent[slot].bytes)
        return true;
    return (pages->wanted_count && pages->wanted[pages->wanted_count - 1] == number) ||
           find_page(pages, number);
}

void memory_pages_want(struct memory_pages *pages, uint64_t addr, uint64_t size)
{
    if (size == 0 || size > UINT64_MAX - addr)
        return;
    uint64_t last = (addr + size - 1) / MEMORY_PAGE_BYTES;
    for (uint64_t n = addr / MEMORY_PAGE_BYTES; n <= last && pages->wanted_count < WANTED_MAX; n++) {
        if (is_known(pages, n))
            continue;
        pages->wanted =
            mem_grow(pages->wanted, &pages->wanted_capacity, pages->wanted_count + 1, sizeof *pages->wanted);
        pages->wanted[pages->wanted_count++] = n;
    }
}

void memory_pages_fetch(struct memory_pages *pages)
{
    uint64_t numbers[BATCH_PAGES];
    size_t count = 0;
    read_again(pages);
    if (pages->wanted_count)
        qsort(pages->wanted, pages->wanted_count, sizeof *pages->wanted, compare_numbers);
    for (size_t i = 0; i < pages->wanted_count; i++) {
        /* a page can have been read, with its neighbours, since it was wanted */
        if ((i && pages->wanted[i] == pages->wanted[i - 1]) || find_page(pages, pages->wanted[i]))
            continue;
        numbers[count++] = pages->wanted[i];
        if (count == BATCH_PAGES) {
            read_pages(pages, numbers, count);
            count = 0;
        }
    }
    if (count)
        read_pages(pages, numbers, count);
    pages->wanted_count = 0;
}

bool memory_pages_read(struct memory_pages *pages, uint64_t addr, void *into, size_t size)
{
    uint8_t *to = into;
    bool all = true;
    while (size) {
        size_t offset = addr % MEMORY_PAGE_BYTES, part = MEMORY_PAGE_BYTES - offset;
        if (part > size)
            part = size;
        const uint8_t *page = get_page(pages, addr / MEMORY_PAGE_BYTES);
        if (page)
            memcpy(to, page + offset, part);
        else
            memset(to, 0, part);
        all = all && page;
        to += part;
        addr += part; /* may wrap at the end of the address space: those pages are not there */
        size -= part;
    }
    return all;
}

/* The bytes where they are held, or in `spare` when they cross into another page. NULL: not all are there. */
static const uint8_t *bytes_at(struct memory_pages *pages, uint64_t addr, uint8_t *spare, size_t size)
{
    size_t offset = addr % MEMORY_PAGE_BYTES;
    if (offset + size > MEMORY_PAGE_BYTES)
        return memory_pages_read(pages, addr, spare, size) ? spare : NULL;
    const uint8_t *page = get_page(pages, addr / MEMORY_PAGE_BYTES);
    return page ? page + offset : NULL;
}

uint64_t memory_pages_u64(struct memory_pages *pages, uint64_t addr)
{
    uint8_t spare[8];
    const uint8_t *bytes = bytes_at(pages, addr, spare, sizeof spare);
    return bytes ? load_u64le(bytes) : 0;
}

uint32_t memory_pages_u32(struct memory_pages *pages, uint64_t addr)
{
    uint8_t spare[4];
    const uint8_t *bytes = bytes_at(pages, addr, spare, sizeof spare);
    return bytes ? load_u32le(bytes) : 0;
}

uint16_t memory_pages_u16(struct memory_pages *pages, uint64_t addr)
{
    uint8_t spare[2];
    const uint8_t *bytes = bytes_at(pages, addr, spare, sizeof spare);
    return bytes ? load_u16le(bytes) : 0;
}

uint8_t memory_pages_u8(struct memory_pages *pages, uint64_t addr)
{
    const uint8_t *byte = bytes_at(pages, addr, NULL, 1);
    return byte ? *byte : 0;
}
