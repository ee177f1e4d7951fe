#include "read/debug_sections.h"

enum { SECTION_BYTES_MAX = 128 << 20 };

const char *const debug_section_names[] = {
    ".debug_line", ".debug_info",   ".debug_line_str",    ".debug_str",      ".debug_abbrev",
    ".debug_addr", ".debug_ranges", ".debug_str_offsets", ".debug_rnglists", ".debug_aranges",
    NULL
};

static struct buffer *next_memory(struct debug_sections *s)
{
    struct buffer *memory = &s->memory[s->memory_count++];
    buffer_init(memory, SECTION_BYTES_MAX);
    return memory;
}

static struct span load(const struct elf *e, struct debug_sections *s, const char *name)
{
    const struct elf_section *section = elf_section_named(e, name);
    struct buffer *memory = next_memory(s);
    if (!section || !elf_section_load(e, section, memory, NULL))
        return (struct span){ 0 };
    return buffer_span(memory);
}

static struct source open_source(const struct elf *e, struct debug_sections *s, const char *name)
{
    const struct elf_section *section = elf_section_named(e, name);
    struct buffer *memory = next_memory(s);
    struct source out;
    if (!section || !elf_section_source(e, section, memory, &out, NULL))
        return source_over_span((struct span){ 0 });
    return out;
}

static struct elf_bytes open_bytes(const struct elf *e, const char *name)
{
    const struct elf_section *section = elf_section_named(e, name);
    struct elf_bytes out;
    if (!section || !elf_bytes_open(e, section, SECTION_BYTES_MAX, &out, NULL))
        return elf_bytes_over_span((struct span){ 0 });
    return out;
}

void debug_sections_open(const struct elf *e, struct debug_sections *out)
{
    struct debug_sections s = { 0 };
    s.lines.line = open_bytes(e, ".debug_line");
    s.info = open_bytes(e, ".debug_info");
    s.lines.strings = load(e, &s, ".debug_line_str");
    s.str = open_source(e, &s, ".debug_str");
    s.abbrev = load(e, &s, ".debug_abbrev");
    s.addr = load(e, &s, ".debug_addr");
    s.str_offsets = load(e, &s, ".debug_str_offsets");
    s.ranges = load(e, &s, ".debug_ranges");
    s.rnglists = load(e, &s, ".debug_rnglists");
    s.aranges = load(e, &s, ".debug_aranges");
    *out = s;
}

void debug_sections_close(struct debug_sections *sections)
{
    for (size_t i = 0; i < sections->memory_count; i++)
        buffer_done(&sections->memory[i]);
    elf_bytes_close(&sections->info);
    elf_bytes_close(&sections->lines.line);
    *sections = (struct debug_sections){ 0 };
}
