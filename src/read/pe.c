#include "read/pe.h"

#include <string.h>

#include "base/cursor.h"
#include "base/own.h"

enum {
    DOS_HEADER_BYTES = 64,
    DOS_PE_OFFSET = 0x3c,
    COFF_HEADER_BYTES = 24, /* with the signature */
    OPTIONAL_HEADER_MAX = 4096,
    SECTION_BYTES = 40,
    SECTION_EXECUTE = 0x20000000,
    MAGIC_PE32 = 0x10b,
    MAGIC_PE32_PLUS = 0x20b,
    CLI_HEADER_BYTES = 72,
    EXPORT_BYTES = 40,
    EXPORTS_MAX = 4096,
};

/* crossgen marks the target system by XOR; each system's loader accepts only its own mark. */
static const uint16_t system_marks[] = { 0,
                                         0x7b79 /* Linux */,
                                         0x4644 /* macOS */,
                                         0xadc4 /* FreeBSD */,
                                         0x1993 /* NetBSD */,
                                         0x1992 /* illumos */ };

static enum pe_machine machine_of(uint16_t marked)
{
    for (size_t i = 0; i < ARRAY_LEN(system_marks); i++) {
        switch (marked ^ system_marks[i]) {
        case 0x14c:
            return PE_MACHINE_X86;
        case 0x8664:
            return PE_MACHINE_X64;
        case 0xaa64:
            return PE_MACHINE_ARM64;
        }
    }
    return PE_MACHINE_OTHER;
}

static bool read_optional_header(struct span bytes, struct pe *pe, struct error *err)
{
    struct cursor c = cursor_over(bytes);
    uint16_t magic = cursor_u16le(&c);
    if (magic != MAGIC_PE32 && magic != MAGIC_PE32_PLUS)
        return error_set(err, ERROR_INPUT, "not a PE image: optional header 0x%x", magic);
    pe->is_64 = magic == MAGIC_PE32_PLUS;
    cursor_seek(&c, 56);
    pe->image_size = cursor_u32le(&c);
    cursor_seek(&c, pe->is_64 ? 108 : 92);
    uint32_t count = cursor_u32le(&c);
    for (uint32_t i = 0; i < count && i < PE_DIRECTORIES; i++) {
        pe->directories[i].rva = cursor_u32le(&c);
        pe->directories[i].size = cursor_u32le(&c);
    }
    return cursor_finish(&c, err, "PE optional header");
}

static void read_section(struct cursor *c, struct pe_section *section)
{
    cursor_skip(c, 8); /* the name */
    section->virtual_size = cursor_u32le(c);
    section->rva = cursor_u32le(c);
    section->file_size = cursor_u32le(c);
    section->file_off = cursor_u32le(c);
    cursor_skip(c, 12);
    section->executable = cursor_u32le(c) & SECTION_EXECUTE;
}

bool pe_read(const struct source *file, struct pe *out, struct error *err)
{
    uint8_t dos[DOS_HEADER_BYTES], coff[COFF_HEADER_BYTES];
    if (!source_read(file, 0, dos, sizeof dos, err))
        return false;
    if (dos[0] != 'M' || dos[1] != 'Z')
        return error_set(err, ERROR_INPUT, "not a PE image");
    uint64_t at = load_u32le(dos + DOS_PE_OFFSET);
    if (!source_read(file, at, coff, sizeof coff, err))
        return false;
    if (memcmp(coff, "PE\0\0", 4) != 0)
        return error_set(err, ERROR_INPUT, "not a PE image");

    struct pe pe = { .machine = machine_of(load_u16le(coff + 4)) };
    uint32_t sections = load_u16le(coff + 6);
    uint32_t optional_bytes = load_u16le(coff + 20);
    if (sections > PE_SECTIONS_MAX || optional_bytes > OPTIONAL_HEADER_MAX)
        return error_set(err, ERROR_LIMIT, "a PE image with %u sections and %u bytes of header", sections,
                         optional_bytes);
    uint8_t headers[OPTIONAL_HEADER_MAX + PE_SECTIONS_MAX * SECTION_BYTES];
    size_t size = optional_bytes + sections * SECTION_BYTES;
    if (!source_read(file, at + sizeof coff, headers, size, err) ||
        !read_optional_header(span_of(headers, optional_bytes), &pe, err))
        return false;
    struct cursor c = cursor_over(span_of(headers + optional_bytes, size - optional_bytes));
    for (uint32_t i = 0; i < sections; i++)
        read_section(&c, &pe.sections[i]);
    pe.section_count = sections;
    if (!cursor_finish(&c, err, "PE section table"))
        return false;
    *out = pe;
    return true;
}

bool pe_file_offset(const struct pe *pe, uint32_t rva, uint32_t size, uint64_t *out_file_off)
{
    for (uint32_t i = 0; i < pe->section_count; i++) {
        const struct pe_section *s = &pe->sections[i];
        if (rva >= s->rva && rva - s->rva <= s->file_size && size <= s->file_size - (rva - s->rva)) {
            *out_file_off = (uint64_t)s->file_off + (rva - s->rva);
            return true;
        }
    }
    return false;
}

bool pe_code_rva(const struct pe *pe, uint64_t file_off, uint32_t *out_rva)
{
    for (uint32_t i = 0; i < pe->section_count; i++) {
        const struct pe_section *s = &pe->sections[i];
        if (s->executable && file_off >= s->file_off && file_off - s->file_off < s->file_size) {
            *out_rva = s->rva + (uint32_t)(file_off - s->file_off);
            return true;
        }
    }
    return false;
}

static bool range_offset(const struct pe *pe, struct pe_range range, uint64_t *out_file_off,
                         struct error *err)
{
    if (range.size == 0 || !pe_file_offset(pe, range.rva, range.size, out_file_off))
        return error_set(err, ERROR_INPUT, "no section holds %u bytes at RVA 0x%x", range.size, range.rva);
    return true;
}

bool pe_load(const struct source *file, const struct pe *pe, struct pe_range range, struct buffer *out,
             struct error *err)
{
    uint64_t file_off;
    return range_offset(pe, range, &file_off, err) && source_load(file, file_off, range.size, out, err);
}

struct lazy_bytes *pe_load_lazily(const struct source *file, const struct pe *pe, struct pe_range range,
                                  uint64_t ceiling, struct error *err)
{
    uint64_t file_off;
    return range_offset(pe, range, &file_off, err) ? lazy_bytes_open(file, file_off, range.size, ceiling, err)
                                                   : NULL;
}

bool pe_read_cli(const struct source *file, const struct pe *pe, struct pe_cli *out, struct error *err)
{
    struct pe_range range = pe->directories[PE_DIRECTORY_CLI];
    if (range.rva == 0 || range.size < CLI_HEADER_BYTES)
        return error_set(err, ERROR_UNSUPPORTED, "a PE image without managed code");
    uint64_t file_off;
    uint8_t bytes[CLI_HEADER_BYTES];
    if (!pe_file_offset(pe, range.rva, sizeof bytes, &file_off))
        return error_set(err, ERROR_INPUT, "the CLI header lies in no section");
    if (!source_read(file, file_off, bytes, sizeof bytes, err))
        return false;
    *out = (struct pe_cli){
        .metadata = { load_u32le(bytes + 8), load_u32le(bytes + 12) },
        .flags = load_u32le(bytes + 16),
        .entry_point = load_u32le(bytes + 20),
        .native_header = { load_u32le(bytes + 64), load_u32le(bytes + 68) },
    };
    return true;
}

static bool read_at_rva(const struct source *file, const struct pe *pe, uint32_t rva, void *into,
                        uint32_t size, struct error *err)
{
    uint64_t file_off;
    if (!pe_file_offset(pe, rva, size, &file_off))
        return error_set(err, ERROR_INPUT, "no section holds %u bytes at RVA 0x%x", size, rva);
    return source_read(file, file_off, into, size, err);
}

/* True when the NUL-terminated text at `rva` is `name`. */
static bool text_at_rva_is(const struct source *file, const struct pe *pe, uint32_t rva, const char *name)
{
    char text[64];
    uint32_t size = (uint32_t)strlen(name) + 1;
    return size <= sizeof text && read_at_rva(file, pe, rva, text, size, NULL) &&
           memcmp(text, name, size) == 0;
}

bool pe_find_export(const struct source *file, const struct pe *pe, const char *name, uint32_t *out_rva,
                    struct error *err)
{
    uint8_t table[EXPORT_BYTES], word[4], half[2];
    struct pe_range range = pe->directories[PE_DIRECTORY_EXPORT];
    if (range.size < sizeof table)
        return error_set(err, ERROR_UNSUPPORTED, "a PE image without exports");
    if (!read_at_rva(file, pe, range.rva, table, sizeof table, err))
        return false;
    uint32_t addresses = load_u32le(table + 20), names = load_u32le(table + 24);
    uint32_t functions = load_u32le(table + 28), name_rvas = load_u32le(table + 32);
    uint32_t ordinals = load_u32le(table + 36);
    for (uint32_t i = 0; i < names && i < EXPORTS_MAX; i++) {
        if (!read_at_rva(file, pe, name_rvas + 4 * i, word, sizeof word, err))
            return false;
        if (!text_at_rva_is(file, pe, load_u32le(word), name))
            continue;
        if (!read_at_rva(file, pe, ordinals + 2 * i, half, sizeof half, err))
            return false;
        if (load_u16le(half) >= addresses)
            return error_set(err, ERROR_INPUT, "the export '%s' has no address", name);
        if (!read_at_rva(file, pe, functions + 4 * load_u16le(half), word, sizeof word, err))
            return false;
        *out_rva = load_u32le(word);
        return true;
    }
    return error_set(err, ERROR_UNSUPPORTED, "a PE image without the export '%s'", name);
}
