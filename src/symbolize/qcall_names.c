#include "symbolize/qcall_names.h"

#include <ctype.h>
#include <string.h>

enum {
    RELATIVE_X86_64 = 8,
    RELATIVE_AARCH64 = 1027,
    RUN_MAX = 8192, /* pointers of one table */
    IDENTIFIER_MIN = 4,
    IDENTIFIER_MAX = 256,
    NAMES_BYTES_MAX = 8 << 20,
};

enum pointer_kind { POINTER_OTHER, POINTER_NAME, POINTER_FUNCTION };

/* A run of pointers that alternate between names and functions. */
struct run {
    const struct elf *elf;
    const struct eh_ranges *functions;
    const struct elf_section *pointers, *names;
    struct symbol_table *out;
    struct source names_bytes; /* the section */
    struct buffer text;
    uint64_t next_place;
    enum pointer_kind last;
    size_t count;
    uint64_t values[RUN_MAX];
    bool first_is_name;
};

static bool inside(const struct elf_section *section, uint64_t addr)
{
    return addr >= section->addr && addr - section->addr < section->size_bytes;
}

/* The file offset of the identifier at `addr`; 0 when there is none. */
static uint32_t identifier_at(struct run *run, uint64_t addr)
{
    uint64_t file_off = run->names->file_off + (addr - run->names->addr);
    uint64_t left = run->names->size_bytes - (addr - run->names->addr);
    struct source name = source_part(&run->names_bytes, addr - run->names->addr,
                                     left < IDENTIFIER_MAX ? left : IDENTIFIER_MAX);
    if (file_off > UINT32_MAX || !elf_string(&name, 0, &run->text) || run->text.size <= IDENTIFIER_MIN)
        return 0;
    const char *text = (const char *)run->text.data;
    if (!isalpha((unsigned char)text[0]) && text[0] != '_')
        return 0;
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return 0;
    return (uint32_t)file_off;
}

/*
 * Takes the pairs of a finished run. Tables of {function, name} look the same from inside: they
 * begin with a function and end with a name, and pairing them would shift all names by one.
 */
static void take_run(struct run *run)
{
    size_t first = run->first_is_name ? 0 : 1;
    if (run->first_is_name || run->last == POINTER_FUNCTION)
        for (size_t i = first; i + 1 < run->count; i += 2) {
            uint64_t start = 0, size_bytes = 0;
            uint32_t name = identifier_at(run, run->values[i]);
            if (name && eh_ranges_find(run->functions, run->values[i + 1], &start, &size_bytes))
                symbol_table_add(run->out, start, size_bytes, name, 0);
        }
    run->count = 0;
    run->last = POINTER_OTHER;
}

static enum pointer_kind pointer_kind(const struct run *run, uint64_t value)
{
    uint64_t start = 0, size_bytes = 0;
    if (inside(run->names, value))
        return POINTER_NAME;
    return eh_ranges_find(run->functions, value, &start, &size_bytes) && start == value ? POINTER_FUNCTION
                                                                                        : POINTER_OTHER;
}

static bool take_relocation(void *user, const struct elf_relocation *r)
{
    struct run *run = user;
    uint32_t relative = run->elf->machine == ELF_X86_64 ? RELATIVE_X86_64 : RELATIVE_AARCH64;
    enum pointer_kind kind = POINTER_OTHER;
    if (r->type == relative && inside(run->pointers, r->addr))
        kind = pointer_kind(run, r->addend);
    if (run->count &&
        (r->addr != run->next_place || kind == POINTER_OTHER || kind == run->last || run->count == RUN_MAX))
        take_run(run);
    if (kind == POINTER_OTHER)
        return true;
    if (run->count == 0)
        run->first_is_name = kind == POINTER_NAME;
    run->values[run->count++] = r->addend;
    run->last = kind;
    run->next_place = r->addr + 8;
    return true;
}

/* Hundreds of names are looked at: one read for all, unless there is very much besides. */
static void read_names(struct run *run, struct buffer *memory)
{
    run->names_bytes = source_part(&run->elf->file, run->names->file_off, run->names->size_bytes);
    if (source_load(&run->names_bytes, 0, run->names_bytes.size, memory, NULL))
        run->names_bytes = source_over_span(buffer_span(memory));
}

bool qcall_names_read(const struct elf *e, const struct eh_ranges *functions, struct symbol_table *out,
                      struct error *err)
{
    const struct elf_section *relocations = elf_section_named(e, ".rela.dyn");
    struct run run = { .elf = e, .functions = functions, .out = out };
    run.pointers = elf_section_named(e, ".data.rel.ro");
    run.names = elf_section_named(e, ".rodata");
    if (!relocations || !run.pointers || !run.names)
        return error_set(err, ERROR_INPUT, "no relocated tables of names");
    struct buffer unpacked, names;
    struct source table;
    buffer_init(&unpacked, 64 << 20);
    buffer_init(&names, NAMES_BYTES_MAX);
    read_names(&run, &names);
    buffer_init(&run.text, ELF_NAME_MAX + 256);
    bool ok = elf_section_source(e, relocations, &unpacked, &table, err) &&
              elf_relocations(&table, take_relocation, &run, err);
    take_run(&run);
    buffer_done(&run.text);
    buffer_done(&names);
    buffer_done(&unpacked);
    return ok;
}
