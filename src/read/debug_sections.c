#include "read/debug_sections.h"

enum { SECTION_BYTES_MAX = 128 << 20 };

static const char *const names[DEBUG_SECTIONS] = {
    [DEBUG_SECTION_LINE] = ".debug_line",
    [DEBUG_SECTION_INFO] = ".debug_info",
    [DEBUG_SECTION_LINE_STR] = ".debug_line_str",
    [DEBUG_SECTION_STR] = ".debug_str",
    [DEBUG_SECTION_ABBREV] = ".debug_abbrev",
    [DEBUG_SECTION_ADDR] = ".debug_addr",
    [DEBUG_SECTION_STR_OFFSETS] = ".debug_str_offsets",
    [DEBUG_SECTION_RANGES] = ".debug_ranges",
    [DEBUG_SECTION_RNGLISTS] = ".debug_rnglists",
    [DEBUG_SECTION_ARANGES] = ".debug_aranges",
};

const char *debug_section_name(enum debug_section which)
{
    return names[which];
}

const struct elf_section *debug_section_of(const struct elf *e, enum debug_section which)
{
    return elf_section_named(e, names[which]);
}

static struct span load(const struct elf *e, struct debug_sections *s, enum debug_section which)
{
    const struct elf_section *section = debug_section_of(e, which);
    if (!section || !elf_section_load(e, section, &s->memory[which], NULL))
        return (struct span){ 0 };
    return buffer_span(&s->memory[which]);
}

static struct source open_source(const struct elf *e, struct debug_sections *s, enum debug_section which)
{
    const struct elf_section *section = debug_section_of(e, which);
    struct source out;
    if (!section || !elf_section_source(e, section, &s->memory[which], &out, NULL))
        return source_over_span((struct span){ 0 });
    return out;
}

static struct elf_bytes open_bytes(const struct elf *e, enum debug_section which)
{
    const struct elf_section *section = debug_section_of(e, which);
    struct elf_bytes out;
    if (!section || !elf_bytes_open(e, section, SECTION_BYTES_MAX, &out, NULL))
        return elf_bytes_over_span((struct span){ 0 });
    return out;
}

void debug_sections_open(const struct elf *e, struct debug_sections *out)
{
    struct debug_sections s = { 0 };
    for (size_t i = 0; i < DEBUG_SECTIONS; i++)
        buffer_init(&s.memory[i], SECTION_BYTES_MAX);
    s.lines.line = open_bytes(e, DEBUG_SECTION_LINE);
    s.info = open_bytes(e, DEBUG_SECTION_INFO);
    s.lines.strings = load(e, &s, DEBUG_SECTION_LINE_STR);
    s.str = open_source(e, &s, DEBUG_SECTION_STR);
    s.abbrev = load(e, &s, DEBUG_SECTION_ABBREV);
    s.addr = load(e, &s, DEBUG_SECTION_ADDR);
    s.str_offsets = load(e, &s, DEBUG_SECTION_STR_OFFSETS);
    s.ranges = load(e, &s, DEBUG_SECTION_RANGES);
    s.rnglists = load(e, &s, DEBUG_SECTION_RNGLISTS);
    s.aranges = load(e, &s, DEBUG_SECTION_ARANGES);
    *out = s;
}

void debug_sections_close(struct debug_sections *sections)
{
    for (size_t i = 0; i < DEBUG_SECTIONS; i++)
        buffer_done(&sections->memory[i]);
    elf_bytes_close(&sections->info);
    elf_bytes_close(&sections->lines.line);
    *sections = (struct debug_sections){ 0 };
}
