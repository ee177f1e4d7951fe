#include "symbolize/qcall_names.h"

#include <string.h>

#include "symbolize/rodata_names.h"

enum {
    RELATIVE_X86_64 = 8,
    RELATIVE_AARCH64 = 1027,
    RUN_MAX = 8192, /* pointers of one table */
    IDENTIFIER_MIN = 4,
};

enum pointer_kind { POINTER_OTHER, POINTER_NAME, POINTER_FUNCTION };

/* A run of pointers that alternate between names and functions. */
struct run {
    const struct elf *elf;
    const struct eh_ranges *functions;
    const struct elf_section *pointers;
    struct rodata_names names;
    struct symbol_table *out;
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
    const char *text = rodata_names_at(&run->names, addr, false);
    uint64_t file_off = run->names.section->file_off + (addr - run->names.section->addr);
    return text && strlen(text) >= IDENTIFIER_MIN && file_off <= UINT32_MAX ? (uint32_t)file_off : 0;
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
    if (rodata_names_cover(&run->names, value))
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

bool qcall_names_read(const struct elf *e, const struct eh_ranges *functions, struct symbol_table *out,
                      struct error *err)
{
    const struct elf_section *relocations = elf_section_named(e, ".rela.dyn");
    struct run run = { .elf = e, .functions = functions, .out = out };
    run.pointers = elf_section_named(e, ".data.rel.ro");
    if (!relocations || !run.pointers || !rodata_names_open(e, &run.names))
        return error_set(err, ERROR_INPUT, "no relocated tables of names");
    struct buffer unpacked;
    struct source table;
    buffer_init(&unpacked, 64 << 20);
    bool ok = elf_section_source(e, relocations, &unpacked, &table, err) &&
              elf_relocations(&table, take_relocation, &run, err);
    take_run(&run);
    rodata_names_done(&run.names);
    buffer_done(&unpacked);
    return ok;
}
