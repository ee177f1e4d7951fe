#include "clr/code_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/code_heap.h"
#include "clr/method_text.h"
#include "clr/nibble_map.h"
#include "clr/precode.h"
#include "clr/runtime_version.h"

enum {
    PAGE_BYTES_MAX = 512 << 20,
    NAME_BYTES_MAX = 64 << 10,
    BODIES_MAX = 1 << 21,
    CHECK_MIN = 50, /* methods to compare before a layout is believed */
    CHECK_MAX = 1000,
    CHECK_TRIES_MAX = 20000,
    CHECK_PER_CENT = 99,
    METHOD_TOKEN = 0x06000000,
};

struct start {
    uint64_t addr, word;
    uint32_t heap;
};

struct code_walk {
    struct memory_pages pages;
    const struct module_files *files;
    struct runtime_root root;
    struct runtime_layout layout;
    struct code_ranges ranges;
    struct code_heap *heaps; /* by address */
    size_t heap_count, heap_capacity;
    bool surveyed; /* ranges and heaps are of now */
    struct loaded_types types;
    struct code_walk_report report;
    struct buffer name, target, import; /* of the last answer */
};

static void forget_heaps(struct code_walk *w)
{
    for (size_t i = 0; i < w->heap_count; i++)
        code_heap_done(&w->heaps[i]);
    w->heap_count = 0;
    code_ranges_done(&w->ranges);
    w->surveyed = false;
}

/* The regions of code, and of heaps of jitted code what starts where. */
static void survey(struct code_walk *w)
{
    if (w->surveyed)
        return;
    forget_heaps(w);
    if (w->root.list && w->root.head)
        w->root.addr = memory_pages_u64(&w->pages, w->root.head);
    code_ranges_read(&w->pages, &w->layout, w->root.addr, &w->ranges);
    for (size_t i = 0; i < w->ranges.count; i++) {
        const struct code_range *range = &w->ranges.ranges[i];
        struct code_heap heap;
        if (range->kind != CODE_RANGE_HEAP || !code_heap_read(&w->pages, &w->layout, range, &heap))
            continue;
        w->heaps = mem_grow(w->heaps, &w->heap_capacity, w->heap_count + 1, sizeof *w->heaps);
        w->heaps[w->heap_count++] = heap;
    }
    w->report.ranges = w->ranges.count;
    w->surveyed = true;
}

static struct start *list_starts(struct code_walk *w, size_t *out_count)
{
    struct start *starts = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < w->heap_count; i++) {
        const struct code_heap *heap = &w->heaps[i];
        struct span map = buffer_span(&heap->map);
        for (uint64_t at = 0; count < BODIES_MAX && nibble_map_next(map, w->layout.constant, &at); at += 4) {
            if (heap->base + at <= heap->range->begin)
                continue;
            starts = mem_grow(starts, &capacity, count + 1, sizeof *starts);
            starts[count++] = (struct start){ .addr = heap->base + at, .heap = (uint32_t)i };
        }
    }
    *out_count = count;
    return starts;
}

/* What precedes each start, then the headers those point to: two rounds of large reads. */
static void read_headers(struct code_walk *w, struct start *starts, size_t count)
{
    enum { HEADER_BYTES = 0x30 };
    for (size_t i = 0; i < count; i++)
        memory_pages_want(&w->pages, starts[i].addr - 8, 8);
    memory_pages_fetch(&w->pages);
    for (size_t i = 0; i < count; i++) {
        starts[i].word = code_heap_word(&w->pages, starts[i].addr);
        if (starts[i].word % 8 == 0)
            memory_pages_want(&w->pages, starts[i].word, HEADER_BYTES);
    }
    memory_pages_fetch(&w->pages);
}

/* The records of the bodies' methods, their chunks' heads and their types, likewise. */
static void read_methods(struct code_walk *w, const struct code_body *bodies, size_t count)
{
    enum { METHOD_BYTES = 0x30, TABLE_BYTES = 0x40 };
    for (size_t i = 0; i < count; i++)
        if (bodies[i].method)
            memory_pages_want(&w->pages, bodies[i].method, METHOD_BYTES);
    memory_pages_fetch(&w->pages);
    for (size_t i = 0; i < count; i++)
        if (bodies[i].method)
            memory_pages_want(&w->pages, method_desc_chunk(&w->pages, &w->layout, bodies[i].method), 8);
    memory_pages_fetch(&w->pages);
    for (size_t i = 0; i < count; i++) {
        uint64_t chunk = bodies[i].method ? method_desc_chunk(&w->pages, &w->layout, bodies[i].method) : 0;
        if (chunk)
            memory_pages_want(&w->pages, memory_pages_u64(&w->pages, chunk + w->layout.chunk.table),
                              TABLE_BYTES);
    }
    memory_pages_fetch(&w->pages);
}

static struct code_body *list_bodies(struct code_walk *w, size_t *out_count)
{
    size_t start_count, count = 0;
    struct start *starts = list_starts(w, &start_count);
    struct code_body *bodies = mem_alloc(start_count ? start_count : 1, sizeof *bodies);
    read_headers(w, starts, start_count);
    w->report.broken = 0;
    for (size_t i = 0; i < start_count; i++) {
        if (code_heap_body_of_word(&w->pages, &w->layout, &w->heaps[starts[i].heap], starts[i].addr,
                                   starts[i].word, &bodies[count]))
            count++;
        else
            w->report.broken++;
    }
    free(starts);
    read_methods(w, bodies, count);
    *out_count = count;
    return bodies;
}

static bool is_dynamic(struct code_walk *w, const struct code_body *body, struct method_desc *method,
                       struct dynamic_method *dynamic)
{
    if (!body->method || !method_desc_read(&w->pages, &w->layout, body->method, method) ||
        method->kind != METHOD_DYNAMIC)
        return false;
    dynamic_method_read(&w->pages, &w->layout, method, dynamic);
    return true;
}

static void read_dynamic(struct code_walk *w, const struct code_body *bodies, size_t count)
{
    enum { NAME_BYTES = 64 };
    for (size_t i = 0; i < count; i++) {
        struct method_desc method;
        struct dynamic_method dynamic;
        if (!is_dynamic(w, &bodies[i], &method, &dynamic))
            continue;
        memory_pages_want(&w->pages, dynamic.name, NAME_BYTES);
        memory_pages_want(&w->pages, dynamic.signature, dynamic.signature_size);
    }
    memory_pages_fetch(&w->pages);
}

/* What must not have changed since a dynamic method's name was read. */
struct proof {
    uint32_t body;
    uint64_t addr[4];
    uint8_t held[4][16], now[4][16];
};

static void prove(struct code_walk *w, const struct proof *proofs, struct memory_piece *pieces, size_t count,
                  struct code_body *bodies)
{
    w->pages.memory->read(w->pages.memory->user, pieces, 4 * count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 4; k++)
            if (pieces[4 * i + k].got != pieces[4 * i + k].size ||
                memcmp(proofs[i].held[k], proofs[i].now[k], pieces[4 * i + k].size) != 0)
                bodies[proofs[i].body].method = 0;
}

/*
 * Dynamic methods are freed, and their records used again, at any time. So all that is known of them is read
 * first, then the header, the record and the name once more; those that differ lose their method.
 */
static void keep_steady(struct code_walk *w, struct code_body *bodies, size_t count)
{
    enum { BATCH = 120 };
    struct proof proofs[BATCH];
    struct memory_piece pieces[4 * BATCH];
    size_t used = 0;
    read_dynamic(w, bodies, count);
    for (size_t i = 0; i < count; i++) {
        struct method_desc method;
        struct dynamic_method dynamic;
        if (is_dynamic(w, &bodies[i], &method, &dynamic)) {
            struct proof *p = &proofs[used];
            *p = (struct proof){ .body = (uint32_t)i,
                                 .addr = { bodies[i].begin - 8, bodies[i].header + w->layout.header.method,
                                           method.addr + w->layout.dynamic.name, dynamic.name } };
            for (size_t k = 0; k < 4; k++) {
                size_t room = MEMORY_PAGE_BYTES - p->addr[k] % MEMORY_PAGE_BYTES;
                size_t size = k < 3 ? 8 : room < 16 ? room : 16;
                memory_pages_read(&w->pages, p->addr[k], p->held[k], size);
                pieces[4 * used + k] = (struct memory_piece){ p->addr[k], p->now[k], size, 0 };
            }
            used++;
        }
        if (used == BATCH || (used && i + 1 == count)) {
            prove(w, proofs, pieces, used, bodies);
            used = 0;
        }
    }
}

static enum found_tier tier_of(uint32_t told)
{
    static const uint8_t tiers[] = {
        FOUND_TIER_0, FOUND_TIER_1, FOUND_TIER_OSR, FOUND_TIER_OPTIMIZED, FOUND_TIER_0_INSTRUMENTED,
        FOUND_TIER_1
    };
    return told < sizeof tiers ? tiers[told] : FOUND_TIER_UNKNOWN;
}

static const char *finished(struct buffer *text, bool ok)
{
    buffer_u8(text, 0);
    return ok && !text->failed ? (const char *)text->data : "";
}

static void find_tier(struct code_walk *w, const struct method_desc *method, struct found_method *found)
{
    uint32_t told;
    if (method_desc_tier(&w->pages, &w->layout, method, found->begin, &told))
        found->tier = tier_of(told);
    else if (w->layout.version.first != LAYOUT_NONE && method->tiered)
        found->tier = FOUND_TIER_0;
}

static void name_defined(struct code_walk *w, const struct method_desc *method, struct found_method *found)
{
    const struct loaded_type *type = loaded_types_find(&w->types, method->table);
    found->kind = FOUND_METHOD;
    found->generic = method->kind == METHOD_GENERIC;
    found->token = METHOD_TOKEN | method->row;
    found->name = finished(&w->name, method_text_append(&w->types, method, &w->name));
    if (type) {
        const struct loaded_module *module = loaded_types_module(&w->types, type);
        found->module_id = module->addr;
        found->module = module->name;
        found->path = module->path;
    }
}

/* The method that a stub leads to, by the address of its record. */
static void name_target(struct code_walk *w, uint64_t target, struct found_method *found)
{
    struct method_desc method;
    if (!target || !method_desc_read(&w->pages, &w->layout, target, &method))
        return;
    found->target = finished(&w->target, method_text_append(&w->types, &method, &w->target));
    if (found->target[0] && method.kind == METHOD_PINVOKE)
        found->import = finished(&w->import, method_text_append_import(&w->types, &method, &w->import));
}

static void name_dynamic(struct code_walk *w, const struct method_desc *method, struct found_method *found)
{
    struct dynamic_method dynamic;
    found->kind = FOUND_DYNAMIC;
    found->collectible = true;
    found->name = finished(&w->name, method_text_append(&w->types, method, &w->name));
    dynamic_method_read(&w->pages, &w->layout, method, &dynamic);
    name_target(w, dynamic.target, found);
}

static void clear_answer(struct code_walk *w, struct found_method *found)
{
    buffer_clear(&w->name);
    buffer_clear(&w->target);
    buffer_clear(&w->import);
    *found = (struct found_method){ .name = "", .module = "", .path = "", .target = "", .import = "" };
}

static void name_body(struct code_walk *w, const struct code_body *body, struct found_method *found)
{
    struct method_desc method;
    clear_answer(w, found);
    found->begin = body->begin;
    found->end = body->end;
    found->method_id = body->method;
    if (body->stub) {
        found->kind = FOUND_STUB;
        found->name = code_stub_name(body->stub);
        return;
    }
    if (!method_desc_read(&w->pages, &w->layout, body->method, &method)) {
        found->kind = body->method ? FOUND_METHOD : FOUND_DYNAMIC;
        return;
    }
    if (method.kind == METHOD_DYNAMIC)
        name_dynamic(w, &method, found);
    else
        name_defined(w, &method, found);
    find_tier(w, &method, found);
}

static void count_agreement(struct code_walk *w, uint64_t method_addr)
{
    struct method_desc method;
    if (!method_desc_read(&w->pages, &w->layout, method_addr, &method))
        return;
    enum method_agreement agreement = method_text_check(&w->types, &method);
    w->report.checked += agreement != AGREEMENT_UNKNOWN;
    w->report.agreed += agreement == AGREEMENT_RIGHT;
}

/* A small program has little jitted code; methods also have records behind their precodes. */
static void check_precodes(struct code_walk *w)
{
    for (size_t i = 0; i < w->ranges.count && w->report.checked < CHECK_MIN * 4; i++) {
        const struct code_range *range = &w->ranges.ranges[i];
        unsigned tries = 0;
        if (range->kind != CODE_RANGE_STUBS)
            continue;
        for (uint64_t at = range->begin; at < range->end && tries < CHECK_TRIES_MAX;
             at += PRECODE_BYTES, tries++) {
            struct precode precode;
            if (precode_read(&w->pages, at, &precode))
                count_agreement(w, precode.method);
            if (w->report.checked >= CHECK_MIN * 4)
                break;
        }
    }
}

/* Does the metadata agree with what this layout makes of the methods that have code? */
static bool layout_fits(struct code_walk *w)
{
    size_t count;
    survey(w);
    struct code_body *bodies = list_bodies(w, &count);
    size_t step = count / CHECK_MAX + 1;
    w->report.checked = w->report.agreed = 0;
    for (size_t i = 0; i < count; i += step)
        if (bodies[i].method)
            count_agreement(w, bodies[i].method);
    free(bodies);
    if (w->report.checked < CHECK_MIN)
        check_precodes(w);
    return w->report.checked >= CHECK_MIN &&
           (uint64_t)w->report.agreed * 100 >= (uint64_t)w->report.checked * CHECK_PER_CENT;
}

static bool try_layout(struct code_walk *w, const struct runtime_layout *layout, bool described)
{
    w->layout = *layout;
    if (described && !runtime_layout_describe(&w->layout, w->root.descriptor))
        return false;
    forget_heaps(w);
    loaded_types_init(&w->types, &w->pages, &w->layout, w->files);
    if (layout_fits(w)) {
        w->report.root = w->root.way;
        w->report.layout = layout->name;
        w->report.described = described;
        return true;
    }
    loaded_types_done(&w->types);
    return false;
}

/* The layout that the shape of what is there speaks for; which one it is the metadata says. */
static const struct runtime_layout *guess_layout(struct code_walk *w)
{
    bool constant = false;
    w->layout = runtime_layouts[w->root.list ? runtime_layout_count - 1 : 0];
    survey(w);
    for (size_t i = 0; i < w->heap_count && !constant; i++)
        constant = nibble_map_is_constant(buffer_span(&w->heaps[i].map));
    unsigned major = w->root.list ? 3 : constant ? 10 : w->root.descriptor ? 9 : 8;
    for (size_t i = 0; i < runtime_layout_count; i++)
        if (runtime_layouts[i].major == major)
            return &runtime_layouts[i];
    return runtime_layouts;
}

/* The runtime's own description first, then the likely layout, then the others. */
static bool find_layout(struct code_walk *w, struct error *err)
{
    struct runtime_version version = { "" };
    uint32_t checked = 0, agreed = 0;
    runtime_version_from_path(span_of(w->root.module->path, strlen(w->root.module->path)), &version);
    const struct runtime_layout *likely = guess_layout(w);
    for (unsigned pass = w->root.descriptor ? 0 : 1; pass < 3; pass++)
        for (size_t i = 0; i < runtime_layout_count; i++) {
            const struct runtime_layout *layout = &runtime_layouts[i];
            if (layout->list != w->root.list || (pass == 0 && i > 0) ||
                (pass && (layout == likely) != (pass == 1)))
                continue;
            if (try_layout(w, layout, pass == 0))
                return true;
            if (w->report.agreed >= agreed) {
                checked = w->report.checked;
                agreed = w->report.agreed;
            }
        }
    if (checked < CHECK_MIN)
        return error_set(err, ERROR_UNSUPPORTED,
                         "cannot tell the layout of the runtime's memory yet: %u methods are too few",
                         checked);
    return error_set(
        err, ERROR_UNSUPPORTED,
        "no known layout fits this runtime%s%s: at best %u of %u methods agree with their metadata",
        version.text[0] ? " " : "", version.text, agreed, checked);
}

bool code_walk_open(const struct memory *memory, const struct module_files *files, struct code_walk **out,
                    struct error *err)
{
    struct code_walk *w = mem_alloc(1, sizeof *w);
    w->files = files;
    memory_pages_init(&w->pages, memory, PAGE_BYTES_MAX);
    buffer_init(&w->name, NAME_BYTES_MAX);
    buffer_init(&w->target, NAME_BYTES_MAX);
    buffer_init(&w->import, NAME_BYTES_MAX);
    if (!runtime_root_find(&w->pages, &w->root, err) || !find_layout(w, err)) {
        code_walk_close(w);
        return false;
    }
    *out = w;
    return true;
}

void code_walk_close(struct code_walk *walk)
{
    if (!walk)
        return;
    forget_heaps(walk);
    free(walk->heaps);
    loaded_types_done(&walk->types);
    runtime_root_done(&walk->root);
    memory_pages_done(&walk->pages);
    buffer_done(&walk->name);
    buffer_done(&walk->target);
    buffer_done(&walk->import);
    free(walk);
}

const struct code_walk_report *code_walk_report(const struct code_walk *walk)
{
    return &walk->report;
}

void code_walk_renew(struct code_walk *walk)
{
    memory_pages_drop(&walk->pages);
    loaded_types_renew(&walk->types);
    forget_heaps(walk);
}

static void count_found(struct code_walk_report *report, const struct found_method *found)
{
    report->stubs += found->kind == FOUND_STUB;
    report->dynamic += found->kind == FOUND_DYNAMIC;
    report->methods += found->kind == FOUND_METHOD;
    report->unnamed += found->name[0] == 0;
}

bool code_walk_all(struct code_walk *walk, code_walk_fn *emit, void *user)
{
    size_t count;
    bool going = true;
    struct code_walk_report *report = &walk->report;
    survey(walk);
    struct code_body *bodies = list_bodies(walk, &count);
    keep_steady(walk, bodies, count);
    report->methods = report->dynamic = report->stubs = report->unnamed = 0;
    for (size_t i = 0; going && i < count; i++) {
        struct found_method found;
        name_body(walk, &bodies[i], &found);
        found.collectible |= code_ranges_find(&walk->ranges, bodies[i].begin)->collectible;
        count_found(report, &found);
        going = emit(user, &found);
    }
    free(bodies);
    report->pages = walk->pages.reads;
    report->modules = walk->types.module_count;
    return going;
}

static bool find_stub(struct code_walk *w, const struct code_range *range, uint64_t addr,
                      struct found_method *out)
{
    struct precode precode;
    clear_answer(w, out);
    out->kind = FOUND_STUB;
    out->collectible = range->collectible;
    out->name = code_stub_name(range->stub);
    if (precode_find(&w->pages, addr, &precode)) {
        out->begin = precode.begin;
        out->end = precode.begin + PRECODE_BYTES;
        out->method_id = precode.method;
        name_target(w, precode.method, out);
    } else {
        out->begin = addr;
    }
    return true;
}

bool code_walk_find(struct code_walk *walk, uint64_t addr, struct found_method *out)
{
    struct code_body body;
    survey(walk);
    const struct code_range *range = code_ranges_find(&walk->ranges, addr);
    if (!range || range->kind == CODE_RANGE_IMAGE)
        return false;
    if (range->kind == CODE_RANGE_STUBS)
        return find_stub(walk, range, addr, out);
    for (size_t i = 0; i < walk->heap_count; i++)
        if (walk->heaps[i].range == range &&
            code_heap_find(&walk->pages, &walk->layout, &walk->heaps[i], addr, &body)) {
            keep_steady(walk, &body, 1);
            name_body(walk, &body, out);
            out->collectible |= range->collectible;
            return true;
        }
    return false;
}
