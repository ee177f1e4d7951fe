#include "symbolize/qcall_names.h"

#include <string.h>

enum {
    RUN_MAX = 8192, /* pointers of one table */
    IDENTIFIER_MIN = 4,
};

enum pointer_kind { POINTER_OTHER, POINTER_NAME, POINTER_FUNCTION };

/* A run of pointers that alternate between names and functions. */
struct run {
    struct relocated_pointers *all;
    struct symbol_table *out;
    enum pointer_kind last;
    size_t begin, count; /* rows of it */
    bool first_is_name;
};

/* The file offset of the identifier at `addr`; 0 when there is none. */
static uint32_t identifier_at(struct rodata_names *names, uint64_t addr)
{
    const char *text = rodata_names_at(names, addr, false);
    uint64_t file_off = names->section->file_off + (addr - names->section->addr);
    return text && strlen(text) >= IDENTIFIER_MIN && file_off <= UINT32_MAX ? (uint32_t)file_off : 0;
}

/*
 * Takes the pairs of a finished run. Tables of {function, name} look the same from inside: they
 * begin with a function and end with a name, and pairing them would shift all names by one.
 */
static void take_run(struct run *run)
{
    const struct relocated_pointer *rows = &run->all->rows[run->begin];
    if (run->first_is_name || run->last == POINTER_FUNCTION)
        for (size_t i = run->first_is_name ? 0 : 1; i + 1 < run->count; i += 2) {
            uint32_t name = identifier_at(&run->all->names, rows[i].value);
            if (name)
                symbol_table_add(run->out, rows[i + 1].value, rows[i + 1].function_bytes, name, 0);
        }
    run->count = 0;
    run->last = POINTER_OTHER;
}

static enum pointer_kind pointer_kind(const struct run *run, const struct relocated_pointer *row)
{
    if (!row->relative || !relocated_pointers_fix(run->all, row->addr))
        return POINTER_OTHER;
    if (rodata_names_cover(&run->all->names, row->value))
        return POINTER_NAME;
    return row->function_bytes ? POINTER_FUNCTION : POINTER_OTHER;
}

static void take_pointer(struct run *run, size_t i)
{
    const struct relocated_pointer *row = &run->all->rows[i];
    enum pointer_kind kind = pointer_kind(run, row);
    if (run->count && (row->addr != row[-1].addr + sizeof(uint64_t) || kind == POINTER_OTHER ||
                       kind == run->last || run->count == RUN_MAX))
        take_run(run);
    if (kind == POINTER_OTHER)
        return;
    if (run->count++ == 0) {
        run->begin = i;
        run->first_is_name = kind == POINTER_NAME;
    }
    run->last = kind;
}

void qcall_names_find(struct relocated_pointers *pointers, struct symbol_table *out)
{
    struct run run = { .all = pointers, .out = out };
    for (size_t i = 0; i < pointers->count; i++)
        take_pointer(&run, i);
    take_run(&run);
}
