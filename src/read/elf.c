#include "read/elf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/unpack.h"

enum {
    HEADER_BYTES = 64,
    SECTION_BYTES = 64,
    SEGMENT_BYTES = 56,
    SYMBOL_BYTES = 24,
    RELA_BYTES = 24,
    COMPRESSION_HEADER_BYTES = 24,
    COMPRESSION_SIZE_OFF = 8,
    SECTIONS_MAX = 64 * 1024,
    SEGMENTS_MAX = 4096,
    SECTION_NAMES_MAX = 16 << 20,
    NOTES_MAX = 1 << 20,
    NOTE_PARTS_MAX = 64, /* sections or segments of notes that are looked into */
    CHUNK_ENTRIES = 2048,
    TABLE_ENTRIES_MAX = 16 << 20, /* of a file with holes, which may claim any size */
    FLAG_COMPRESSED = 0x800,
    COMPRESSION_ZLIB = 1,
    NOTE_BUILD_ID = 3,
    EXTENDED_COUNT = 0xffff,
    SEGMENT_EXECUTABLE = 1,
};

struct elf_header {
    uint16_t type, machine;
    uint64_t entry;
    uint64_t segments_off, sections_off;
    uint16_t segment_bytes, segment_count, section_bytes, section_count, names_index;
};

static bool read_header(const struct source *file, struct elf_header *out, struct error *err)
{
    uint8_t bytes[HEADER_BYTES];
    if (file->size < sizeof bytes)
        return error_set(err, ERROR_INPUT, "too short for an ELF file");
    if (!source_read(file, 0, bytes, sizeof bytes, err))
        return false;
    if (memcmp(bytes, "\177ELF", 4) != 0)
        return error_set(err, ERROR_INPUT, "not an ELF file");
    if (bytes[4] != 2 || bytes[5] != 1)
        return error_set(err, ERROR_UNSUPPORTED, "not a 64-bit little-endian ELF file");
    struct cursor c = cursor_over(span_of(bytes, sizeof bytes));
    cursor_seek(&c, 16);
    struct elf_header h = { .type = cursor_u16le(&c), .machine = cursor_u16le(&c) };
    cursor_skip(&c, 4);
    h.entry = cursor_u64le(&c);
    h.segments_off = cursor_u64le(&c);
    h.sections_off = cursor_u64le(&c);
    cursor_skip(&c, 4 + 2);
    h.segment_bytes = cursor_u16le(&c);
    h.segment_count = cursor_u16le(&c);
    h.section_bytes = cursor_u16le(&c);
    h.section_count = cursor_u16le(&c);
    h.names_index = cursor_u16le(&c);
    if (h.machine != ELF_X86_64 && h.machine != ELF_AARCH64)
        return error_set(err, ERROR_UNSUPPORTED, "an ELF file for another machine (%u)", h.machine);
    *out = h;
    return true;
}

static struct elf_section parse_section(const uint8_t *bytes)
{
    struct cursor c = cursor_over(span_of(bytes, SECTION_BYTES));
    struct elf_section s = { .name = cursor_u32le(&c), .type = cursor_u32le(&c), .flags = cursor_u64le(&c) };
    s.addr = cursor_u64le(&c);
    s.file_off = cursor_u64le(&c);
    s.size_bytes = cursor_u64le(&c);
    s.link = cursor_u32le(&c);
    s.info = cursor_u32le(&c);
    cursor_skip(&c, 8);
    s.entry_bytes = cursor_u64le(&c);
    return s;
}

/*
 * What stands behind the last NUL is no name. Without it every name ends inside, and none has to be searched
 * for its end: thousands of sections may share one name of megabytes.
 */
static void cut_names(struct buffer *names)
{
    const uint8_t *nul = names->size ? memrchr(names->data, 0, names->size) : NULL;
    names->size = nul ? (size_t)(nul - names->data) + 1 : 0;
}

/*
 * A file without a usable section table still has segments: its symbols are gone, but it is no
 * error (sstrip removes the table, and a partly copied file lacks its end).
 */
static void read_sections(struct elf *e, const struct elf_header *h)
{
    uint8_t first[SECTION_BYTES];
    if (h->section_bytes != SECTION_BYTES || h->sections_off == 0 ||
        !source_read(&e->file, h->sections_off, first, sizeof first, NULL))
        return;
    struct elf_section zero = parse_section(first);
    uint64_t count = h->section_count ? h->section_count : zero.size_bytes;
    uint32_t names = h->names_index == EXTENDED_COUNT ? zero.link : h->names_index;
    if (count == 0 || count > SECTIONS_MAX || count > (e->file.size - h->sections_off) / SECTION_BYTES)
        return;
    struct buffer table;
    buffer_init(&table, SECTIONS_MAX * SECTION_BYTES);
    if (source_load(&e->file, h->sections_off, count * SECTION_BYTES, &table, NULL)) {
        e->sections = mem_alloc((size_t)count, sizeof *e->sections);
        for (; e->section_count < count; e->section_count++)
            e->sections[e->section_count] = parse_section(table.data + e->section_count * SECTION_BYTES);
    }
    buffer_done(&table);
    if (!e->section_count)
        return;
    if (names < count && elf_section_load(e, &e->sections[names], &e->section_names, NULL))
        cut_names(&e->section_names);
    else
        buffer_clear(&e->section_names);
}

static struct elf_segment parse_segment(const uint8_t *bytes)
{
    struct cursor c = cursor_over(span_of(bytes, SEGMENT_BYTES));
    struct elf_segment s = { .type = cursor_u32le(&c), .executable = cursor_u32le(&c) & SEGMENT_EXECUTABLE };
    s.file_off = cursor_u64le(&c);
    s.addr = cursor_u64le(&c);
    cursor_skip(&c, 8);
    s.file_bytes = cursor_u64le(&c);
    s.memory_bytes = cursor_u64le(&c);
    return s;
}

static bool read_segments(struct elf *e, const struct elf_header *h, struct error *err)
{
    size_t count = h->segment_count;
    if (count == EXTENDED_COUNT)
        count = e->section_count ? e->sections[0].info : 0;
    if (count == 0)
        return true;
    if (h->segment_bytes != SEGMENT_BYTES || count > SEGMENTS_MAX)
        return error_set(err, ERROR_INPUT, "%zu program headers of %u bytes", count, h->segment_bytes);
    struct buffer table;
    buffer_init(&table, SEGMENTS_MAX * SEGMENT_BYTES);
    bool ok = source_load(&e->file, h->segments_off, count * SEGMENT_BYTES, &table, err) ||
              error_context(err, "reading %zu program headers", count);
    if (ok) {
        e->segments = mem_alloc(count, sizeof *e->segments);
        for (; e->segment_count < count; e->segment_count++)
            e->segments[e->segment_count] = parse_segment(table.data + e->segment_count * SEGMENT_BYTES);
    }
    buffer_done(&table);
    return ok;
}

bool elf_open(const struct source *file, struct elf *out, struct error *err)
{
    struct elf_header h = { 0 };
    if (!read_header(file, &h, err))
        return false;
    struct elf e = { .file = *file, .machine = h.machine, .entry = h.entry };
    buffer_init(&e.section_names, SECTION_NAMES_MAX);
    read_sections(&e, &h);
    if (!read_segments(&e, &h, err)) {
        elf_done(&e);
        return false;
    }
    *out = e;
    return true;
}

void elf_done(struct elf *e)
{
    free(e->sections);
    free(e->segments);
    buffer_done(&e->section_names);
    *e = (struct elf){ 0 };
}

const char *elf_section_name(const struct elf *e, const struct elf_section *section)
{
    const struct buffer *names = &e->section_names;
    return section->name < names->size ? (const char *)names->data + section->name : "";
}

static bool has_bytes(const struct elf_section *section)
{
    return section->type != ELF_SECTION_NOBITS && section->type != 0 && section->size_bytes != 0;
}

const struct elf_section *elf_section_named(const struct elf *e, const char *name)
{
    for (size_t i = 1; i < e->section_count; i++)
        if (has_bytes(&e->sections[i]) && strcmp(elf_section_name(e, &e->sections[i]), name) == 0)
            return &e->sections[i];
    return NULL;
}

const struct elf_section *elf_section_of_type(const struct elf *e, enum elf_section_type type)
{
    for (size_t i = 1; i < e->section_count; i++)
        if (e->sections[i].type == (uint32_t)type && has_bytes(&e->sections[i]))
            return &e->sections[i];
    return NULL;
}

const struct elf_section *elf_section_at(const struct elf *e, uint64_t addr)
{
    for (size_t i = 1; i < e->section_count; i++) {
        const struct elf_section *s = &e->sections[i];
        if (s->addr != 0 && addr >= s->addr && addr - s->addr < s->size_bytes)
            return s;
    }
    return NULL;
}

bool elf_section_stored(const struct elf *e, const struct elf_section *section, struct source *out,
                        bool *out_packed, uint64_t *out_size, struct error *err)
{
    if (!has_bytes(section) || section->file_off > e->file.size ||
        section->size_bytes > e->file.size - section->file_off)
        return error_set(err, ERROR_INPUT, "section '%s' lies outside of the file",
                         elf_section_name(e, section));
    struct source raw = source_part(&e->file, section->file_off, section->size_bytes);
    if (!(section->flags & FLAG_COMPRESSED)) {
        *out = raw;
        *out_packed = false;
        *out_size = raw.size;
        return true;
    }
    uint8_t header[COMPRESSION_HEADER_BYTES];
    if (!source_read(&raw, 0, header, sizeof header, err))
        return false;
    if (load_u32le(header) != COMPRESSION_ZLIB)
        return error_set(err, ERROR_UNSUPPORTED, "section '%s' is compressed by method %" PRIu32,
                         elf_section_name(e, section), load_u32le(header));
    *out = source_part(&raw, sizeof header, raw.size - sizeof header);
    *out_packed = true;
    *out_size = load_u64le(header + COMPRESSION_SIZE_OFF);
    return true;
}

bool elf_section_source(const struct elf *e, const struct elf_section *section, struct buffer *unpacked,
                        struct source *out, struct error *err)
{
    struct source stored;
    bool is_packed = false;
    uint64_t size;
    if (!elf_section_stored(e, section, &stored, &is_packed, &size, err))
        return false;
    if (!is_packed) {
        *out = stored;
        return true;
    }
    if (!unpack_zlib(&stored, unpacked, err))
        return error_context(err, "section '%s'", elf_section_name(e, section));
    *out = source_over_span(buffer_span(unpacked));
    return true;
}

bool elf_section_load(const struct elf *e, const struct elf_section *section, struct buffer *out,
                      struct error *err)
{
    struct source bytes;
    if (!elf_section_source(e, section, out, &bytes, err))
        return false;
    return section->flags & FLAG_COMPRESSED || source_load(&bytes, 0, bytes.size, out, err);
}

bool elf_addr_of_file_off(const struct elf *e, uint64_t file_off, uint64_t *out_addr)
{
    /* neighbouring segments share a page of the file, so data may claim the offset too */
    for (int executable = 1; executable >= 0; executable--)
        for (size_t i = 0; i < e->segment_count; i++) {
            const struct elf_segment *s = &e->segments[i];
            if (s->type == ELF_SEGMENT_LOAD && s->executable == (bool)executable && file_off >= s->file_off &&
                file_off - s->file_off < s->file_bytes) {
                *out_addr = s->addr + (file_off - s->file_off);
                return true;
            }
        }
    return false;
}

bool elf_file_off_of_addr(const struct elf *e, uint64_t addr, uint64_t *out_file_off)
{
    for (int executable = 1; executable >= 0; executable--)
        for (size_t i = 0; i < e->segment_count; i++) {
            const struct elf_segment *s = &e->segments[i];
            if (s->type == ELF_SEGMENT_LOAD && s->executable == (bool)executable && addr >= s->addr &&
                addr - s->addr < s->file_bytes) {
                *out_file_off = s->file_off + (addr - s->addr);
                return true;
            }
        }
    return false;
}

uint64_t elf_base_addr(const struct elf *e)
{
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < e->segment_count; i++)
        if (e->segments[i].type == ELF_SEGMENT_LOAD && e->segments[i].addr < lowest)
            lowest = e->segments[i].addr;
    return lowest == UINT64_MAX ? 0 : lowest;
}

static bool build_id_in_notes(struct span notes, uint8_t id[ELF_BUILD_ID_MAX], size_t *out_size)
{
    struct cursor c = cursor_over(notes);
    while (cursor_left(&c) >= 12) {
        uint32_t name_bytes = cursor_u32le(&c);
        uint32_t value_bytes = cursor_u32le(&c);
        uint32_t type = cursor_u32le(&c);
        struct span name = cursor_bytes(&c, name_bytes);
        cursor_align(&c, 4);
        struct span value = cursor_bytes(&c, value_bytes);
        if (!cursor_ok(&c))
            return false;
        cursor_align(&c, 4);
        if (type == NOTE_BUILD_ID && span_equals(name, span_of("GNU", 4)) && value.size > 0 &&
            value.size <= ELF_BUILD_ID_MAX) {
            memcpy(id, value.data, value.size);
            *out_size = value.size;
            return true;
        }
    }
    return false;
}

static bool build_id_at(const struct elf *e, uint64_t file_off, uint64_t size, uint8_t id[ELF_BUILD_ID_MAX],
                        size_t *out_size)
{
    struct buffer notes;
    buffer_init(&notes, NOTES_MAX);
    bool found = size > 0 && source_load(&e->file, file_off, size, &notes, NULL) &&
                 build_id_in_notes(buffer_span(&notes), id, out_size);
    buffer_done(&notes);
    return found;
}

bool elf_build_id(const struct elf *e, uint8_t id[ELF_BUILD_ID_MAX], size_t *out_size)
{
    unsigned parts = 0;
    /* a debug file keeps its segments but not their bytes, so its sections are asked first */
    for (size_t i = 1; i < e->section_count && parts < NOTE_PARTS_MAX; i++) {
        const struct elf_section *s = &e->sections[i];
        parts += s->type == ELF_SECTION_NOTE;
        if (s->type == ELF_SECTION_NOTE && build_id_at(e, s->file_off, s->size_bytes, id, out_size))
            return true;
    }
    parts = 0;
    for (size_t i = 0; i < e->segment_count && parts < NOTE_PARTS_MAX; i++) {
        const struct elf_segment *s = &e->segments[i];
        parts += s->type == ELF_SEGMENT_NOTE;
        if (s->type == ELF_SEGMENT_NOTE && build_id_at(e, s->file_off, s->file_bytes, id, out_size))
            return true;
    }
    return false;
}

bool elf_debug_link(const struct elf *e, char name[256], uint32_t *out_crc)
{
    const struct elf_section *section = elf_section_named(e, ".gnu_debuglink");
    if (!section)
        return false;
    struct buffer bytes;
    buffer_init(&bytes, 4096);
    bool ok = false;
    if (elf_section_load(e, section, &bytes, NULL)) {
        struct cursor c = cursor_over(buffer_span(&bytes));
        struct span text = cursor_zstring(&c);
        cursor_align(&c, 4);
        uint32_t crc = cursor_u32le(&c);
        /* a name with a folder in it would lead out of the places where debug files live */
        ok = cursor_ok(&c) && text.size > 0 && text.size < 256 && !memchr(text.data, '/', text.size) &&
             !span_equals(text, span_of(".", 1)) && !span_equals(text, span_of("..", 2));
        if (ok) {
            memcpy(name, text.data, text.size);
            name[text.size] = 0;
            *out_crc = crc;
        }
    }
    buffer_done(&bytes);
    return ok;
}

/* Calls `parse` for each entry of a table until it returns false. */
static bool each_entry(const struct source *table, size_t entry_bytes,
                       bool (*parse)(void *user, const uint8_t *entry), void *user, struct error *err)
{
    uint64_t count = table->size / entry_bytes;
    if (count > TABLE_ENTRIES_MAX)
        return error_set(err, ERROR_LIMIT, "a table of %" PRIu64 " entries", count);
    AUTO_FREE uint8_t *chunk = mem_resize(NULL, CHUNK_ENTRIES, SYMBOL_BYTES);
    for (uint64_t done = 0; done < count;) {
        uint64_t left = count - done;
        size_t batch = left < CHUNK_ENTRIES ? (size_t)left : CHUNK_ENTRIES;
        if (!source_read(table, done * entry_bytes, chunk, batch * entry_bytes, err))
            return false;
        for (size_t i = 0; i < batch; i++)
            if (!parse(user, chunk + i * entry_bytes))
                return true;
        done += batch;
    }
    return true;
}

struct symbol_stream {
    elf_symbol_fn *emit;
    void *user;
};

static bool parse_symbol(void *user, const uint8_t *entry)
{
    const struct symbol_stream *stream = user;
    struct elf_symbol s = { .name = load_u32le(entry),
                            .type = entry[4] & 0xf,
                            .binding = entry[4] >> 4,
                            .section = load_u16le(entry + 6),
                            .addr = load_u64le(entry + 8),
                            .size_bytes = load_u64le(entry + 16) };
    return s.section == 0 || stream->emit(stream->user, &s);
}

bool elf_symbols(const struct source *table, elf_symbol_fn *emit, void *user, struct error *err)
{
    struct symbol_stream stream = { emit, user };
    return each_entry(table, SYMBOL_BYTES, parse_symbol, &stream, err);
}

bool elf_string(const struct source *strings, uint64_t offset, struct buffer *out)
{
    enum { PIECE = 256 };
    buffer_clear(out);
    while (offset < strings->size && out->size < ELF_NAME_MAX) {
        size_t size = strings->size - offset < PIECE ? (size_t)(strings->size - offset) : PIECE;
        uint8_t *room = buffer_reserve(out, size);
        if (!room || !source_read(strings, offset, room, size, NULL))
            return false;
        const uint8_t *nul = memchr(room, 0, size);
        if (nul) {
            out->size += (size_t)(nul - room) + 1;
            return true;
        }
        out->size += size;
        offset += size;
    }
    return false;
}

struct relocation_stream {
    elf_relocation_fn *emit;
    void *user;
};

static bool parse_relocation(void *user, const uint8_t *entry)
{
    const struct relocation_stream *stream = user;
    struct elf_relocation r = { .addr = load_u64le(entry),
                                .type = load_u32le(entry + 8),
                                .symbol = load_u32le(entry + 12),
                                .addend = load_u64le(entry + 16) };
    return stream->emit(stream->user, &r);
}

bool elf_relocation_is_relative(const struct elf *e, const struct elf_relocation *relocation)
{
    enum { RELATIVE_X86_64 = 8, RELATIVE_AARCH64 = 1027 };
    return relocation->type == (e->machine == ELF_X86_64 ? RELATIVE_X86_64 : RELATIVE_AARCH64);
}

bool elf_relocations(const struct source *table, elf_relocation_fn *emit, void *user, struct error *err)
{
    struct relocation_stream stream = { emit, user };
    return each_entry(table, RELA_BYTES, parse_relocation, &stream, err);
}

bool elf_unpack_debugdata(const struct elf *e, struct buffer *out, struct error *err)
{
    const struct elf_section *section = elf_section_named(e, ".gnu_debugdata");
    if (!section)
        return error_set(err, ERROR_INPUT, "no .gnu_debugdata section");
    if (section->file_off > e->file.size || section->size_bytes > e->file.size - section->file_off)
        return error_set(err, ERROR_INPUT, "section '.gnu_debugdata' lies outside of the file");
    struct source packed = source_part(&e->file, section->file_off, section->size_bytes);
    return unpack_xz(&packed, out, err) || error_context(err, "section '.gnu_debugdata'");
}
