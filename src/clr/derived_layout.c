#include "clr/derived_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "clr/derived_versions.h"
#include "clr/layout_evidence.h"
#include "clr/layout_poll.h"
#include "clr/nibble_map.h"

#define DEADLINE_NS (UINT64_C(5) * 1000000000)

enum {
    LEAST = 8,          /* that a number is decided by */
    MOST_PER_CENT = 80, /* of what may change while we look */
    ALL_PER_CENT = 99,
    UNWIND_PLACES = 16,
    UNWINDS_MAX = 2000,
    METHOD_PLACES = 8,
    TABLES_MAX = 200, /* types to ask for their modules */
    MODULE_FIRST = 0x10,
    MODULE_PLACES = 7,
    FILE_PLACES = 128,
    FILE_IMAGE = 0x08, /* PEAssembly: its PEImage */
    IMAGE_PLACES = 40,
    BITS_MIN = 10, /* of the remainder of a row, in the record */
    BITS_MAX = 15,
    BITS_PLACES = BITS_MAX - BITS_MIN + 1,
    NARROW_PLACES = 8, /* a MethodTable may have its row in 2 bytes there, or in the upper 24 bits of 4 */
    WIDE_PLACES = 4,
    COUNT_FIRST = 9, /* in twos: behind a common part of no size */
    COUNT_PLACES = 32,
    NAME_FIRST = 2, /* in eights, likewise */
    NAME_PLACES = 10,
    NAME_LEAST = 3,
    NAME_BYTES = 64,
    EMITTED_PLACES = 256,
    METADATA_MAGIC = 0x424a5342, /* "BSJB" */
    BUFFER_DATA = 0x10,
};

struct derivation {
    struct memory_pages *pages;
    const struct module_files *files;
    struct runtime_layout *layout;
    struct layout_evidence evidence;
    uint64_t deadline_ns;
};

static bool in_time(const struct derivation *d)
{
    return clock_monotonic_ns() < d->deadline_ns;
}

static bool is_address(const struct derivation *d, uint64_t addr)
{
    return addr && addr % 8 == 0 && memory_mapping_at(d->pages->memory, addr);
}

/* Code and its header. */

/* Some numbers only the constant form can have. */
static bool derive_nibbles(struct derivation *d)
{
    for (size_t i = 0; i < d->evidence.survey.heap_count; i++)
        d->layout->constant |= nibble_map_is_constant(buffer_span(&d->evidence.survey.heaps[i].map));
    layout_evidence_codes(&d->evidence);
    return d->evidence.code_count >= LEAST;
}

/* The first unwind record begins where the code does. */
static bool derive_unwinds(struct derivation *d)
{
    const struct layout_evidence *e = &d->evidence;
    struct layout_poll poll = { .asked = (uint32_t)e->code_count };
    size_t place;
    for (size_t i = 0; i < e->code_count; i++)
        for (size_t k = 0; k < UNWIND_PLACES; k++) {
            uint32_t count = memory_pages_u32(d->pages, e->codes[i].header + 4 * k);
            uint32_t begin = memory_pages_u32(d->pages, e->codes[i].header + 4 * k + 4);
            poll.votes[k] +=
                count > 0 && count < UNWINDS_MAX && e->codes[i].range_begin + begin == e->codes[i].start;
        }
    if (!layout_poll_decide(&poll, LEAST, MOST_PER_CENT, &place))
        return false;
    d->layout->header.unwind_count = (uint16_t)(4 * place);
    d->layout->header.unwinds = (uint16_t)(4 * place + 4);
    return true;
}

static bool derive_methods(struct derivation *d)
{
    const struct layout_evidence *e = &d->evidence;
    struct layout_poll poll = { .asked = (uint32_t)e->code_count };
    struct method_desc method;
    size_t place;
    for (size_t i = 0; i < e->code_count && in_time(d); i++)
        for (size_t k = 0; k < METHOD_PLACES; k++)
            poll.votes[k] += method_desc_read(
                d->pages, d->layout, memory_pages_u64(d->pages, e->codes[i].header + 8 * k), &method);
    if (!layout_poll_decide(&poll, LEAST, MOST_PER_CENT, &place))
        return false;
    d->layout->header.method = (uint16_t)(8 * place);
    layout_evidence_methods(&d->evidence);
    return true;
}

/* Modules. */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcasecmp(text + size - end_size, end) == 0;
}

/* Does what may be a PEAssembly (before 6 a PEFile) lead to an image of a file? */
static bool leads_to_file(struct derivation *d, uint64_t assembly)
{
    uint64_t image = is_address(d, assembly) ? memory_pages_u64(d->pages, assembly + FILE_IMAGE) : 0;
    if (!is_address(d, image))
        return false;
    AUTO_FREE char *path = loaded_image_path(d->pages, image);
    return path[0] == '/' && (ends_with(path, ".dll") || ends_with(path, ".exe"));
}

/* A type tells its module, and that its file: two places, of which only both together are unlike the rest. */
static void ask_for_file(struct derivation *d, uint64_t table, struct layout_poll *poll)
{
    bool any = false;
    for (size_t i = 0; i < MODULE_PLACES; i++) {
        uint64_t module = memory_pages_u64(d->pages, table + MODULE_FIRST + 8 * i);
        for (size_t k = 0; is_address(d, module) && k < FILE_PLACES; k++) {
            bool there = leads_to_file(d, memory_pages_u64(d->pages, module + 8 * k));
            poll->votes[i * FILE_PLACES + k] += there;
            any |= there;
        }
    }
    poll->asked += any;
}

/* So that about TABLES_MAX of the types are asked. */
static size_t table_step(const struct derivation *d)
{
    return d->evidence.table_count / TABLES_MAX + 1;
}

static bool derive_modules(struct derivation *d)
{
    struct layout_poll poll = { 0 };
    size_t place;
    for (size_t i = 0; i < d->evidence.table_count && in_time(d); i += table_step(d))
        ask_for_file(d, d->evidence.tables[i], &poll);
    if (!layout_poll_decide(&poll, LEAST, MOST_PER_CENT, &place))
        return false;
    d->layout->table.module = (uint16_t)(MODULE_FIRST + 8 * (place / FILE_PLACES));
    d->layout->module.file = (uint16_t)(8 * (place % FILE_PLACES));
    return true;
}

/* Places where an image has a layout with metadata. */
static void ask_for_layouts(struct derivation *d, uint64_t table, struct layout_poll *poll)
{
    uint64_t module = memory_pages_u64(d->pages, table + d->layout->table.module);
    uint64_t assembly = memory_pages_u64(d->pages, module + d->layout->module.file);
    uint64_t image = assembly ? memory_pages_u64(d->pages, assembly + FILE_IMAGE) : 0;
    bool any = false;
    for (size_t k = 1; image && k < IMAGE_PLACES; k++) {
        uint64_t layout = memory_pages_u64(d->pages, image + 8 * k);
        bool there =
            is_address(d, layout) && loaded_image_has_metadata(d->pages, layout, d->layout->image.base);
        poll->votes[k] += there;
        any |= there;
    }
    poll->asked += any;
}

/* All images are loaded, in whatever form; that stands last of what nearly all have. */
static bool derive_images_by(struct derivation *d, uint16_t base)
{
    struct layout_poll poll = { 0 };
    size_t last = 0;
    d->layout->image.base = base;
    for (size_t i = 0; i < d->evidence.table_count && in_time(d); i += table_step(d))
        ask_for_layouts(d, d->evidence.tables[i], &poll);
    for (size_t k = 1; k < IMAGE_PLACES; k++)
        if (poll.votes[k] >= LEAST && poll.votes[k] * 100 >= poll.asked * MOST_PER_CENT)
            last = k;
    d->layout->image.loaded = (uint16_t)(8 * last);
    d->layout->image.flat = (uint16_t)(8 * last - 8);
    return last > 0;
}

/* Up to .NET 10, and from 11 on. */
static bool derive_images(struct derivation *d)
{
    return derive_images_by(d, 0x08) || derive_images_by(d, 0x10);
}

/* Rows of metadata. */

/* Of the module that defines a type, by the layout so far; NULL when there is none at hand. */
static const struct ecma_metadata *metadata_of(const struct derivation *d, const struct method_table *table)
{
    const struct loaded_module *module = layout_evidence_module(&d->evidence, table->module);
    return module && ecma_rows(&module->md, ECMA_METHOD_DEF) ? &module->md : NULL;
}

/* The row of a method's MethodDef, if so many bits of it are in its record. */
static uint32_t row_of(struct derivation *d, const struct method_desc *method, unsigned bits)
{
    uint16_t remainder = memory_pages_u16(d->pages, method->addr + d->layout->method.remainder);
    uint64_t chunk = method_desc_chunk(d->pages, d->layout, method->addr);
    uint32_t range = memory_pages_u16(d->pages, chunk + d->layout->chunk.range) & ((1u << (24 - bits)) - 1);
    return range << bits | (remainder & ((1u << bits) - 1));
}

static void set_row_place(struct derivation *d, size_t place)
{
    bool narrow = place < NARROW_PLACES;
    d->layout->table.type_row = (uint16_t)(narrow ? 2 * place : 4 * (place - NARROW_PLACES));
    d->layout->type_row_bytes = narrow ? 2 : 4;
}

/* The type that metadata says a method belongs to must be the one that its MethodTable says it is. */
static void ask_for_rows(struct derivation *d, const struct method_desc *method, struct layout_poll *poll)
{
    bool any = false;
    for (size_t i = 0; i < NARROW_PLACES + WIDE_PLACES; i++) {
        struct method_table table;
        set_row_place(d, i);
        const struct ecma_metadata *md =
            method_table_read(d->pages, d->layout, method->table, &table) ? metadata_of(d, &table) : NULL;
        for (unsigned k = 0; md && table.row && k < BITS_PLACES; k++) {
            uint32_t row = row_of(d, method, BITS_MIN + k);
            poll->votes[i * BITS_PLACES + k] +=
                row && row <= ecma_rows(md, ECMA_METHOD_DEF) && ecma_method_owner(md, row) == table.row;
        }
        any |= md != NULL;
    }
    poll->asked += any;
}

static bool derive_rows(struct derivation *d)
{
    struct layout_poll poll = { 0 };
    size_t place;
    layout_evidence_modules(&d->evidence, d->files);
    for (size_t i = 0; i < d->evidence.method_count && in_time(d); i++) {
        const struct method_desc *method = &d->evidence.methods[i];
        if (method->kind != METHOD_DYNAMIC && method->kind != METHOD_ARRAY)
            ask_for_rows(d, method, &poll);
    }
    if (!layout_poll_decide(&poll, LEAST, ALL_PER_CENT, &place))
        return false;
    set_row_place(d, place / BITS_PLACES);
    d->layout->remainder_bits = (uint8_t)(BITS_MIN + place % BITS_PLACES);
    return true;
}

/* What follows the common part of a method's record. */

/* How many parameters metadata gives a generic method. */
static uint32_t parameters_of(struct derivation *d, const struct method_desc *method)
{
    struct method_table table;
    uint32_t first;
    const struct ecma_metadata *md =
        method_table_read(d->pages, d->layout, method->table, &table) ? metadata_of(d, &table) : NULL;
    uint32_t row = row_of(d, method, d->layout->remainder_bits);
    return md ? ecma_generic_params(md, ECMA_OWNER_IS_METHOD, row, &first) : 0;
}

static bool find_generic_count(struct derivation *d, uint16_t *out)
{
    const struct layout_evidence *e = &d->evidence;
    struct layout_poll poll = { 0 };
    size_t place;
    for (size_t i = 0; i < e->method_count && in_time(d); i++) {
        uint32_t count = e->methods[i].kind == METHOD_GENERIC ? parameters_of(d, &e->methods[i]) : 0;
        for (size_t k = COUNT_FIRST; count && k < COUNT_PLACES; k++)
            poll.votes[k] += memory_pages_u16(d->pages, e->methods[i].addr + 2 * k) == count;
        poll.asked += count > 0;
    }
    bool decided = layout_poll_decide(&poll, LEAST, ALL_PER_CENT, &place);
    if (decided)
        *out = (uint16_t)(2 * place);
    return decided;
}

static bool is_name(struct derivation *d, uint64_t addr)
{
    size_t size = 0;
    if (!addr || !memory_mapping_at(d->pages->memory, addr))
        return false;
    for (uint8_t byte; size < NAME_BYTES && (byte = memory_pages_u8(d->pages, addr + size)); size++)
        if (byte < 0x20 || byte > 0x7e)
            return false;
    return size >= NAME_LEAST;
}

static bool find_dynamic_name(struct derivation *d, uint16_t *out)
{
    const struct layout_evidence *e = &d->evidence;
    struct layout_poll poll = { 0 };
    size_t place;
    for (size_t i = 0; i < e->method_count && in_time(d); i++) {
        if (e->methods[i].kind != METHOD_DYNAMIC)
            continue;
        for (size_t k = NAME_FIRST; k < NAME_PLACES; k++)
            poll.votes[k] += is_name(d, memory_pages_u64(d->pages, e->methods[i].addr + 8 * k));
        poll.asked++;
    }
    bool decided = layout_poll_decide(&poll, LEAST, MOST_PER_CENT, &place);
    if (decided)
        *out = (uint16_t)(8 * place);
    return decided;
}

/* Which bits of a dynamic method's flags say who made it: the runtime's own stubs have its names. */
static void derive_dynamic_flags(struct derivation *d)
{
    static const struct {
        uint32_t of_program, of_runtime;
    } known[] = { { 0x4000, 0x8000 }, { 0x20000, 0x10000 } };
    static const char stub[] = "IL_STUB";
    const struct layout_evidence *e = &d->evidence;
    unsigned votes[ARRAY_LEN(known)] = { 0 };
    for (size_t i = 0; i < e->method_count; i++) {
        struct dynamic_method dynamic;
        char name[sizeof stub] = "";
        if (e->methods[i].kind != METHOD_DYNAMIC)
            continue;
        dynamic_method_name(d->pages, d->layout, &e->methods[i], &dynamic);
        memory_pages_read(d->pages, dynamic.name, name, sizeof stub - 1);
        uint32_t flags = memory_pages_u32(d->pages, e->methods[i].addr + d->layout->dynamic.flags);
        for (size_t k = 0; strcmp(name, stub) == 0 && k < ARRAY_LEN(known); k++)
            votes[k] += (flags & known[k].of_runtime) != 0;
    }
    size_t like = votes[0] == votes[1] ? d->layout->list : votes[1] > votes[0];
    d->layout->dynamic.of_program = known[like].of_program;
    d->layout->dynamic.of_runtime = known[like].of_runtime;
}

/* The form has these places as counted from the end of the common part, whose size is found twice. */
static bool derive_records(struct derivation *d)
{
    struct runtime_layout *l = d->layout;
    uint16_t count, name;
    bool by_count = find_generic_count(d, &count), by_name = find_dynamic_name(d, &name);
    if (!by_count && !by_name)
        return false;
    uint16_t generic_size = (uint16_t)(by_count ? count - l->generic.count : name - l->dynamic.name);
    uint16_t dynamic_size = (uint16_t)(by_name ? name - l->dynamic.name : generic_size);
    l->generic.count = (uint16_t)(l->generic.count + generic_size);
    l->generic.arguments = (uint16_t)(l->generic.arguments + generic_size);
    l->dynamic.signature = (uint16_t)(l->dynamic.signature + dynamic_size);
    l->dynamic.signature_size = (uint16_t)(l->dynamic.signature_size + dynamic_size);
    l->dynamic.flags = (uint16_t)(l->dynamic.flags + dynamic_size);
    l->dynamic.name = (uint16_t)(l->dynamic.name + dynamic_size);
    l->dynamic.resolver = (uint16_t)(l->dynamic.resolver + dynamic_size);
    derive_dynamic_flags(d);
    derive_versions(d->pages, &d->evidence, dynamic_size, l);
    return true;
}

/* What the program emits. */

/* Metadata behind its size, at once or in a buffer of the runtime. */
static bool is_emitted(struct derivation *d, uint64_t addr, bool in_buffer)
{
    uint32_t size = memory_pages_u32(d->pages, addr);
    uint64_t bytes = in_buffer ? memory_pages_u64(d->pages, addr + BUFFER_DATA) : addr + 4;
    return size > 0 && memory_mapping_at(d->pages->memory, bytes) &&
           memory_pages_u32(d->pages, bytes) == METADATA_MAGIC;
}

/* No such module, no place: what is emitted later has no names then. */
static void derive_emitted(struct derivation *d)
{
    const struct layout_evidence *e = &d->evidence;
    struct layout_poll poll = { 0 };
    size_t place;
    for (size_t i = 0; i < e->module_count && in_time(d); i++) {
        bool any = false;
        for (size_t k = 0; !e->modules[i].image && k < EMITTED_PLACES; k++) {
            uint64_t addr = memory_pages_u64(d->pages, e->modules[i].addr + 8 * k);
            for (int in_buffer = 0; is_address(d, addr) && in_buffer < 2; in_buffer++) {
                bool there = is_emitted(d, addr, in_buffer);
                poll.votes[2 * k + (size_t)in_buffer] += there;
                any |= there;
            }
        }
        poll.asked += any;
    }
    d->layout->module.emitted = LAYOUT_NONE;
    if (!layout_poll_decide(&poll, 1, MOST_PER_CENT, &place))
        return;
    d->layout->module.emitted = (uint16_t)(8 * (place / 2));
    d->layout->module.emitted_in_buffer = place % 2;
}

static const struct {
    bool (*derive)(struct derivation *d);
    const char *missing;
} steps[] = {
    { derive_nibbles, "it has too little jitted code" },
    { derive_unwinds, "no place in the headers of code counts their unwind records" },
    { derive_methods, "no place in the headers of code leads to methods" },
    { derive_modules, "no place in types leads to the files of their modules" },
    { derive_images, "no place in images leads to their metadata" },
    { derive_rows, "no place in types agrees with the metadata of their methods" },
    { derive_records, "too few methods are generic or dynamic" },
};

bool derived_layout_find(struct memory_pages *pages, const struct runtime_root *root,
                         const struct module_files *files, struct runtime_layout *out, struct error *err)
{
    struct runtime_layout layout = *runtime_layout_form(root->list);
    struct derivation d = { .pages = pages, .files = files, .layout = &layout };
    const char *missing = NULL;
    d.deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
    layout_evidence_init(&d.evidence, pages, &layout, root->addr);
    for (size_t i = 0; !missing && i < ARRAY_LEN(steps); i++)
        missing = steps[i].derive(&d) ? NULL : steps[i].missing;
    if (!missing)
        derive_emitted(&d);
    layout_evidence_done(&d.evidence);
    if (!in_time(&d))
        return error_set(err, ERROR_LIMIT, "its layout cannot be derived within %d s",
                         (int)(DEADLINE_NS / 1000000000));
    if (missing)
        return error_set(err, ERROR_UNSUPPORTED, "its layout cannot be derived: %s", missing);
    *out = layout;
    return true;
}
