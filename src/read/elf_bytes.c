#include "read/elf_bytes.h"

#include "read/unpack.h"

bool elf_bytes_open(const struct elf *e, const struct elf_section *section, size_t ceiling,
                    struct elf_bytes *out, struct error *err)
{
    struct elf_bytes b = { 0 };
    struct source packed;
    bool is_packed = false;
    if (!elf_section_stored(e, section, &packed, &is_packed, &b.size, err))
        return false;
    if (!is_packed)
        b.bytes = packed;
    else if (!unpacking_open(&packed, b.size, ceiling, &b.unpacking, err))
        return error_context(err, "section '%s'", elf_section_name(e, section));
    *out = b;
    return true;
}

struct elf_bytes elf_bytes_over_span(struct span bytes)
{
    return (struct elf_bytes){ .bytes = source_over_span(bytes), .size = bytes.size };
}

void elf_bytes_close(struct elf_bytes *b)
{
    unpacking_close(b->unpacking);
    *b = (struct elf_bytes){ 0 };
}

struct span elf_bytes_get(const struct elf_bytes *b, uint64_t offset, uint64_t size, struct buffer *memory)
{
    if (offset > b->size || size > b->size - offset)
        return (struct span){ 0 };
    if (b->unpacking)
        return span_part(unpacking_get(b->unpacking, offset + size), offset, size);
    if (b->bytes.fd < 0)
        return span_part(b->bytes.memory, b->bytes.start + offset, size);
    if (!source_load(&b->bytes, offset, size, memory, NULL))
        return (struct span){ 0 };
    return buffer_span(memory);
}
