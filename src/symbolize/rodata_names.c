#include "symbolize/rodata_names.h"

#include <ctype.h>

enum { NAME_MAX_BYTES = 256, SECTION_BYTES_MAX = 8 << 20 };

/* Hundreds of names are looked at: one read for all, unless there is very much besides. */
bool rodata_names_open(const struct elf *e, struct rodata_names *out)
{
    *out = (struct rodata_names){ .section = elf_section_named(e, ".rodata") };
    if (!out->section)
        return false;
    buffer_init(&out->memory, SECTION_BYTES_MAX);
    buffer_init(&out->text, ELF_NAME_MAX + NAME_MAX_BYTES);
    out->bytes = source_part(&e->file, out->section->file_off, out->section->size_bytes);
    if (source_load(&out->bytes, 0, out->bytes.size, &out->memory, NULL))
        out->bytes = source_over_span(buffer_span(&out->memory));
    return true;
}

void rodata_names_done(struct rodata_names *names)
{
    buffer_done(&names->memory);
    buffer_done(&names->text);
}

bool rodata_names_cover(const struct rodata_names *names, uint64_t addr)
{
    return addr >= names->section->addr && addr - names->section->addr < names->section->size_bytes;
}

const char *rodata_names_at(struct rodata_names *names, uint64_t addr, bool dotted)
{
    if (!rodata_names_cover(names, addr))
        return NULL;
    uint64_t at = addr - names->section->addr, left = names->section->size_bytes - at;
    struct source part = source_part(&names->bytes, at, left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES);
    if (!elf_string(&part, 0, &names->text))
        return NULL;
    const char *text = (const char *)names->text.data;
    if (!isalpha((unsigned char)text[0]) && text[0] != '_' && !(dotted && text[0] == '.'))
        return NULL;
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_' && !(dotted && *p == '.'))
            return NULL;
    return text;
}
