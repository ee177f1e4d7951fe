#include "clr/code_ranges.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
    LEVELS = 5,
    ENTRIES = 256,
    ENTRY_BITS = 8,
    LOW_BITS = 17, /* of an address, below what the last level looks at */
    RANGES_MAX = 1 << 16,
    FLAG_COLLECTIBLE = 1,
    FLAG_HEAP = 2,
    FLAG_STUBS = 4, /* in the map; in the list it marks an image */
    STUB_KIND = 0x120,
    BLOCK_BYTES = 8 * ENTRIES,
    AHEAD_MAX = 1 << 12, /* places fetched of one level */
    NODE_BYTES = 0x80,   /* a section or fragment lies in so many */
};

struct walk {
    struct memory_pages *pages;
    const struct runtime_layout *layout;
    struct code_ranges *out;
    uint64_t *steps; /* places that may still be looked at */
    uint64_t last_section;
    bool strict; /* ends at the first insane entry */
};

/* A pointer's low bit marks what belongs to collectible code. */
static uint64_t pointer(struct memory_pages *pages, uint64_t addr)
{
    return memory_pages_u64(pages, addr) & ~UINT64_C(1);
}

static void note_insane(struct walk *w)
{
    w->out->insane++;
    if (w->strict)
        w->out->cut = true;
}

/* False, and the walk is cut, when there are not that many steps left. */
static bool take_steps(struct walk *w, uint64_t count)
{
    if (*w->steps < count)
        w->out->cut = true;
    else
        *w->steps -= count;
    return !w->out->cut;
}

static void add_section(struct walk *w, uint64_t section, uint64_t link)
{
    const struct runtime_layout *l = w->layout;
    struct code_ranges *out = w->out;
    struct code_range r = {
        .begin = memory_pages_u64(w->pages, section + l->section.begin),
        .end = memory_pages_u64(w->pages, section + l->section.end),
        .section = section,
        .link = link,
        .link_word = link ? memory_pages_u64(w->pages, link) : 0,
    };
    uint32_t flags = memory_pages_u32(w->pages, section + l->section.flags);
    if (r.begin == 0 || r.begin >= r.end || flags > 7) {
        note_insane(w);
        return;
    }
    if (out->count == RANGES_MAX) {
        out->cut = true;
        return;
    }
    r.collectible = flags & FLAG_COLLECTIBLE;
    if (flags & FLAG_HEAP) {
        r.kind = CODE_RANGE_HEAP;
        r.heap = memory_pages_u64(w->pages, section + l->section.heap);
    } else if (!l->list && flags & FLAG_STUBS) {
        r.kind = CODE_RANGE_STUBS;
        uint64_t list = memory_pages_u64(w->pages, section + l->section.ranges);
        r.stub = list ? (uint8_t)memory_pages_u32(w->pages, list + STUB_KIND) : 0;
    } else {
        r.kind = CODE_RANGE_IMAGE;
        r.module = memory_pages_u64(w->pages, section + l->section.module);
    }
    out->ranges = mem_grow(out->ranges, &out->capacity, out->count + 1, sizeof *out->ranges);
    out->ranges[out->count++] = r;
}

/* A fragment has the range of its section, until that is freed and overwritten. */
static bool is_of_section(struct walk *w, uint64_t section, uint64_t begin, uint64_t end)
{
    return memory_pages_u64(w->pages, section + w->layout->section.begin) == begin &&
           memory_pages_u64(w->pages, section + w->layout->section.end) == end;
}

/* `link`: address of the pointer to the first one. */
static void walk_fragments(struct walk *w, uint64_t link, uint64_t slot_begin)
{
    const struct runtime_layout *l = w->layout;
    uint64_t slot_last = slot_begin + ((UINT64_C(1) << LOW_BITS) - 1), fragment;
    while ((fragment = pointer(w->pages, link)) && take_steps(w, 1)) {
        uint64_t begin = memory_pages_u64(w->pages, fragment + l->fragment.begin);
        uint64_t end = memory_pages_u64(w->pages, fragment + l->fragment.end);
        uint64_t section = pointer(w->pages, fragment + l->fragment.section);
        /* a fragment may be shared by all slots it spans, so it may begin before this one */
        if (begin >= end || begin > slot_last || end <= slot_begin || section == 0 ||
            (section != w->last_section && !is_of_section(w, section, begin, end)))
            note_insane(w);
        else if (section != w->last_section)
            add_section(w, section, link);
        w->last_section = section;
        link = fragment + l->fragment.next;
    }
}

static void walk_level(struct walk *w, uint64_t block, unsigned level, uint64_t prefix)
{
    if (!take_steps(w, ENTRIES))
        return;
    for (uint64_t i = 0; i < ENTRIES && !w->out->cut; i++) {
        uint64_t entry = pointer(w->pages, block + 8 * i);
        uint64_t here = prefix << ENTRY_BITS | i;
        if (entry == 0)
            continue;
        if (level + 1 == LEVELS)
            walk_fragments(w, block + 8 * i, here << LOW_BITS);
        else
            walk_level(w, entry, level + 1, here);
    }
}

static void walk_list(struct walk *w, uint64_t node)
{
    uint64_t link = 0;
    while (node && take_steps(w, 1)) {
        add_section(w, node, link);
        link = node + w->layout->section.next;
        node = memory_pages_u64(w->pages, link);
    }
}

static int compare_ranges(const void *a, const void *b)
{
    const struct code_range *left = a, *right = b;
    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->section > right->section) - (left->section < right->section);
}

/* One section is met at each slot it spans. */
static void sort_out(struct code_ranges *ranges)
{
    size_t kept = 0;
    if (ranges->count)
        qsort(ranges->ranges, ranges->count, sizeof *ranges->ranges, compare_ranges);
    for (size_t i = 0; i < ranges->count; i++) {
        const struct code_range *r = &ranges->ranges[i];
        const struct code_range *before = kept ? &ranges->ranges[kept - 1] : NULL;
        if (before && r->begin < before->end) {
            ranges->insane += r->section != before->section;
            continue;
        }
        ranges->ranges[kept++] = *r;
    }
    ranges->count = kept;
}

static void read_ranges(struct walk *w, uint64_t root)
{
    *w->out = (struct code_ranges){ 0 };
    if (w->layout->list)
        walk_list(w, root);
    else
        walk_level(w, root, 0, 0);
    sort_out(w->out);
}

void code_ranges_read(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t root,
                      struct code_ranges *out)
{
    uint64_t steps = CODE_RANGES_STEPS_MAX;
    struct walk w = { .pages = pages, .layout = layout, .out = out, .steps = &steps };
    read_ranges(&w, root);
}

bool code_ranges_try(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t root,
                     size_t least, uint64_t *steps, struct code_ranges *out)
{
    struct walk w = { .pages = pages, .layout = layout, .out = out, .steps = steps, .strict = true };
    read_ranges(&w, root);
    if (out->count >= least && out->insane == 0 && !out->cut)
        return true;
    code_ranges_done(out);
    return false;
}

/* Places that are to be looked at next, all of one kind. */
struct places {
    uint64_t *addrs;
    size_t count, capacity;
};

static void add_place(struct places *places, uint64_t addr)
{
    if (addr == 0 || places->count == AHEAD_MAX ||
        (places->count && places->addrs[places->count - 1] == addr))
        return;
    places->addrs = mem_grow(places->addrs, &places->capacity, places->count + 1, sizeof *places->addrs);
    places->addrs[places->count++] = addr;
}

static void fetch_places(struct memory_pages *pages, const struct places *places, uint64_t size)
{
    for (size_t i = 0; i < places->count; i++)
        memory_pages_want(pages, places->addrs[i], size);
    memory_pages_fetch(pages);
}

/* Replaces blocks by what their entries lead to. */
static void descend(struct memory_pages *pages, struct places *blocks)
{
    struct places next = { 0 };
    fetch_places(pages, blocks, BLOCK_BYTES);
    for (size_t i = 0; i < blocks->count; i++)
        for (uint64_t entry = 0; entry < ENTRIES; entry++)
            add_place(&next, pointer(pages, blocks->addrs[i] + 8 * entry));
    free(blocks->addrs);
    *blocks = next;
}

/* Replaces each place by the pointer at `offset` from it. */
static void follow_pointers(struct memory_pages *pages, struct places *places, uint64_t offset)
{
    size_t count = places->count;
    fetch_places(pages, places, NODE_BYTES);
    places->count = 0;
    for (size_t i = 0; i < count; i++)
        add_place(places, pointer(pages, places->addrs[i] + offset));
}

void code_ranges_fetch(struct memory_pages *pages, const struct runtime_layout *layout, uint64_t map)
{
    struct places places = { 0 };
    add_place(&places, map);
    for (unsigned level = 0; level < LEVELS; level++)
        descend(pages, &places);
    follow_pointers(pages, &places, layout->fragment.section);
    follow_pointers(pages, &places, layout->section.ranges);
    for (size_t i = 0; i < places.count; i++)
        memory_pages_want(pages, places.addrs[i] + STUB_KIND, 4);
    memory_pages_fetch(pages);
    free(places.addrs);
}

void code_ranges_done(struct code_ranges *ranges)
{
    free(ranges->ranges);
    *ranges = (struct code_ranges){ 0 };
}

const struct code_range *code_ranges_find(const struct code_ranges *ranges, uint64_t addr)
{
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->ranges[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges->count && ranges->ranges[low].begin <= addr ? &ranges->ranges[low] : NULL;
}
