#include "runtime_fixture.h"

#include <string.h>

#include "read/ecma_metadata.h"
#include "read/pe.h"

#define ROOT (FIXTURE_RUNTIME + 0x4000) /* in its writable part */
enum {
    CODE_STEP = 0x40,
    CODE_FIRST = 0x100,
    BODY_BYTES = 0x29,
    CHUNK_BYTES = 0x60,
    RANGES = 7,
    METHODS_TAKEN = 118,
    COUNTED_PLACES = 251,
};

void runtime_fixture_put(struct runtime_fixture *f, uint64_t addr, uint64_t value, size_t bytes)
{
    uint8_t *to = addr >= FIXTURE_CODE   ? f->code + (addr - FIXTURE_CODE)
                  : addr >= FIXTURE_DATA ? f->data + (addr - FIXTURE_DATA)
                                         : f->runtime + (addr - FIXTURE_RUNTIME);
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static void put64(struct runtime_fixture *f, uint64_t addr, uint64_t value)
{
    runtime_fixture_put(f, addr, value, 8);
}

static void put32(struct runtime_fixture *f, uint64_t addr, uint32_t value)
{
    runtime_fixture_put(f, addr, value, 4);
}

static uint64_t take(struct runtime_fixture *f, uint64_t bytes)
{
    uint64_t addr = FIXTURE_DATA + f->used;
    f->used += (bytes + 15) & ~UINT64_C(15);
    return addr;
}

static uint64_t take_bytes(struct runtime_fixture *f, const void *bytes, size_t size)
{
    uint64_t addr = take(f, size);
    memcpy(f->data + (addr - FIXTURE_DATA), bytes, size);
    return addr;
}

static void build_module(struct runtime_fixture *f, struct span assembly)
{
    const struct runtime_layout *l = f->layout;
    static const char path[] = "/app/tiny.dll";
    uint8_t wide[2 * sizeof path] = { 0 };
    for (size_t i = 0; i < sizeof path; i++)
        wide[2 * i] = (uint8_t)path[i];
    uint64_t image = take(f, 0x100), image_layout = take(f, 0x20), file = take(f, 0x20);
    f->module = take(f, 0x800);
    put64(f, f->module + l->module.file, file);
    if (l->module.flags != LAYOUT_NONE)
        put32(f, f->module + l->module.flags, 0x8811);
    put64(f, file + 0x08, image);
    put64(f, image + 0x10, take_bytes(f, wide, sizeof wide));
    put64(f, image + l->image.flat, image_layout);
    put64(f, image + l->image.loaded, image_layout);
    put64(f, image_layout + 0x08, take_bytes(f, assembly.data, assembly.size));
    put32(f, image_layout + 0x10, (uint32_t)assembly.size);
    put32(f, image_layout + 0x14, 0x72);
}

/* Every argument is a plain type. */
static uint64_t build_arguments(struct runtime_fixture *f, uint32_t count)
{
    uint64_t list = take(f, 8 * (uint64_t)count);
    for (uint32_t i = 0; i < count; i++)
        put64(f, list + 8 * (uint64_t)i, f->plain);
    return list;
}

static void build_table(struct runtime_fixture *f, const struct ecma_metadata *md, uint32_t row)
{
    const struct runtime_layout *l = f->layout;
    uint64_t table = take(f, 0x80), eeclass = take(f, 0x40);
    uint32_t first, generics = ecma_generic_params(md, ECMA_OWNER_IS_TYPE, row, &first);
    f->table[row] = table;
    if (!generics && !f->plain)
        f->plain = table;
    put64(f, table + l->table.class_or_canonical, eeclass);
    put64(f, eeclass + l->class_table, table);
    put64(f, table + l->table.module, f->module);
    if (l->type_row_bytes == 2)
        runtime_fixture_put(f, table + l->table.type_row, row, 2);
    else
        put32(f, table + l->table.type_row, row << 8);
    if (generics) {
        uint64_t instance = take(f, 0x20) + 0x10;
        put32(f, table + l->table.flags, 0x10);
        put64(f, table + l->table.instance, instance);
        runtime_fixture_put(f, instance - 4, 1, 2);
        runtime_fixture_put(f, instance - 2, generics, 2);
        put64(f, instance, build_arguments(f, generics));
    }
}

static uint64_t build_record(struct runtime_fixture *f, uint64_t table, uint32_t row, unsigned kind)
{
    const struct runtime_layout *l = f->layout;
    uint64_t chunk = take(f, CHUNK_BYTES), method = chunk + l->chunk.size;
    unsigned bits = l->remainder_bits;
    put64(f, chunk + l->chunk.table, table);
    runtime_fixture_put(f, chunk + l->chunk.length, 4, 1);
    runtime_fixture_put(f, chunk + l->chunk.range, row >> bits, 2);
    uint32_t flags = row % 2 ? ~UINT32_C(0) << bits : 0; /* what else is in the number */
    runtime_fixture_put(f, method + l->method.remainder, (row & ((1u << bits) - 1)) | flags, 2);
    runtime_fixture_put(f, method + l->method.flags, kind, 2);
    return method;
}

static void build_methods(struct runtime_fixture *f, const struct ecma_metadata *md)
{
    uint32_t step = ecma_rows(md, ECMA_METHOD_DEF) / METHODS_TAKEN | 1;
    for (uint32_t row = 1; row <= ecma_rows(md, ECMA_METHOD_DEF); row += step) {
        uint32_t first, generics = ecma_generic_params(md, ECMA_OWNER_IS_METHOD, row, &first);
        uint64_t method = build_record(f, f->table[ecma_method_owner(md, row)], row, generics ? 5 : 0);
        if (generics) {
            runtime_fixture_put(f, method + f->layout->generic.count, generics, 2);
            put64(f, method + f->layout->generic.arguments, build_arguments(f, generics));
        }
        f->methods[f->method_count++] = method;
    }
}

static void build_dynamic(struct runtime_fixture *f)
{
    const struct runtime_layout *l = f->layout;
    static const uint8_t signature[] = { 0, 1, 1, 0x08 }; /* void (int32) */
    f->dynamic = build_record(f, f->plain, 0, 7);
    put64(f, f->dynamic + l->dynamic.signature, take_bytes(f, signature, sizeof signature));
    put32(f, f->dynamic + l->dynamic.signature_size, sizeof signature);
    put32(f, f->dynamic + l->dynamic.flags, l->dynamic.of_program | 0x800);
    put64(f, f->dynamic + l->dynamic.name, take_bytes(f, "Made", 5));
}

static uint64_t build_body(struct runtime_fixture *f, unsigned i, uint64_t method, uint64_t map)
{
    const struct runtime_layout *l = f->layout;
    uint64_t offset = CODE_FIRST + (uint64_t)i * CODE_STEP, start = FIXTURE_CODE + offset;
    unsigned nibble = 7 - (unsigned)(offset / 32 % 8);
    uint8_t *byte = f->data + (map - FIXTURE_DATA) + offset / 256 * 4 + nibble / 2;
    *byte |= (uint8_t)(1 << (nibble % 2 ? 4 : 0));
    if (!method) {
        put64(f, start - 8, 2);
        return start;
    }
    uint64_t header = take(f, 0x40);
    put64(f, start - 8, header);
    put64(f, header + l->header.method, method);
    put32(f, header + l->header.unwind_count, 1);
    put32(f, header + l->header.unwinds, (uint32_t)offset);
    put32(f, header + l->header.unwinds + 4, (uint32_t)offset + BODY_BYTES);
    return start;
}

/* The table of the methods whose calls are counted, for a heap. */
static void build_counting(struct runtime_fixture *f, uint64_t node)
{
    const struct runtime_layout *l = f->layout;
    if (l->counting.manager == LAYOUT_NONE)
        return;
    uint64_t allocator = take(f, 0xc00), manager = take(f, 0x20), table = take(f, COUNTED_PLACES * 8);
    put64(f, node + l->counting.allocator, allocator);
    put64(f, allocator + l->counting.manager, manager);
    put64(f, manager, table);
    put32(f, manager + 8, COUNTED_PLACES);
    for (uint32_t i = 0; i < f->method_count; i++) {
        uint32_t hash = (uint32_t)f->methods[i], place = hash % COUNTED_PLACES;
        while (load_u64le(f->data + (table + 8 * place - FIXTURE_DATA)))
            place = (place + hash % (COUNTED_PLACES - 1) + 1) % COUNTED_PLACES;
        uint64_t entry = take(f, 0x20);
        put64(f, table + 8 * place, entry);
        put64(f, entry + 8, f->methods[i]);
        f->stages[i] = entry + 0x1a;
        runtime_fixture_put(f, f->stages[i], 1, 1);
    }
}

static uint64_t build_heap(struct runtime_fixture *f)
{
    const struct runtime_layout *l = f->layout;
    uint64_t node = take(f, 0x48), map = take(f, FIXTURE_CODE_BYTES / 64);
    unsigned i = 0;
    f->first_body = build_body(f, 0, f->methods[0], map);
    for (i = 1; i < FIXTURE_BODIES; i++)
        build_body(f, i, f->methods[i % f->method_count], map);
    build_body(f, i++, 0, map);
    f->dynamic_body = build_body(f, i++, f->dynamic, map);
    f->dynamic_mark = map + (f->dynamic_body - FIXTURE_CODE) / 256 * 4;
    put64(f, node + l->heap.start, FIXTURE_CODE + 0x10);
    put64(f, node + l->heap.end, FIXTURE_CODE + CODE_FIRST + (uint64_t)i * CODE_STEP);
    put64(f, node + l->heap.base, FIXTURE_CODE);
    put64(f, node + l->heap.map, map);
    build_counting(f, node);
    return node;
}

static uint64_t build_section(struct runtime_fixture *f, uint64_t begin, uint64_t end, uint64_t heap)
{
    const struct runtime_layout *l = f->layout;
    uint64_t section = take(f, 0x60);
    put64(f, section + l->section.begin, begin);
    put64(f, section + l->section.end, end);
    put32(f, section + l->section.flags, heap ? 2 : l->list ? 4 : 0);
    put64(f, section + (heap ? l->section.heap : l->section.module), heap ? heap : f->module);
    return section;
}

/* The entry of a block of the map for an address, made where it is missing. */
static void build_map_entry(struct runtime_fixture *f, uint64_t section, uint64_t begin, uint64_t end)
{
    const struct runtime_layout *l = f->layout;
    uint64_t block = ROOT, fragment = take(f, 0x20);
    for (unsigned shift = 49; shift > 17; shift -= 8) {
        uint64_t entry = block + 8 * (begin >> shift & 255);
        const uint8_t *there =
            entry >= FIXTURE_DATA ? f->data + (entry - FIXTURE_DATA) : f->runtime + (entry - FIXTURE_RUNTIME);
        block = load_u64le(there);
        if (block == 0) {
            block = take(f, 256 * 8);
            put64(f, entry, block);
        }
    }
    put64(f, block + 8 * (begin >> 17 & 255), fragment);
    put64(f, fragment + l->fragment.begin, begin);
    put64(f, fragment + l->fragment.end, end);
    put64(f, fragment + l->fragment.section, section | 1);
}

static void build_ranges(struct runtime_fixture *f)
{
    uint64_t heap = build_heap(f), previous = ROOT + 0x800;
    for (unsigned i = 0; i < RANGES; i++) {
        uint64_t begin = FIXTURE_CODE + ((uint64_t)i << 17), end = begin + FIXTURE_CODE_BYTES;
        uint64_t section = build_section(f, begin, end, i == 0 ? heap : 0);
        if (!f->layout->list)
            build_map_entry(f, section, begin, end);
        else
            put64(f, i ? previous + f->layout->section.next : previous, section);
        previous = section;
    }
}

/* An ELF module that exports g_dacTable, as much of it as is loaded. */
static void build_exports(struct runtime_fixture *f)
{
    static const char name[] = "g_dacTable";
    const uint64_t base = FIXTURE_RUNTIME, dynamic = 0x200, hash = 0x300, symbols = 0x400, strings = 0x500,
                   dac = 0x600;
    uint32_t code = 5381;
    for (const char *p = name; *p; p++)
        code = code * 33 + (uint8_t)*p;
    memcpy(f->runtime, "\177ELF\2\1\1", 7);
    put64(f, base + 32, 64);
    runtime_fixture_put(f, base + 54, 56, 2);
    runtime_fixture_put(f, base + 56, 2, 2);
    put32(f, base + 64, 1);
    put32(f, base + 64 + 56, 2);
    put64(f, base + 64 + 56 + 8, dynamic);
    put64(f, base + 64 + 56 + 16, dynamic);
    const uint64_t entries[][2] = { { 5, base + strings },
                                    { 6, base + symbols },
                                    { 0x6ffffef5, base + hash } };
    for (size_t i = 0; i < 3; i++) {
        put64(f, base + dynamic + 16 * i, entries[i][0]);
        put64(f, base + dynamic + 16 * i + 8, entries[i][1]);
    }
    put32(f, base + hash, 1);
    put32(f, base + hash + 4, 1);
    put32(f, base + hash + 8, 1);
    put32(f, base + hash + 24, 1);
    put32(f, base + hash + 28, code | 1);
    put32(f, base + symbols + 24, 1);
    put64(f, base + symbols + 24 + 8, dac);
    memcpy(f->runtime + strings + 1, name, sizeof name);
    put64(f, base + dac, ROOT);
}

void runtime_fixture_build(struct runtime_fixture *f, const struct runtime_layout *layout,
                           struct span assembly, bool exported)
{
    struct source file = source_over_span(assembly);
    struct buffer bytes;
    struct ecma_metadata md;
    struct pe pe;
    struct pe_cli cli;
    memset(f, 0, sizeof *f);
    f->layout = layout;
    f->exported = exported;
    buffer_init(&bytes, 1 << 20);
    if (!pe_read(&file, &pe, NULL) || !pe_read_cli(&file, &pe, &cli, NULL) ||
        !pe_load(&file, &pe, cli.metadata, &bytes, NULL) ||
        !ecma_metadata_open(buffer_span(&bytes), &md, NULL))
        return;
    build_module(f, assembly);
    for (int generic = 0; generic < 2; generic++) /* types that can be arguments first */
        for (uint32_t first, row = 2; row <= ecma_rows(&md, ECMA_TYPE_DEF) && row < 64; row++)
            if ((ecma_generic_params(&md, ECMA_OWNER_IS_TYPE, row, &first) > 0) == (generic > 0))
                build_table(f, &md, row);
    build_methods(f, &md);
    build_dynamic(f);
    build_ranges(f);
    if (exported)
        build_exports(f);
    buffer_done(&bytes);
}

static void write_mapping(struct buffer *out, uint64_t start, uint64_t end, uint64_t file_off, uint8_t flags,
                          const char *path)
{
    buffer_u64le(out, start);
    buffer_u64le(out, end);
    buffer_u64le(out, file_off);
    buffer_u64le(out, path[0] != 0);
    buffer_u8(out, flags);
    buffer_u16le(out, (uint16_t)strlen(path));
    buffer_string(out, path);
}

/* Where the next stretch of at least GAP zeroes begins, which are left out. */
static size_t run_end(const uint8_t *bytes, size_t at, size_t size)
{
    enum { GAP = 16 };
    size_t zeroes = 0;
    for (; at < size && zeroes < GAP; at++)
        zeroes = bytes[at] ? 0 : zeroes + 1;
    return at - zeroes;
}

/* Writes the runs of a region; returns how many. With `out` NULL it only counts. */
static uint32_t write_runs(struct buffer *out, uint64_t addr, const uint8_t *bytes, size_t size)
{
    uint32_t count = 0;
    for (size_t at = 0; at < size; at++) {
        if (bytes[at] == 0)
            continue;
        size_t end = run_end(bytes, at, size);
        count++;
        if (out) {
            buffer_u64le(out, addr + at);
            buffer_u32le(out, (uint32_t)(end - at));
            buffer_append(out, bytes + at, end - at);
        }
        at = end;
    }
    return count;
}

static uint32_t write_all_runs(const struct runtime_fixture *f, struct buffer *out)
{
    return write_runs(out, FIXTURE_RUNTIME, f->runtime, sizeof f->runtime) +
           write_runs(out, FIXTURE_DATA, f->data, sizeof f->data) +
           write_runs(out, FIXTURE_CODE, f->code, sizeof f->code);
}

void runtime_fixture_write(const struct runtime_fixture *f, struct buffer *out)
{
    static const char path[] = "/usr/share/dotnet/libcoreclr.so";
    enum { R = 1, W = 2, X = 4 };
    buffer_append(out, "CLRPMEM1", 8);
    buffer_u32le(out, 4);
    buffer_u32le(out, write_all_runs(f, NULL));
    write_mapping(out, FIXTURE_RUNTIME, ROOT, 0, R, path);
    write_mapping(out, ROOT, FIXTURE_RUNTIME + FIXTURE_RUNTIME_BYTES, 0x4000, R | W, path);
    write_mapping(out, FIXTURE_DATA, FIXTURE_DATA + FIXTURE_DATA_BYTES, 0, R | W, "");
    write_mapping(out, FIXTURE_CODE, FIXTURE_CODE + FIXTURE_CODE_BYTES, 0, R | X, "");
    write_all_runs(f, out);
}
