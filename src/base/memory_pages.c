#include "base/memory_pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/mem.h"

enum {
    CHUNK_PAGES = 64,
    TABLE_SIZE_MIN = 256,
    GROUP = 4,       /* neighbours, whose places are in one line of the CPU's caches */
    AHEAD_PAGES = 4, /* a page that is missed comes with its neighbours in this many, aligned */
    BATCH_PAGES = 256,
    PREFETCH_AHEAD = 8,
    KEPT_CHUNKS = 4, /* over a drop at least */
    WANTED_MAX = 1 << 16,
    AGAIN_MAX = 1024, /* a look at more than these was a listing of everything */
};

/* What is known of a page, in the low bits of its key. */
enum page_state {
    PAGE_WANTED = 1,
    PAGE_READ,
    PAGE_ASKED, /* read, and for itself, not as a neighbour */
};

static const uint8_t nothing[MEMORY_PAGE_BYTES]; /* the bytes of a page that is not there */

/* An empty table in the place of the one that there is. */
static void set_table(struct memory_pages *pages, size_t size)
{
    free(pages->table);
    pages->table = mem_alloc_lines(size, sizeof *pages->table);
    pages->table_size = size;
    pages->table_shift = 64 - (unsigned)__builtin_ctzll(size / GROUP);
    pages->taken = 0;
}

void memory_pages_init(struct memory_pages *pages, const struct memory *memory, size_t bytes_max)
{
    *pages = (struct memory_pages){ .memory = memory, .pages_max = bytes_max / MEMORY_PAGE_BYTES };
    set_table(pages, TABLE_SIZE_MIN);
}

static void free_chunks(struct memory_pages *pages, size_t kept)
{
    while (pages->chunk_count > kept)
        free(pages->chunks[--pages->chunk_count]);
}

void memory_pages_done(struct memory_pages *pages)
{
    free_chunks(pages, 0);
    free(pages->chunks);
    free(pages->table);
    free(pages->wanted);
    free(pages->again);
    *pages = (struct memory_pages){ 0 };
}

static uint64_t key_of(uint64_t number, enum page_state state)
{
    return number * MEMORY_PAGE_BYTES + state;
}

static uint64_t key_number(uint64_t key)
{
    return key / MEMORY_PAGE_BYTES;
}

/* The place for a page, unless it is taken by another one. */
static inline struct memory_page *first_place(const struct memory_pages *pages, uint64_t number)
{
    uint64_t group = number / GROUP * UINT64_C(0x9e3779b97f4a7c15) >> pages->table_shift;
    return &pages->table[group * GROUP + number % GROUP];
}

/* The page's place, or the free one that it would get. */
static struct memory_page *find_page(const struct memory_pages *pages, uint64_t number)
{
    struct memory_page *page = first_place(pages, number), *end = pages->table + pages->table_size;
    while (page->key && key_number(page->key) != number)
        if (++page == end)
            page = pages->table;
    return page;
}

static bool is_known(const struct memory_pages *pages, uint64_t number)
{
    return find_page(pages, number)->key;
}

static bool is_read(const struct memory_pages *pages, uint64_t number)
{
    return find_page(pages, number)->bytes;
}

static void grow_table(struct memory_pages *pages)
{
    struct memory_page *old = pages->table;
    size_t size = pages->table_size, taken = pages->taken;
    pages->table = NULL;
    set_table(pages, 2 * size);
    pages->taken = taken;
    for (size_t i = 0; i < size; i++)
        if (old[i].key)
            *find_page(pages, key_number(old[i].key)) = old[i];
    free(old);
}

static void put_page(struct memory_pages *pages, uint64_t number, enum page_state state, const uint8_t *bytes)
{
    if (2 * (pages->taken + 1) > pages->table_size)
        grow_table(pages);
    struct memory_page *page = find_page(pages, number);
    pages->taken += page->key == 0;
    *page = (struct memory_page){ key_of(number, state), bytes };
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
    for (size_t i = 0; i < pages->table_size && pages->again_count <= most; i++) {
        uint64_t number = key_number(pages->table[i].key);
        if (pages->table[i].key != key_of(number, PAGE_ASKED))
            continue;
        pages->again =
            mem_grow(pages->again, &pages->again_capacity, pages->again_count + 1, sizeof *pages->again);
        pages->again[pages->again_count++] = number;
    }
    if (pages->again_count > most)
        pages->again_count = 0;
    if (pages->again_count)
        qsort(pages->again, pages->again_count, sizeof *pages->again, compare_numbers);
}

/* The next look needs about as much as this one: to get memory anew costs more than to fill it. */
static void empty(struct memory_pages *pages)
{
    size_t used = pages->count / CHUNK_PAGES + 1;
    free_chunks(pages, used > KEPT_CHUNKS ? used : KEPT_CHUNKS);
    memset(pages->table, 0, pages->table_size * sizeof *pages->table);
    pages->taken = 0;
    pages->count = 0;
    pages->wanted_count = 0;
}

static void renew(struct memory_pages *pages, bool again)
{
    if (!pages->forgot)
        remember_asked(pages);
    pages->forgot = !again;
    pages->again_due = again;
    empty(pages);
}

void memory_pages_drop(struct memory_pages *pages)
{
    renew(pages, true);
}

void memory_pages_forget(struct memory_pages *pages)
{
    renew(pages, false);
}

void memory_pages_trim(struct memory_pages *pages)
{
    memory_pages_drop(pages);
    set_table(pages, TABLE_SIZE_MIN);
    free_chunks(pages, 0);
}

/* Room for one page more, or NULL. */
static uint8_t *add_page(struct memory_pages *pages)
{
    if (pages->count >= pages->pages_max)
        return NULL;
    if (pages->count == pages->chunk_count * CHUNK_PAGES) {
        pages->chunks =
            mem_grow(pages->chunks, &pages->chunk_capacity, pages->chunk_count + 1, sizeof *pages->chunks);
        pages->chunks[pages->chunk_count++] = mem_resize(NULL, CHUNK_PAGES, MEMORY_PAGE_BYTES);
    }
    size_t i = pages->count++;
    return pages->chunks[i / CHUNK_PAGES] + i % CHUNK_PAGES * MEMORY_PAGE_BYTES;
}

/* Reads pages that are not held yet: `numbers` ascending, at most BATCH_PAGES. */
static void read_pages(struct memory_pages *pages, const uint64_t *numbers, size_t count)
{
    struct memory_piece pieces[BATCH_PAGES];
    size_t used = 0;
    for (; used < count; used++) {
        uint8_t *into = add_page(pages);
        if (!into)
            break;
        pieces[used] = (struct memory_piece){ .addr = numbers[used] * MEMORY_PAGE_BYTES,
                                              .into = into,
                                              .size = MEMORY_PAGE_BYTES };
    }
    pages->memory->read(pages->memory->user, pieces, used);
    pages->reads += used;
    for (size_t i = 0; i < used; i++)
        put_page(pages, numbers[i], PAGE_READ, pieces[i].got == MEMORY_PAGE_BYTES ? pieces[i].into : nothing);
}

/* After a drop, before anything else: what was asked for before it. */
static void read_again(struct memory_pages *pages)
{
    if (!pages->again_due)
        return;
    pages->again_due = false;
    for (size_t at = 0; at < pages->again_count; at += BATCH_PAGES) {
        size_t left = pages->again_count - at;
        read_pages(pages, pages->again + at, left < BATCH_PAGES ? left : BATCH_PAGES);
    }
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
        if (n == number || (inside && !is_read(pages, n)))
            numbers[count++] = n;
    }
    read_pages(pages, numbers, count);
}

__attribute__((noinline)) static struct memory_page *read_page(struct memory_pages *pages, uint64_t number)
{
    read_again(pages);
    if (!is_read(pages, number))
        read_around(pages, number);
    return find_page(pages, number);
}

/* `nothing`: it is not there. */
static const uint8_t *get_page(struct memory_pages *pages, uint64_t number)
{
    struct memory_page *page = find_page(pages, number);
    if (!page->bytes)
        page = read_page(pages, number);
    if (!page->bytes)
        return nothing;
    page->key = key_of(number, PAGE_ASKED);
    return page->bytes;
}

void memory_pages_prefetch(const struct memory_pages *pages, uint64_t addr)
{
    const struct memory_page *page = first_place(pages, addr / MEMORY_PAGE_BYTES);
    if (page->bytes && key_number(page->key) == addr / MEMORY_PAGE_BYTES)
        __builtin_prefetch(page->bytes + addr % MEMORY_PAGE_BYTES);
}

__attribute__((noinline)) static void want_pages(struct memory_pages *pages, uint64_t first, uint64_t last)
{
    for (uint64_t n = first; n <= last && pages->wanted_count < WANTED_MAX; n++) {
        if (is_known(pages, n))
            continue;
        put_page(pages, n, PAGE_WANTED, NULL);
        pages->wanted =
            mem_grow(pages->wanted, &pages->wanted_capacity, pages->wanted_count + 1, sizeof *pages->wanted);
        pages->wanted[pages->wanted_count++] = n;
    }
}

void memory_pages_want(struct memory_pages *pages, uint64_t addr, uint64_t size)
{
    if (size == 0 || size > UINT64_MAX - addr)
        return;
    uint64_t first = addr / MEMORY_PAGE_BYTES, last = (addr + size - 1) / MEMORY_PAGE_BYTES;
    uint64_t key = first_place(pages, first)->key;
    if (first != last || key == 0 || key_number(key) != first)
        want_pages(pages, first, last);
}

void memory_pages_fetch(struct memory_pages *pages)
{
    uint64_t numbers[BATCH_PAGES];
    size_t count = 0;
    read_again(pages);
    if (pages->wanted_count)
        qsort(pages->wanted, pages->wanted_count, sizeof *pages->wanted, compare_numbers);
    for (size_t i = 0; i < pages->wanted_count; i++) {
        if (is_read(pages, pages->wanted[i])) /* with its neighbours, since it was wanted */
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
        memcpy(to, page + offset, part);
        all = all && page != nothing;
        to += part;
        addr += part; /* may wrap at the end of the address space: those pages are not there */
        size -= part;
    }
    return all;
}

/* What `reads` was before a page that is held was read. */
static uint64_t reads_before(const struct memory_pages *pages, const uint8_t *bytes)
{
    for (size_t i = pages->chunk_count; i-- > 0;) { /* mostly one of the last */
        uintptr_t at = (uintptr_t)bytes - (uintptr_t)pages->chunks[i];
        if (at < CHUNK_PAGES * MEMORY_PAGE_BYTES)
            return pages->reads - pages->count + i * CHUNK_PAGES + at / MEMORY_PAGE_BYTES;
    }
    return 0;
}

bool memory_pages_read_since(const struct memory_pages *pages, uint64_t since, uint64_t addr, void *into,
                             size_t size)
{
    uint8_t *to = into;
    while (size) {
        size_t offset = addr % MEMORY_PAGE_BYTES, part = MEMORY_PAGE_BYTES - offset;
        const uint8_t *bytes = find_page(pages, addr / MEMORY_PAGE_BYTES)->bytes;
        if (!bytes || bytes == nothing || reads_before(pages, bytes) < since)
            return false;
        part = part < size ? part : size;
        memcpy(to, bytes + offset, part);
        to += part;
        addr += part;
        size -= part;
    }
    return true;
}

struct following {
    struct memory_pages *pages;
    uint64_t since;
};

static bool peek_held(void *user, uint64_t addr, void *into, size_t size)
{
    const struct following *f = user;
    return memory_pages_read_since(f->pages, f->since, addr, into, size);
}

static void take_page(void *to, uint64_t addr, const uint8_t bytes[MEMORY_PAGE_BYTES])
{
    const struct following *f = to;
    uint8_t byte;
    uint8_t *into = peek_held(to, addr, &byte, 1) ? NULL : add_page(f->pages);
    if (!into)
        return;
    memcpy(into, bytes, MEMORY_PAGE_BYTES);
    f->pages->reads++;
    put_page(f->pages, addr / MEMORY_PAGE_BYTES, PAGE_READ, into);
}

void memory_pages_follow(struct memory_pages *pages, uint64_t since, const struct memory_path *path)
{
    const struct memory *memory = pages->memory;
    struct following following = { pages, since };
    if (memory->follow && !memory_path_walk(path, peek_held, &following))
        memory->follow(memory->user, path, take_page, &following);
}

void memory_pages_follow_all(struct memory_pages *pages, uint64_t *addrs, size_t count, uint64_t offset)
{
    for (size_t i = 0; i < count; i++)
        if (addrs[i])
            memory_pages_want(pages, addrs[i] + offset, 8);
    memory_pages_fetch(pages);
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count && addrs[i + PREFETCH_AHEAD])
            memory_pages_prefetch(pages, addrs[i + PREFETCH_AHEAD] + offset);
        if (addrs[i])
            addrs[i] = memory_pages_u64(pages, addrs[i] + offset) & ~UINT64_C(7);
    }
}

/* The bytes when they are in one page, which was asked for before and has the first place for it; else NULL.
 */
static inline const uint8_t *bytes_at(const struct memory_pages *pages, uint64_t addr, size_t size)
{
    uint64_t number = addr / MEMORY_PAGE_BYTES, offset = addr % MEMORY_PAGE_BYTES;
    const struct memory_page *page = first_place(pages, number);
    return page->key == key_of(number, PAGE_ASKED) && offset + size <= MEMORY_PAGE_BYTES
               ? page->bytes + offset
               : NULL;
}

__attribute__((noinline)) static uint64_t read_number(struct memory_pages *pages, uint64_t addr, size_t size)
{
    uint8_t bytes[8] = { 0 };
    return memory_pages_read(pages, addr, bytes, size) ? load_u64le(bytes) : 0;
}

uint64_t memory_pages_u64(struct memory_pages *pages, uint64_t addr)
{
    const uint8_t *bytes = bytes_at(pages, addr, 8);
    return bytes ? load_u64le(bytes) : read_number(pages, addr, 8);
}

uint32_t memory_pages_u32(struct memory_pages *pages, uint64_t addr)
{
    const uint8_t *bytes = bytes_at(pages, addr, 4);
    return bytes ? load_u32le(bytes) : (uint32_t)read_number(pages, addr, 4);
}

uint16_t memory_pages_u16(struct memory_pages *pages, uint64_t addr)
{
    const uint8_t *bytes = bytes_at(pages, addr, 2);
    return bytes ? load_u16le(bytes) : (uint16_t)read_number(pages, addr, 2);
}

uint8_t memory_pages_u8(struct memory_pages *pages, uint64_t addr)
{
    const uint8_t *bytes = bytes_at(pages, addr, 1);
    return bytes ? *bytes : (uint8_t)read_number(pages, addr, 1);
}
