#include "clr/code_methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/mem.h"
#include "base/own.h"
#include "clr/call_counting.h"

enum {
    PREFETCH_AHEAD = 8,
    RECORD_BYTES = 0x28, /* of a MethodDesc, what is looked at for all of them */
    NOTE_BYTES = 0x28,   /* of a NativeCodeVersionNode */
};

/* A method with its pieces of code. */
struct method {
    uint64_t addr;
    uint32_t first; /* piece, + 1 */
};

struct methods {
    struct memory_pages *pages;
    const struct runtime_layout *layout;
    struct surveyed_code *list;
    uint32_t *next; /* by piece: the next one of the same method, + 1, or 0 */
    struct method *methods;
    size_t count, capacity;
    uint64_t *trail; /* an address for each method, or for fewer */
};

static bool is_method(const void *table, uint32_t id, const void *key)
{
    return ((const struct method *)table)[id - 1].addr == *(const uint64_t *)key;
}

static void group(struct methods *m, size_t count)
{
    struct id_map ids = { 0 };
    for (size_t i = 0; i < count; i++) {
        uint64_t addr = m->list[i].body.method, hash = hash_pair(addr, 0);
        if (addr == 0)
            continue;
        uint32_t id = id_map_find(&ids, hash, is_method, m->methods, &addr);
        if (!id) {
            m->methods = mem_grow(m->methods, &m->capacity, m->count + 1, sizeof *m->methods);
            m->methods[m->count++] = (struct method){ .addr = addr };
            id = (uint32_t)m->count;
            id_map_add(&ids, hash, id);
        }
        m->next[i] = m->methods[id - 1].first;
        m->methods[id - 1].first = (uint32_t)i + 1;
    }
    id_map_done(&ids);
}

/* Of the address that comes some turns behind number i: they lie all over. */
static void prefetch_ahead(const struct methods *m, size_t count, size_t i, uint64_t offset)
{
    if (i + PREFETCH_AHEAD < count && m->trail[i + PREFETCH_AHEAD])
        memory_pages_prefetch(m->pages, m->trail[i + PREFETCH_AHEAD] + offset);
}

/* As memory_pages_follow_all() of the trail; leaves out what leads nowhere and what comes twice in a row, and
 * returns what is left. */
static size_t follow_few(struct methods *m, size_t count, uint64_t offset)
{
    size_t kept = 0;
    memory_pages_follow_all(m->pages, m->trail, count, offset);
    for (size_t i = 0; i < count; i++)
        if (m->trail[i] && (kept == 0 || m->trail[kept - 1] != m->trail[i]))
            m->trail[kept++] = m->trail[i];
    return kept;
}

/* From types to their EEClass. */
static void follow_classes(struct methods *m, size_t count)
{
    count = follow_few(m, count, m->layout->table.class_or_canonical);
    follow_few(m, count, m->layout->class_table);
}

/* The pages of the records and their types, and of those their EEClass and their type arguments. */
static void read_types(struct methods *m)
{
    for (size_t i = 0; i < m->count; i++)
        memory_pages_want(m->pages, m->methods[i].addr, RECORD_BYTES);
    memory_pages_fetch(m->pages);
    for (size_t i = 0; i < m->count; i++)
        m->trail[i] = method_desc_chunk(m->pages, m->layout, m->methods[i].addr);
    size_t count = follow_few(m, m->count, m->layout->chunk.table);
    uint64_t *tables = mem_alloc(count ? count : 1, sizeof *tables);
    memcpy(tables, m->trail, count * sizeof *tables);
    follow_classes(m, count);
    memcpy(m->trail, tables, count * sizeof *tables);
    count = follow_few(m, count, m->layout->table.instance);
    count = follow_few(m, count, 0); /* the first dictionary of those */
    count = follow_few(m, count, 0);
    follow_classes(m, count);
    free(tables);
}

static void describe(struct methods *m)
{
    for (size_t i = 0; i < m->count; i++) {
        struct method_desc record;
        if (i + PREFETCH_AHEAD < m->count)
            memory_pages_prefetch(m->pages, m->methods[i + PREFETCH_AHEAD].addr);
        if (!method_desc_read(m->pages, m->layout, m->methods[i].addr, &record))
            continue;
        for (uint32_t piece = m->methods[i].first; piece; piece = m->next[piece - 1]) {
            m->list[piece - 1].method = record;
            m->list[piece - 1].described = true;
        }
    }
}

static uint32_t number_shared(struct methods *m)
{
    uint32_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->next[m->methods[i].first - 1] == 0)
            continue;
        count++;
        for (uint32_t piece = m->methods[i].first; piece; piece = m->next[piece - 1])
            m->list[piece - 1].shared = count;
    }
    return count;
}

static void set_tier(struct methods *m, const struct method *method, const struct method_version *version)
{
    for (uint32_t piece = method->first; piece; piece = m->next[piece - 1])
        if (m->list[piece - 1].body.begin == version->code) {
            m->list[piece - 1].has_tier = true;
            m->list[piece - 1].tier = version->tier;
        }
}

/* From the records to the notes on versions of their code, of all one note a round. */
static void find_tiers(struct methods *m)
{
    const struct runtime_layout *layout = m->layout;
    size_t left = m->count;
    if (layout->version.first == LAYOUT_NONE || layout->method.code_data == LAYOUT_NONE)
        return;
    for (size_t i = 0; i < m->count; i++)
        m->trail[i] = m->methods[i].addr;
    memory_pages_follow_all(m->pages, m->trail, m->count, layout->method.code_data);
    memory_pages_follow_all(m->pages, m->trail, m->count, layout->version.state);
    memory_pages_follow_all(m->pages, m->trail, m->count, layout->version.first);
    for (unsigned round = 0; left && round < METHOD_VERSIONS_MAX; round++) {
        left = 0;
        for (size_t i = 0; i < m->count; i++)
            if (m->trail[i])
                memory_pages_want(m->pages, m->trail[i], NOTE_BYTES);
        memory_pages_fetch(m->pages);
        for (size_t i = 0; i < m->count; i++) {
            struct method_version version;
            prefetch_ahead(m, m->count, i, layout->version.code);
            if (!m->trail[i])
                continue;
            method_version_read(m->pages, layout, m->trail[i], &version);
            set_tier(m, &m->methods[i], &version);
            m->trail[i] = version.next;
            left += version.next != 0;
        }
    }
}

static bool is_first_code(const struct surveyed_code *code)
{
    return code->described && code->method.tiered && !code->has_tier;
}

static void find_optimized_one(struct memory_pages *pages, const struct call_counting *counting,
                               struct surveyed_code *code)
{
    if (!is_first_code(code) || !call_counting_is_off(pages, counting, code->method.addr))
        return;
    code->has_tier = true;
    code->tier = METHOD_TIER_OPTIMIZED;
}

/* Of code without a note: what was optimized at once, as that is not counted. */
static void find_optimized(struct methods *m, size_t count)
{
    typedef void want_fn(struct memory_pages *, const struct call_counting *, uint64_t);
    static want_fn *const want[] = { call_counting_want_place, call_counting_want_entry };
    struct call_counting counting = { 0 };
    for (size_t step = 0; step < ARRAY_LEN(want); step++) {
        for (size_t i = 0; i < count; i++) {
            if (!is_first_code(&m->list[i]))
                continue;
            call_counting_open(m->pages, m->layout, m->list[i].range->heap, &counting);
            want[step](m->pages, &counting, m->list[i].method.addr);
        }
        memory_pages_fetch(m->pages);
    }
    for (size_t i = 0; i < count; i++) {
        call_counting_open(m->pages, m->layout, m->list[i].range->heap, &counting);
        find_optimized_one(m->pages, &counting, &m->list[i]);
    }
}

void code_methods_find_tier(struct memory_pages *pages, const struct runtime_layout *layout,
                            struct surveyed_code *code)
{
    struct call_counting counting = { 0 };
    code->has_tier =
        code->described && method_desc_tier(pages, layout, &code->method, code->body.begin, &code->tier);
    if (!is_first_code(code))
        return;
    call_counting_open(pages, layout, code->range->heap, &counting);
    find_optimized_one(pages, &counting, code);
}

uint32_t code_methods_describe(struct memory_pages *pages, const struct runtime_layout *layout,
                               struct surveyed_code *list, size_t count, bool tiers)
{
    struct methods m = { .pages = pages, .layout = layout, .list = list };
    m.next = mem_alloc(count, sizeof *m.next);
    group(&m, count);
    m.trail = mem_alloc(m.count, sizeof *m.trail);
    read_types(&m);
    describe(&m);
    if (tiers) {
        find_tiers(&m);
        find_optimized(&m, count);
    }
    uint32_t shared = number_shared(&m);
    free(m.trail);
    free(m.next);
    free(m.methods);
    return shared;
}
