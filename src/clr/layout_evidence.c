#include "clr/layout_evidence.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/nibble_map.h"
#include "clr/precode.h"

enum {
    CODES_MAX = 3000,
    METHODS_MAX = 4000,
    CHAIN_MAX = 16,         /* chunks of one type to go on to */
    PRECODES_MAX = 50000,   /* places of precodes to look at */
    OF_PRECODES_MAX = 1000, /* methods to take from them */
    MODULES_MAX = 128,
    STUB_KIND_MAX = 15,
    HEADER_BYTES = 0x60,
    CHUNK_NEXT = 8, /* of a MethodDescChunk: the type's next one */
};

void layout_evidence_init(struct layout_evidence *e, struct memory_pages *pages,
                          const struct runtime_layout *layout, uint64_t root)
{
    *e = (struct layout_evidence){ .pages = pages };
    code_survey_read(&e->survey, pages, layout, root);
}

void layout_evidence_done(struct layout_evidence *e)
{
    for (size_t i = 0; i < e->module_count; i++)
        loaded_module_done(&e->modules[i]);
    free(e->modules);
    free(e->tables);
    free(e->methods);
    free(e->codes);
    code_survey_done(&e->survey);
    *e = (struct layout_evidence){ 0 };
}

/* Code. */

static size_t count_starts(const struct layout_evidence *e)
{
    size_t count = 0;
    for (size_t i = 0; i < e->survey.heap_count; i++) {
        struct span map = buffer_span(&e->survey.heaps[i].map);
        for (uint64_t at = 0; nibble_map_next(map, e->survey.layout->constant, &at); at += 4)
            count++;
    }
    return count;
}

static void add_code(struct layout_evidence *e, const struct code_heap *heap, uint64_t offset)
{
    uint64_t start = heap->base + offset;
    if (start <= heap->range->begin)
        return;
    e->codes = mem_grow(e->codes, &e->code_capacity, e->code_count + 1, sizeof *e->codes);
    e->codes[e->code_count++] = (struct evident_code){ .start = start, .range_begin = heap->range->begin };
    memory_pages_want(e->pages, start - 8, 8);
}

/* Drops stubs, and what has no sane pointer before it. */
static void find_headers(struct layout_evidence *e)
{
    size_t kept = 0;
    memory_pages_fetch(e->pages);
    for (size_t i = 0; i < e->code_count; i++) {
        struct evident_code code = e->codes[i];
        code.header = code_heap_word(e->pages, code.start);
        if (code.header <= STUB_KIND_MAX || code.header % 8 != 0)
            continue;
        memory_pages_want(e->pages, code.header, HEADER_BYTES);
        e->codes[kept++] = code;
    }
    e->code_count = kept;
    memory_pages_fetch(e->pages);
}

void layout_evidence_codes(struct layout_evidence *e)
{
    size_t step = count_starts(e) / CODES_MAX + 1, i = 0;
    for (size_t k = 0; k < e->survey.heap_count; k++) {
        const struct code_heap *heap = &e->survey.heaps[k];
        struct span map = buffer_span(&heap->map);
        for (uint64_t at = 0; nibble_map_next(map, e->survey.layout->constant, &at); at += 4)
            if (i++ % step == 0)
                add_code(e, heap, at);
    }
    find_headers(e);
}

static int compare_code(const void *key, const void *row)
{
    uint64_t start = *(const uint64_t *)key, there = ((const struct evident_code *)row)->start;
    return (start > there) - (start < there);
}

const struct evident_code *layout_evidence_code(const struct layout_evidence *e, uint64_t start)
{
    return e->code_count ? bsearch(&start, e->codes, e->code_count, sizeof *e->codes, compare_code) : NULL;
}

/* Methods and types. */

static bool add_method(struct layout_evidence *e, uint64_t addr)
{
    struct method_desc method;
    if (e->method_count == METHODS_MAX || !method_desc_read(e->pages, e->survey.layout, addr, &method))
        return false;
    e->methods = mem_grow(e->methods, &e->method_capacity, e->method_count + 1, sizeof *e->methods);
    e->methods[e->method_count++] = method;
    return true;
}

static void add_methods_with_code(struct layout_evidence *e)
{
    const struct runtime_layout *layout = e->survey.layout;
    for (int round = 0; round < 2; round++) { /* the first asks for the pages */
        for (size_t i = 0; i < e->code_count; i++) {
            uint64_t method = memory_pages_u64(e->pages, e->codes[i].header + layout->header.method);
            if (round)
                add_method(e, method);
            else if (method && method % 8 == 0)
                memory_pages_want(e->pages, method, 8);
        }
        memory_pages_fetch(e->pages);
    }
}

/* A small program has little jitted code; methods also have records behind their precodes. */
static void add_methods_of_precodes(struct layout_evidence *e)
{
    unsigned tries = 0, taken = 0;
    for (size_t i = 0; i < e->survey.ranges.count; i++) {
        const struct code_range *range = &e->survey.ranges.ranges[i];
        if (range->kind != CODE_RANGE_STUBS)
            continue;
        for (uint64_t at = range->begin; at < range->end && tries < PRECODES_MAX && taken < OF_PRECODES_MAX;
             at += PRECODE_BYTES, tries++) {
            struct precode precode;
            taken += precode_read(e->pages, at, &precode) && add_method(e, precode.method);
        }
    }
}

/* The first methods of further chunks of the same types. */
static void add_methods_of_chunks(struct layout_evidence *e)
{
    const struct runtime_layout *layout = e->survey.layout;
    size_t known = e->method_count;
    for (size_t i = 0; i < known; i++) {
        uint64_t chunk = method_desc_chunk(e->pages, layout, e->methods[i].addr);
        for (unsigned k = 0; k < CHAIN_MAX; k++) {
            chunk = memory_pages_u64(e->pages, chunk + CHUNK_NEXT);
            if (chunk == 0 || chunk % 8 != 0 || !add_method(e, chunk + layout->chunk.size))
                break;
        }
    }
}

static int compare_methods(const void *a, const void *b)
{
    const struct method_desc *x = a, *y = b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

static int compare_addrs(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void keep_methods_once(struct layout_evidence *e)
{
    size_t kept = 0;
    if (e->method_count)
        qsort(e->methods, e->method_count, sizeof *e->methods, compare_methods);
    for (size_t i = 0; i < e->method_count; i++)
        if (kept == 0 || e->methods[kept - 1].addr != e->methods[i].addr)
            e->methods[kept++] = e->methods[i];
    e->method_count = kept;
}

static void list_tables(struct layout_evidence *e)
{
    size_t kept = 0;
    e->tables = mem_alloc(e->method_count + 1, sizeof *e->tables);
    for (size_t i = 0; i < e->method_count; i++)
        e->tables[i] = e->methods[i].table;
    qsort(e->tables, e->method_count, sizeof *e->tables, compare_addrs);
    for (size_t i = 0; i < e->method_count; i++)
        if (kept == 0 || e->tables[kept - 1] != e->tables[i])
            e->tables[kept++] = e->tables[i];
    e->table_count = kept;
}

void layout_evidence_methods(struct layout_evidence *e)
{
    add_methods_with_code(e);
    add_methods_of_precodes(e);
    add_methods_of_chunks(e);
    keep_methods_once(e);
    list_tables(e);
}

/* Modules. */

static int compare_module(const void *key, const void *row)
{
    uint64_t addr = *(const uint64_t *)key, there = ((const struct loaded_module *)row)->addr;
    return (addr > there) - (addr < there);
}

const struct loaded_module *layout_evidence_module(const struct layout_evidence *e, uint64_t addr)
{
    return e->module_count ? bsearch(&addr, e->modules, e->module_count, sizeof *e->modules, compare_module)
                           : NULL;
}

void layout_evidence_modules(struct layout_evidence *e, const struct module_files *files)
{
    uint64_t *addrs = mem_alloc(e->table_count + 1, sizeof *addrs);
    for (size_t i = 0; i < e->table_count; i++)
        addrs[i] = memory_pages_u64(e->pages, e->tables[i] + e->survey.layout->table.module);
    qsort(addrs, e->table_count, sizeof *addrs, compare_addrs);
    for (size_t i = 0; i < e->table_count && e->module_count < MODULES_MAX; i++) {
        if (addrs[i] == 0 || addrs[i] % 8 != 0 || (i && addrs[i] == addrs[i - 1]))
            continue;
        e->modules = mem_grow(e->modules, &e->module_capacity, e->module_count + 1, sizeof *e->modules);
        loaded_module_read(e->pages, e->survey.layout, files, addrs[i], &e->modules[e->module_count++]);
    }
    free(addrs);
}
