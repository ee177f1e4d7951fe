#include "read/ready_to_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/lazy_bytes.h"
#include "base/mem.h"
#include "read/r2r_signature.h"
#include "read/unwind_format.h"

enum {
    SIGNATURE = 0x00525452, /* "RTR" */
    HEADER_BYTES = 16,
    CORE_HEADER_BYTES = 8,
    SECTION_BYTES = 12,
    SECTIONS_MAX = 256,
    COMPONENT_BYTES = 16,
    COMPONENTS_MAX = 4096,
    TABLE_BYTES_MAX = 128 << 20,
    SIGNATURE_BYTES_MAX = 4 << 10, /* of an instance's: those of CoreLib have 20, few hundreds */
    /* bytes and elements of all components' tables, which may be one and the same, and bytes of signatures */
    INDEX_STEPS_MAX = 256 << 20,
    INDEX_HEAD_BYTES = 8,
    INDEX_ROW_BYTES = 8,
    PACKED_IL_MAPS_MAJOR = 16,
    HEADED_IL_MAPS_MAJOR =
        26, /* of .NET 11; those between were of previews, later ones can have another form */
};

/* What starts at a runtime function. */
struct entry {
    uint32_t value; /* MethodDef row, or position of the signature in the instance table */
    uint16_t component;
    uint16_t kind; /* enum r2r_body_kind; NONE: a funclet of the body at row `value`, or of none (NOBODY) */
};

#define NOBODY UINT32_MAX

struct ready_to_run {
    uint32_t version;
    struct pe_range sections[R2R_SECTIONS];
    struct buffer functions;       /* RUNTIME_FUNCTIONS */
    struct lazy_bytes *instances;  /* InstanceMethodEntryPoints, or NULL */
    struct buffer hot_cold;        /* pairs of u32: cold, hot */
    struct buffer il_maps;         /* DebugInfo, when loaded */
    struct native_array il_map_of; /* by runtime function */
    struct buffer unwind;          /* arm64: .xdata of all functions, from unwind_rva on */
    uint32_t unwind_rva;
    const struct unwind_format *format;
    uint32_t function_count;
    uint32_t component_count;
    uint64_t index_steps;
    uint32_t damaged; /* instances whose signature could not be read */
    /* as it is kept: how many components, how many damaged, then an entry for each runtime function, of which
     * a look needs few */
    struct buffer index;
};

static bool read_sections(struct cursor *c, uint32_t count, struct pe_range *sections, struct error *err)
{
    if (count > SECTIONS_MAX)
        return error_set(err, ERROR_LIMIT, "ReadyToRun header with %u sections", count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t type = cursor_u32le(c);
        struct pe_range range = { cursor_u32le(c), 0 };
        range.size = cursor_u32le(c);
        if (type < R2R_SECTIONS)
            sections[type] = range;
    }
    return cursor_finish(c, err, "ReadyToRun section list");
}

/* A header's size is only known once its section count is: read what is surely there, then the rest. */
static bool load_core_header(const struct source *file, const struct pe *pe, uint32_t rva,
                             struct pe_range *sections, struct error *err)
{
    struct buffer bytes;
    buffer_init(&bytes, CORE_HEADER_BYTES + SECTIONS_MAX * SECTION_BYTES);
    bool ok = pe_load(file, pe, (struct pe_range){ rva, CORE_HEADER_BYTES }, &bytes, err);
    if (ok) {
        uint32_t count = load_u32le(bytes.data + 4);
        uint32_t size = count > SECTIONS_MAX ? CORE_HEADER_BYTES : CORE_HEADER_BYTES + count * SECTION_BYTES;
        ok = pe_load(file, pe, (struct pe_range){ rva, size }, &bytes, err);
        struct cursor c = cursor_over(buffer_span(&bytes));
        cursor_skip(&c, CORE_HEADER_BYTES);
        ok = ok && read_sections(&c, count, sections, err);
    }
    buffer_done(&bytes);
    return ok;
}

static bool load_header(const struct source *file, const struct pe *pe, struct pe_range header,
                        struct ready_to_run *r2r, struct error *err)
{
    uint64_t file_off;
    uint8_t bytes[HEADER_BYTES];
    if (!pe_file_offset(pe, header.rva, sizeof bytes, &file_off))
        return error_set(err, ERROR_INPUT, "the ReadyToRun header lies in no section");
    if (!source_read(file, file_off, bytes, sizeof bytes, err))
        return false;
    if (load_u32le(bytes) != SIGNATURE)
        return error_set(err, ERROR_UNSUPPORTED, "precompiled code that is not ReadyToRun");
    r2r->version = (uint32_t)load_u16le(bytes + 4) << 16 | load_u16le(bytes + 6);
    return load_core_header(file, pe, header.rva + CORE_HEADER_BYTES, r2r->sections, err);
}

static bool load_section(const struct source *file, const struct pe *pe, const struct pe_range *sections,
                         unsigned section, struct buffer *into, struct error *err)
{
    if (sections[section].size == 0)
        return true;
    return pe_load(file, pe, sections[section], into, err) ||
           error_context(err, "ReadyToRun section %u", section);
}

/* Fixups, which the runtime applies before the first call, may follow; they are not ours to read. */
static uint32_t read_entry_point(struct cursor *c)
{
    uint32_t value = cursor_native_uint(c);
    return value & 1 ? value >> 2 : value >> 1;
}

static struct entry entry_at(const struct ready_to_run *r2r, uint32_t function)
{
    const uint8_t *row = r2r->index.data + INDEX_HEAD_BYTES + (size_t)function * INDEX_ROW_BYTES;
    return (struct entry){ load_u32le(row), load_u16le(row + 4), load_u16le(row + 6) };
}

static void set_entry(struct ready_to_run *r2r, uint32_t function, enum r2r_body_kind kind,
                      uint32_t component, uint32_t value)
{
    if (function >= r2r->function_count)
        return;
    uint8_t *row = r2r->index.data + INDEX_HEAD_BYTES + (size_t)function * INDEX_ROW_BYTES;
    store_u32le(row, value);
    store_u16le(row + 4, (uint16_t)component);
    store_u16le(row + 6, (uint16_t)kind);
}

/* Counts work that is not bounded by the size of the file, since its parts may overlap. */
static bool take_steps(struct ready_to_run *r2r, uint64_t steps, struct error *err)
{
    r2r->index_steps += steps;
    return r2r->index_steps <= INDEX_STEPS_MAX ||
           error_set(err, ERROR_LIMIT, "ReadyToRun tables with too many methods");
}

struct method_indexing {
    struct ready_to_run *r2r;
    uint32_t component;
};

static bool index_method(void *user, uint32_t index, struct cursor at)
{
    const struct method_indexing *indexing = user;
    uint32_t function = read_entry_point(&at);
    if (cursor_ok(&at))
        set_entry(indexing->r2r, function, R2R_BODY_METHOD, indexing->component, index + 1);
    return true;
}

static bool index_array(struct span bytes, uint32_t component, struct ready_to_run *r2r, struct error *err)
{
    struct native_array methods;
    if (!native_array_open(bytes, &methods, err))
        return false;
    /* each block of 16 has an entry in the index, so a count beyond this is damage */
    uint64_t most = (uint64_t)bytes.size * 16;
    uint64_t count = methods.count < most ? methods.count : most;
    struct method_indexing indexing = { r2r, component };
    return take_steps(r2r, bytes.size + count, err) && native_array_each(&methods, index_method, &indexing);
}

static bool index_methods(const struct source *file, const struct pe *pe, const struct pe_range *sections,
                          uint32_t component, struct ready_to_run *r2r, struct error *err)
{
    struct buffer bytes;
    buffer_init(&bytes, TABLE_BYTES_MAX);
    bool ok = load_section(file, pe, sections, R2R_SECTION_METHOD_ENTRY_POINTS, &bytes, err) &&
              (bytes.size == 0 || index_array(buffer_span(&bytes), component, r2r, err));
    buffer_done(&bytes);
    return ok;
}

struct instance_indexing {
    struct ready_to_run *r2r;
    struct error *err;
};

/* An entry of the instance table: the method's signature, then its entry point. */
static bool index_instance(void *user, struct cursor at)
{
    struct instance_indexing *indexing = user;
    struct r2r_method_signature signature;
    size_t start = at.pos;
    bool whole = cursor_r2r_method_signature(&at, &signature);
    if (!take_steps(indexing->r2r, at.pos - start, indexing->err))
        return false;
    if (!whole) {
        indexing->r2r->damaged++;
        return true;
    }
    uint32_t function = read_entry_point(&at);
    if (cursor_ok(&at))
        set_entry(indexing->r2r, function, R2R_BODY_INSTANCE, 0, (uint32_t)start);
    return true;
}

static bool index_instances(struct ready_to_run *r2r, struct error *err)
{
    struct instance_indexing indexing = { r2r, err };
    if (!r2r->instances)
        return true;
    struct span table = lazy_bytes_span(r2r->instances);
    lazy_bytes_need(r2r->instances, table.data, table.size);
    return native_hashtable_each(table, index_instance, &indexing, err);
}

static bool index_components(const struct source *file, const struct pe *pe, struct ready_to_run *r2r,
                             struct error *err)
{
    struct pe_range list = r2r->sections[R2R_SECTION_COMPONENT_ASSEMBLIES];
    if (list.size == 0) {
        r2r->component_count = 1;
        return index_methods(file, pe, r2r->sections, 0, r2r, err);
    }
    struct buffer bytes;
    buffer_init(&bytes, COMPONENTS_MAX * COMPONENT_BYTES);
    bool ok = pe_load(file, pe, list, &bytes, err);
    struct cursor c = cursor_over(buffer_span(&bytes));
    while (ok && cursor_left(&c) >= COMPONENT_BYTES) {
        struct pe_range sections[R2R_SECTIONS] = { 0 };
        cursor_skip(&c, 8); /* the embedded CLI header, if any */
        uint32_t header_rva = cursor_u32le(&c);
        cursor_skip(&c, 4);
        ok = load_core_header(file, pe, header_rva, sections, err) &&
             index_methods(file, pe, sections, r2r->component_count++, r2r, err);
    }
    buffer_done(&bytes);
    return ok;
}

/* Records are sorted by address, and a method's funclets follow its body. */
static void index_owners(struct ready_to_run *r2r)
{
    uint32_t body = NOBODY;
    for (uint32_t f = 0; f < r2r->function_count; f++) {
        if (entry_at(r2r, f).kind != R2R_BODY_NONE)
            body = f;
        else
            set_entry(r2r, f, R2R_BODY_NONE, 0, body);
    }
}

static uint32_t function_begin(const struct ready_to_run *r2r, uint32_t function)
{
    return load_u32le(r2r->functions.data + (size_t)function * r2r->format->entry_bytes);
}

/* An arm64 record has no end: its unwind data tells it, and where that is missing the next record's start
 * stands in. */
static uint32_t function_end(const struct ready_to_run *r2r, uint32_t function)
{
    const uint8_t *record = r2r->functions.data + (size_t)function * r2r->format->entry_bytes;
    uint32_t info_rva = r2r->format->info_at(record);
    struct span word = info_rva >= r2r->unwind_rva
                           ? span_part(buffer_span(&r2r->unwind), info_rva - r2r->unwind_rva, 4)
                           : (struct span){ 0 };
    uint32_t end = r2r->format->function_end(record, word.data);
    if (end > load_u32le(record))
        return end;
    return function + 1 < r2r->function_count ? function_begin(r2r, function + 1) : UINT32_MAX;
}

/* The unwind data of all functions lies together; what cannot be loaded is done without. */
static void load_unwind(const struct source *file, const struct pe *pe, struct ready_to_run *r2r)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t f = 0; f < r2r->function_count; f++) {
        uint32_t rva = r2r->format->info_at(r2r->functions.data + (size_t)f * r2r->format->entry_bytes);
        if (!rva)
            continue;
        low = rva < low ? rva : low;
        high = rva > high ? rva : high;
    }
    r2r->unwind_rva = low;
    if (low <= high && high <= UINT32_MAX - 4)
        pe_load(file, pe, (struct pe_range){ low, high + 4 - low }, &r2r->unwind, NULL);
}

static bool load_functions(const struct source *file, const struct pe *pe, struct ready_to_run *r2r,
                           struct error *err)
{
    r2r->format = unwind_format_of(pe->machine);
    if (!r2r->format)
        return error_set(err, ERROR_UNSUPPORTED, "precompiled code for another machine than x64 and arm64");
    if (!load_section(file, pe, r2r->sections, R2R_SECTION_RUNTIME_FUNCTIONS, &r2r->functions, err) ||
        !load_section(file, pe, r2r->sections, R2R_SECTION_HOT_COLD_MAP, &r2r->hot_cold, err))
        return false;
    r2r->function_count = (uint32_t)(r2r->functions.size / r2r->format->entry_bytes);
    while (r2r->function_count && function_begin(r2r, r2r->function_count - 1) == UINT32_MAX)
        r2r->function_count--; /* a sentinel */
    if (pe->machine == PE_MACHINE_ARM64)
        load_unwind(file, pe, r2r);
    return true;
}

struct span ready_to_run_index(const struct ready_to_run *r2r)
{
    return buffer_span(&r2r->index);
}

static size_t instances_size(const struct ready_to_run *r2r)
{
    return r2r->instances ? r2r->instances->size : 0;
}

static bool is_owner(const struct ready_to_run *r2r, const struct entry *entry)
{
    return (entry->kind == R2R_BODY_METHOD && entry->component < r2r->component_count) ||
           (entry->kind == R2R_BODY_INSTANCE && entry->value < instances_size(r2r));
}

/* Whether the index is one of these tables. */
static bool check_index(const struct ready_to_run *r2r)
{
    uint32_t body = NOBODY;
    for (uint32_t f = 0; f < r2r->function_count; f++) {
        struct entry entry = entry_at(r2r, f);
        if (entry.kind == R2R_BODY_NONE ? entry.value != body : !is_owner(r2r, &entry))
            return false;
        if (entry.kind != R2R_BODY_NONE)
            body = f;
    }
    return true;
}

/* False when `index` is not of these tables. */
static bool take_index(struct ready_to_run *r2r, struct buffer *index)
{
    if (!index || index->size != INDEX_HEAD_BYTES + (uint64_t)r2r->function_count * INDEX_ROW_BYTES)
        return false;
    r2r->index = *index;
    buffer_init(index, 0);
    r2r->component_count = load_u32le(r2r->index.data);
    r2r->damaged = load_u32le(r2r->index.data + 4);
    return check_index(r2r);
}

/* Of nobody yet. */
static bool begin_index(struct ready_to_run *r2r, struct error *err)
{
    size_t size = INDEX_HEAD_BYTES + (size_t)r2r->function_count * INDEX_ROW_BYTES;
    r2r->component_count = r2r->damaged = 0;
    buffer_done(&r2r->index);
    buffer_init(&r2r->index, TABLE_BYTES_MAX);
    uint8_t *rows = buffer_reserve(&r2r->index, size);
    if (!rows)
        return error_set(err, ERROR_LIMIT, "%u runtime functions are too many", r2r->function_count);
    memset(rows, 0, size);
    r2r->index.size = size;
    return true;
}

/* Who owns which function, from the image's own tables. */
static bool make_index(const struct source *file, const struct pe *pe, struct ready_to_run *r2r,
                       struct error *err)
{
    if (!begin_index(r2r, err) || !index_components(file, pe, r2r, err) || !index_instances(r2r, err))
        return false;
    index_owners(r2r);
    store_u32le(r2r->index.data, r2r->component_count);
    store_u32le(r2r->index.data + 4, r2r->damaged);
    return true;
}

static bool load_owners(const struct source *file, const struct pe *pe, struct buffer *index,
                        struct ready_to_run *r2r, struct error *err)
{
    struct pe_range instances = r2r->sections[R2R_SECTION_INSTANCE_ENTRY_POINTS];
    if (instances.size) {
        r2r->instances = pe_load_lazily(file, pe, instances, TABLE_BYTES_MAX, err);
        if (!r2r->instances)
            return error_context(err, "ReadyToRun section %d", R2R_SECTION_INSTANCE_ENTRY_POINTS);
    }
    return take_index(r2r, index) || make_index(file, pe, r2r, err);
}

bool ready_to_run_open(const struct source *file, const struct pe *pe, struct pe_range header,
                       struct buffer *index, struct ready_to_run **out, struct error *err)
{
    struct ready_to_run *r2r = mem_alloc(1, sizeof *r2r);
    buffer_init(&r2r->functions, TABLE_BYTES_MAX);
    buffer_init(&r2r->index, 0);
    buffer_init(&r2r->hot_cold, TABLE_BYTES_MAX);
    buffer_init(&r2r->unwind, TABLE_BYTES_MAX);
    buffer_init(&r2r->il_maps, TABLE_BYTES_MAX);
    if (!load_header(file, pe, header, r2r, err) || !load_functions(file, pe, r2r, err) ||
        !load_owners(file, pe, index, r2r, err)) {
        ready_to_run_close(r2r);
        return false;
    }
    *out = r2r;
    return true;
}

void ready_to_run_close(struct ready_to_run *r2r)
{
    if (!r2r)
        return;
    buffer_done(&r2r->functions);
    lazy_bytes_close(r2r->instances);
    buffer_done(&r2r->hot_cold);
    buffer_done(&r2r->unwind);
    buffer_done(&r2r->il_maps);
    buffer_done(&r2r->index);
    free(r2r);
}

uint32_t ready_to_run_version(const struct ready_to_run *r2r)
{
    return r2r->version;
}

bool ready_to_run_is_composite(const struct ready_to_run *r2r)
{
    return r2r->sections[R2R_SECTION_COMPONENT_ASSEMBLIES].size != 0;
}

uint32_t ready_to_run_function_count(const struct ready_to_run *r2r)
{
    return r2r->function_count;
}

uint32_t ready_to_run_component_count(const struct ready_to_run *r2r)
{
    return r2r->component_count;
}

uint32_t ready_to_run_damaged_count(const struct ready_to_run *r2r)
{
    return r2r->damaged;
}

struct pe_range ready_to_run_section(const struct ready_to_run *r2r, unsigned section)
{
    return section < R2R_SECTIONS ? r2r->sections[section] : (struct pe_range){ 0 };
}

bool ready_to_run_is_delay_load(const struct ready_to_run *r2r, uint32_t rva)
{
    struct pe_range thunks = r2r->sections[R2R_SECTION_DELAY_LOAD_THUNKS];
    return rva >= thunks.rva && rva - thunks.rva < thunks.size;
}

/* The runtime function that a cold part belongs to; hot ones stay as they are. */
static uint32_t hot_function(const struct ready_to_run *r2r, uint32_t function)
{
    const uint8_t *pairs = r2r->hot_cold.data;
    size_t low = 0, high = r2r->hot_cold.size / 8;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (load_u32le(pairs + 8 * middle) <= function)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? load_u32le(pairs + 8 * (low - 1) + 4) : function;
}

/* The row of the body that a runtime function is of; NOBODY: none. */
static uint32_t body_of(const struct ready_to_run *r2r, uint32_t function)
{
    struct entry entry = entry_at(r2r, function);
    return entry.kind == R2R_BODY_NONE ? entry.value : function;
}

/* The last runtime function of a body, which follow one another. */
static uint32_t last_function(const struct ready_to_run *r2r, uint32_t body)
{
    uint32_t low = body + 1, high = r2r->function_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (body_of(r2r, middle) == body)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* An instance's, and what follows it. */
static struct span signature_at(const struct ready_to_run *r2r, uint32_t at)
{
    struct span table = lazy_bytes_span(r2r->instances);
    size_t left = table.size - at;
    struct span signature = span_part(table, at, left < SIGNATURE_BYTES_MAX ? left : SIGNATURE_BYTES_MAX);
    lazy_bytes_need(r2r->instances, signature.data, signature.size);
    return signature;
}

bool ready_to_run_body(const struct ready_to_run *r2r, uint32_t function, struct r2r_body *out)
{
    function = hot_function(r2r, function);
    uint32_t body = function < r2r->function_count ? body_of(r2r, function) : NOBODY;
    if (body == NOBODY)
        return false;
    struct entry entry = entry_at(r2r, body);
    *out = (struct r2r_body){
        .kind = (enum r2r_body_kind)entry.kind,
        .component = entry.component,
        .function = body,
        .begin_rva = function_begin(r2r, body),
        .end_rva = function_end(r2r, last_function(r2r, body)),
    };
    if (entry.kind == R2R_BODY_METHOD)
        out->method_row = entry.value;
    else
        out->signature = signature_at(r2r, entry.value);
    return true;
}

bool ready_to_run_find(const struct ready_to_run *r2r, uint32_t rva, struct r2r_body *out)
{
    uint32_t low = 0, high = r2r->function_count;
    if (ready_to_run_is_delay_load(r2r, rva))
        return false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (function_begin(r2r, middle) <= rva)
            low = middle + 1;
        else
            high = middle;
    }
    return low && rva < function_end(r2r, low - 1) && ready_to_run_body(r2r, low - 1, out);
}

bool ready_to_run_load_il_maps(struct ready_to_run *r2r, const struct source *file, const struct pe *pe,
                               struct error *err)
{
    struct pe_range section = r2r->sections[R2R_SECTION_DEBUG_INFO];
    if (section.size == 0)
        return true;
    return pe_load(file, pe, section, &r2r->il_maps, err) &&
           native_array_open(buffer_span(&r2r->il_maps), &r2r->il_map_of, err);
}

bool ready_to_run_il_map(const struct ready_to_run *r2r, const struct r2r_body *body, struct il_map *out,
                         struct error *err)
{
    struct cursor at;
    uint32_t major = r2r->version >> 16;
    if (major > PACKED_IL_MAPS_MAJOR && major != HEADED_IL_MAPS_MAJOR)
        return error_set(err, ERROR_UNSUPPORTED, "IL maps of ReadyToRun format %u are not known", major);
    if (!r2r->il_map_of.count || !native_array_find(&r2r->il_map_of, body->function, &at))
        return error_set(err, ERROR_UNSUPPORTED, "code without an IL map");
    /* bodies may share one: then it lies before */
    size_t start = at.pos;
    uint32_t back = cursor_native_uint(&at);
    if (!cursor_ok(&at) || back > start)
        return error_set(err, ERROR_INPUT, "an IL map outside its section");
    if (back)
        cursor_seek(&at, start - back);
    return il_map_read(span_part(at.bytes, at.pos, at.bytes.size - at.pos),
                       major > PACKED_IL_MAPS_MAJOR    ? IL_MAP_HEADED
                       : major == PACKED_IL_MAPS_MAJOR ? IL_MAP_PACKED
                                                       : IL_MAP_NIBBLES,
                       body->end_rva - body->begin_rva, out, err);
}
