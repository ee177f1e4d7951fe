#include "clr/code_survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/nibble_map.h"

enum {
    CODES_MAX = 1 << 21,
    MAPS_BYTES_MAX = 32 << 20, /* of all heaps: of 2 GiB of code */
    THIN_ROW = 8,
    PREFETCH_AHEAD = 8,
};

static void want_heaps(struct code_survey *survey)
{
    for (size_t i = 0; i < survey->ranges.count; i++)
        if (survey->ranges.ranges[i].kind == CODE_RANGE_HEAP)
            code_heap_want(survey->pages, &survey->ranges.ranges[i]);
    memory_pages_fetch(survey->pages);
}

/* As many as there is room for their maps. */
static void read_heaps(struct code_survey *survey)
{
    size_t room = MAPS_BYTES_MAX;
    for (size_t i = 0; i < survey->ranges.count; i++) {
        const struct code_range *range = &survey->ranges.ranges[i];
        struct code_heap heap;
        if (range->kind != CODE_RANGE_HEAP)
            continue;
        if (!code_heap_read(survey->pages, survey->layout, range, room, &heap)) {
            survey->cut |= (range->end - range->begin) / NIBBLE_MAP_COVERS > room / 4;
            continue;
        }
        room -= heap.map.ceiling;
        survey->heaps =
            mem_grow(survey->heaps, &survey->heap_capacity, survey->heap_count + 1, sizeof *survey->heaps);
        survey->heaps[survey->heap_count++] = heap;
    }
    memory_pages_fetch(survey->pages);
}

void code_survey_read(struct code_survey *survey, struct memory_pages *pages,
                      const struct runtime_layout *layout, uint64_t root)
{
    *survey = (struct code_survey){ .pages = pages, .layout = layout };
    if (!layout->list)
        code_ranges_fetch(pages, layout, root);
    code_ranges_read(pages, layout, root, &survey->ranges);
    survey->cut = survey->ranges.cut;
    want_heaps(survey);
    read_heaps(survey);
    for (size_t i = 0; i < survey->heap_count; i++)
        code_heap_read_map(pages, &survey->heaps[i]);
}

void code_survey_done(struct code_survey *survey)
{
    for (size_t i = 0; i < survey->heap_count; i++)
        code_heap_done(&survey->heaps[i]);
    free(survey->heaps);
    code_ranges_done(&survey->ranges);
    *survey = (struct code_survey){ 0 };
}

/* Something that starts at an address, by the map of a heap. */
struct start {
    uint64_t addr, word;
    uint64_t wanted; /* an address that should lie in it */
    uint32_t heap;
};

struct starts {
    struct start *starts;
    size_t count, capacity;
};

static void add_start(struct starts *list, const struct code_heap *heap, uint32_t index, uint64_t offset,
                      uint64_t wanted)
{
    uint64_t addr = heap->base + offset;
    if (addr <= heap->range->begin || (list->count && list->starts[list->count - 1].addr == addr))
        return;
    list->starts = mem_grow(list->starts, &list->capacity, list->count + 1, sizeof *list->starts);
    list->starts[list->count++] =
        (struct start){ .addr = addr, .wanted = wanted ? wanted : addr, .heap = index };
}

static void list_all(struct code_survey *survey, uint32_t index, struct starts *list)
{
    const struct code_heap *heap = &survey->heaps[index];
    struct span map = buffer_span(&heap->map);
    for (uint64_t at = 0; list->count < CODES_MAX && nibble_map_next(map, survey->layout->constant, &at);
         at += 4)
        add_start(list, heap, index, at, 0);
    survey->cut |= list->count == CODES_MAX;
}

/* Those at or before the addresses that lie in the heap; `next` is the first address that may. */
static size_t list_wanted(struct code_survey *survey, uint32_t index, const struct code_choice *choice,
                          size_t next, struct starts *list)
{
    const struct code_heap *heap = &survey->heaps[index];
    struct span map = buffer_span(&heap->map);
    for (; next < choice->addr_count && choice->addrs[next] < heap->range->end; next++) {
        uint64_t addr = choice->addrs[next], start;
        if (addr >= heap->range->begin && addr >= heap->base &&
            nibble_map_find(map, survey->layout->constant, addr - heap->base, &start))
            add_start(list, heap, index, start, addr);
    }
    return next;
}

static struct starts list_starts(struct code_survey *survey, const struct code_choice *choice)
{
    struct starts list = { 0 };
    size_t next = 0;
    for (uint32_t i = 0; i < survey->heap_count; i++) {
        if (choice->collectible && !survey->heaps[i].range->collectible)
            continue;
        if (choice->addrs)
            next = list_wanted(survey, i, choice, next, &list);
        else
            list_all(survey, i, &list);
    }
    return list;
}

/* Keeps some in a row, then leaves out others: neighbours have their records on the same pages. */
static void thin_out(struct starts *list, size_t at_most)
{
    size_t step = at_most ? list->count / at_most + 1 : 1, kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (i / THIN_ROW % step == 0)
            list->starts[kept++] = list->starts[i];
    list->count = kept;
}

static void read_headers(struct memory_pages *pages, struct start *starts, size_t count)
{
    enum { HEADER_BYTES = 0x30 };
    for (size_t i = 0; i < count; i++)
        memory_pages_want(pages, starts[i].addr - 8, 8);
    memory_pages_fetch(pages);
    for (size_t i = 0; i < count; i++) {
        starts[i].word = code_heap_word(pages, starts[i].addr);
        if (starts[i].word % 8 == 0)
            memory_pages_want(pages, starts[i].word, HEADER_BYTES);
    }
    memory_pages_fetch(pages);
}

struct code_list code_survey_list(struct code_survey *survey, const struct code_choice *choice)
{
    struct starts starts = list_starts(survey, choice);
    thin_out(&starts, choice->at_most);
    struct code_list list = { .codes = mem_alloc(starts.count, sizeof *list.codes) };
    read_headers(survey->pages, starts.starts, starts.count);
    for (size_t i = 0; i < starts.count; i++) {
        const struct start *start = &starts.starts[i];
        if (i + PREFETCH_AHEAD < starts.count)
            memory_pages_prefetch(survey->pages, start[PREFETCH_AHEAD].word + survey->layout->header.method);
        const struct code_heap *heap = &survey->heaps[start->heap];
        struct code_body body;
        if (!code_heap_body_of_word(survey->pages, survey->layout, heap, start->addr, start->word, &body))
            list.broken++;
        else if (body.stub || start->wanted < body.end)
            list.codes[list.count++] = (struct surveyed_code){ .body = body, .range = heap->range };
    }
    free(starts.starts);
    list.shared_count =
        code_methods_describe(survey->pages, survey->layout, list.codes, list.count, !choice->no_tiers);
    return list;
}

bool code_survey_find(struct code_survey *survey, const struct code_range *range, uint64_t addr,
                      struct surveyed_code *out)
{
    for (size_t i = 0; i < survey->heap_count; i++) {
        struct surveyed_code code = { .range = range };
        if (survey->heaps[i].range != range ||
            !code_heap_find(survey->pages, survey->layout, &survey->heaps[i], addr, &code.body))
            continue;
        code.described = method_desc_read(survey->pages, survey->layout, code.body.method, &code.method);
        code_methods_find_tier(survey->pages, survey->layout, &code);
        *out = code;
        return true;
    }
    return false;
}

bool code_survey_renew_heap(struct code_survey *survey, const struct code_range *range)
{
    size_t i = 0;
    struct code_heap heap;
    while (i < survey->heap_count && survey->heaps[i].range != range)
        i++;
    if (i == survey->heap_count ||
        !code_heap_read(survey->pages, survey->layout, range, MAPS_BYTES_MAX, &heap))
        return false;
    memory_pages_fetch(survey->pages);
    code_heap_read_map(survey->pages, &heap);
    code_heap_done(&survey->heaps[i]);
    survey->heaps[i] = heap;
    return true;
}

static bool is_dynamic(const struct surveyed_code *code)
{
    return code->described && code->method.kind == METHOD_DYNAMIC;
}

void code_survey_read_dynamic(struct code_survey *survey, const struct surveyed_code *list, size_t count)
{
    enum { NAME_BYTES = 64, RESOLVER_BYTES = 0x20 };
    for (size_t i = 0; i < count; i++) {
        struct dynamic_method dynamic;
        if (!is_dynamic(&list[i]))
            continue;
        uint64_t resolver =
            memory_pages_u64(survey->pages, list[i].method.addr + survey->layout->dynamic.resolver);
        dynamic_method_name(survey->pages, survey->layout, &list[i].method, &dynamic);
        memory_pages_want(survey->pages, dynamic.name, NAME_BYTES);
        memory_pages_want(survey->pages, dynamic.signature, dynamic.signature_size);
        memory_pages_want(survey->pages, resolver, RESOLVER_BYTES);
    }
    memory_pages_fetch(survey->pages);
}

/*
 * What must not have changed since: the word before the code, the header's record, and of a dynamic method
 * the record's name, the name; of others the record and its type. And the runtime must still know the heap,
 * and its map the code: what was freed lies there as before, and its record may be that of the next method.
 */
enum { HELD_PIECES = 4, PROOF_PIECES = HELD_PIECES + 2, HELD_BYTES_MAX = 16, PROOFS = 120 };
struct proof {
    struct surveyed_code *code;
    uint8_t held[HELD_PIECES][HELD_BYTES_MAX], now[HELD_PIECES][HELD_BYTES_MAX];
    uint8_t link[8], mark[4]; /* now */
};

static void start_proof(struct code_survey *survey, struct surveyed_code *code, struct proof *proof,
                        struct memory_piece pieces[PROOF_PIECES])
{
    const struct runtime_layout *layout = survey->layout;
    const struct code_range *range = code->range;
    bool dynamic = is_dynamic(code);
    uint64_t record = code->method.addr + (dynamic ? layout->dynamic.name : 0);
    uint64_t name = dynamic
                        ? memory_pages_u64(survey->pages, record)
                        : method_desc_chunk(survey->pages, layout, code->method.addr) + layout->chunk.table;
    size_t room = dynamic ? MEMORY_PAGE_BYTES - name % MEMORY_PAGE_BYTES : 8;
    const uint64_t addrs[HELD_PIECES] = { code->body.begin - 8, code->body.header + layout->header.method,
                                          record, name };
    *proof = (struct proof){ .code = code };
    for (size_t k = 0; k < HELD_PIECES; k++) {
        size_t size = k + 1 < HELD_PIECES ? 8 : room < HELD_BYTES_MAX ? room : HELD_BYTES_MAX;
        memory_pages_read(survey->pages, addrs[k], proof->held[k], size);
        *pieces++ = (struct memory_piece){ addrs[k], proof->now[k], size, 0 };
    }
    *pieces++ = (struct memory_piece){ code->body.mark, proof->mark, sizeof proof->mark, 0 };
    *pieces = (struct memory_piece){ range->link ? range->link : range->section, proof->link,
                                     sizeof proof->link, 0 };
}

static bool is_proven(const struct proof *p, const struct memory_piece pieces[PROOF_PIECES])
{
    const struct code_range *range = p->code->range;
    for (size_t k = 0; k < PROOF_PIECES; k++)
        if (pieces[k].got != pieces[k].size ||
            (k < HELD_PIECES && memcmp(p->held[k], p->now[k], pieces[k].size) != 0))
            return false;
    return nibble_map_starts(load_u32le(p->mark), p->code->body.mark_offset) &&
           (range->link == 0 || load_u64le(p->link) == range->link_word);
}

static void end_proofs(const struct memory *memory, const struct proof *proofs, struct memory_piece *pieces,
                       size_t count)
{
    memory->read(memory->user, pieces, PROOF_PIECES * count);
    for (size_t i = 0; i < count; i++)
        if (!is_proven(&proofs[i], &pieces[PROOF_PIECES * i]))
            proofs[i].code->described = false;
}

void code_survey_prove(struct code_survey *survey, struct surveyed_code *list, size_t count)
{
    struct proof proofs[PROOFS];
    struct memory_piece pieces[PROOF_PIECES * PROOFS];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].described && (list[i].range->collectible || is_dynamic(&list[i]))) {
            start_proof(survey, &list[i], &proofs[used], &pieces[PROOF_PIECES * used]);
            used++;
        }
        if (used == PROOFS || (used && i + 1 == count)) {
            end_proofs(survey->pages->memory, proofs, pieces, used);
            used = 0;
        }
    }
}
