#include "assembly_fixture.h"

enum {
    PE_OFFSET = 0x40,
    OPTIONAL_BYTES = 240,
    SECTION_RVA = 0x1000,
    SECTION_OFFSET = 0x200,
    CLI_HEADER_BYTES = 72,
    ROOT_BYTES = 32 + 12 + 20 + 16 + 16, /* with the headers of four streams */
    GENERIC_EVERY = 8,
    NAME_TYPE = 1, /* in #Strings: "", "T", "M" */
    NAME_METHOD = 3,
    SIGNATURE = 1, /* in #Blob: void () */
    PUBLIC_STATIC = 0x16,
    IS_METHOD = 1, /* tag of a coded TypeOrMethodDef */
};

static uint32_t parameters(uint32_t row)
{
    return row % GENERIC_EVERY ? 0 : 1 + row / GENERIC_EVERY % 3;
}

static void write_tables(struct buffer *out, uint32_t types, uint32_t each)
{
    uint32_t methods = types * each, generics = 0;
    for (uint32_t row = 1; row <= methods; row++)
        generics += parameters(row);
    buffer_u32le(out, 0);
    buffer_u8(out, 2);
    buffer_u8(out, 0);
    buffer_u8(out, 0);
    buffer_u8(out, 1);
    buffer_u64le(out, UINT64_C(1) << 0x00 | UINT64_C(1) << 0x02 | UINT64_C(1) << 0x06 | UINT64_C(1) << 0x2a);
    buffer_u64le(out, UINT64_C(1) << 0x2a); /* sorted */
    buffer_u32le(out, 1);
    buffer_u32le(out, types + 1);
    buffer_u32le(out, methods);
    buffer_u32le(out, generics);
    static const uint16_t module[] = { 0, NAME_TYPE, 1, 0, 0 };
    for (size_t i = 0; i < 5; i++)
        buffer_u16le(out, module[i]);
    for (uint32_t row = 1; row <= types + 1; row++) { /* TypeDef; the first is <Module> */
        buffer_u32le(out, 0);
        buffer_u16le(out, NAME_TYPE);
        buffer_u16le(out, 0);
        buffer_u16le(out, 0);
        buffer_u16le(out, 1);
        buffer_u16le(out, (uint16_t)(row == 1 ? 1 : 1 + (row - 2) * each));
    }
    for (uint32_t row = 1; row <= methods; row++) {
        buffer_u32le(out, 0);
        buffer_u16le(out, 0);
        buffer_u16le(out, PUBLIC_STATIC);
        buffer_u16le(out, NAME_METHOD);
        buffer_u16le(out, SIGNATURE);
        buffer_u16le(out, 1);
    }
    for (uint32_t row = 1; row <= methods; row++)
        for (uint32_t i = 0; i < parameters(row); i++) {
            buffer_u16le(out, (uint16_t)i);
            buffer_u16le(out, 0);
            buffer_u16le(out, (uint16_t)(row << 1 | IS_METHOD));
            buffer_u16le(out, NAME_TYPE);
        }
    while (out->size % 4)
        buffer_u8(out, 0);
}

static void write_stream(struct buffer *out, uint32_t offset, uint32_t size, const char *name,
                         size_t name_bytes)
{
    buffer_u32le(out, offset);
    buffer_u32le(out, size);
    buffer_append(out, name, name_bytes);
}

void metadata_fixture_write(struct span tables, struct span strings, struct span blob, struct buffer *out)
{
    static const char guid[16] = "an MVID for once";
    uint32_t at = ROOT_BYTES;
    buffer_u32le(out, 0x424a5342);
    buffer_u32le(out, 0x00010001);
    buffer_u32le(out, 0);
    buffer_u32le(out, 12);
    buffer_append(out, "v4.0.30319\0", 12);
    buffer_u16le(out, 0);
    buffer_u16le(out, 4);
    write_stream(out, at, (uint32_t)tables.size, "#~\0", 4);
    at += (uint32_t)tables.size;
    write_stream(out, at, (uint32_t)strings.size, "#Strings\0\0\0", 12);
    at += (uint32_t)strings.size;
    write_stream(out, at, sizeof guid, "#GUID\0\0", 8);
    write_stream(out, at + sizeof guid, (uint32_t)blob.size, "#Blob\0\0", 8);
    buffer_append(out, tables.data, tables.size);
    buffer_append(out, strings.data, strings.size);
    buffer_append(out, guid, sizeof guid);
    buffer_append(out, blob.data, blob.size);
}

static void pad_to(struct buffer *out, size_t size)
{
    while (out->size < size && !out->failed)
        buffer_u8(out, 0);
}

static void write_headers(struct buffer *out, uint32_t section_bytes)
{
    buffer_append(out, "MZ", 2);
    pad_to(out, 0x3c);
    buffer_u32le(out, PE_OFFSET);
    buffer_append(out, "PE\0\0", 4);
    buffer_u16le(out, 0x8664);
    buffer_u16le(out, 1);
    pad_to(out, PE_OFFSET + 20);
    buffer_u16le(out, OPTIONAL_BYTES);
    buffer_u16le(out, 0);
    size_t optional = out->size;
    buffer_u16le(out, 0x20b);
    pad_to(out, optional + 56);
    buffer_u32le(out, SECTION_RVA + section_bytes);
    pad_to(out, optional + 108);
    buffer_u32le(out, 16);
    pad_to(out, optional + 112 + 8 * 14);
    buffer_u32le(out, SECTION_RVA);
    buffer_u32le(out, CLI_HEADER_BYTES);
    pad_to(out, optional + OPTIONAL_BYTES + 8);
    buffer_u32le(out, section_bytes);
    buffer_u32le(out, SECTION_RVA);
    buffer_u32le(out, section_bytes);
    buffer_u32le(out, SECTION_OFFSET);
    pad_to(out, SECTION_OFFSET);
}

void assembly_fixture_write(uint32_t types, uint32_t methods_each, struct buffer *out)
{
    struct buffer tables, metadata;
    buffer_init(&tables, 1 << 20);
    buffer_init(&metadata, 1 << 20);
    write_tables(&tables, types, methods_each);
    static const char strings[8] = "\0T\0M", blob[8] = { 0, 3, 0, 0, 1 };
    metadata_fixture_write(buffer_span(&tables), span_of(strings, sizeof strings), span_of(blob, sizeof blob),
                           &metadata);
    write_headers(out, CLI_HEADER_BYTES + (uint32_t)metadata.size);
    buffer_u32le(out, CLI_HEADER_BYTES);
    buffer_u32le(out, 0);
    buffer_u32le(out, SECTION_RVA + CLI_HEADER_BYTES);
    buffer_u32le(out, (uint32_t)metadata.size);
    pad_to(out, SECTION_OFFSET + CLI_HEADER_BYTES);
    buffer_append(out, metadata.data, metadata.size);
    buffer_done(&tables);
    buffer_done(&metadata);
}
