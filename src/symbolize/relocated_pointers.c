#include "symbolize/relocated_pointers.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
    RELOCATIONS_BYTES_MAX = 64 << 20,
    POINTERS_MAX = 1 << 18, /* a runtime has 10,000 to 25,000 */
};

static bool inside(const struct elf_section *section, uint64_t addr)
{
    return section && addr >= section->addr && addr - section->addr < section->size_bytes;
}

bool relocated_pointers_fix(const struct relocated_pointers *p, uint64_t addr)
{
    return inside(p->fixed, addr);
}

static bool take_relocation(void *user, const struct elf_relocation *r)
{
    struct relocated_pointers *p = user;
    if (!inside(p->fixed, r->addr) && !inside(p->data, r->addr))
        return true;
    struct relocated_pointer row = {
        .addr = r->addr,
        .value = r->addend,
        .relative = elf_relocation_is_relative(p->elf, r),
    };
    uint64_t start = 0, size_bytes = 0;
    if (row.relative && eh_ranges_find(p->functions, row.value, &start, &size_bytes) && start == row.value &&
        size_bytes <= UINT32_MAX)
        row.function_bytes = (uint32_t)size_bytes;
    p->rows = mem_grow(p->rows, &p->capacity, p->count + 1, sizeof *p->rows);
    p->rows[p->count++] = row;
    return p->count < POINTERS_MAX;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = ((const struct relocated_pointer *)a)->addr, y = ((const struct relocated_pointer *)b)->addr;
    return (x > y) - (x < y);
}

/* Linkers write them in order. */
static void sort(struct relocated_pointers *p)
{
    size_t i = 1;
    while (i < p->count && p->rows[i - 1].addr <= p->rows[i].addr)
        i++;
    if (i < p->count)
        qsort(p->rows, p->count, sizeof *p->rows, compare);
}

bool relocated_pointers_read(const struct elf *e, const struct eh_ranges *functions,
                             struct relocated_pointers *out, struct error *err)
{
    const struct elf_section *relocations = elf_section_named(e, ".rela.dyn");
    struct relocated_pointers p = { .elf = e, .functions = functions };
    struct buffer unpacked;
    struct source table;
    p.fixed = elf_section_named(e, ".data.rel.ro");
    p.data = elf_section_named(e, ".data");
    if (!relocations || !p.fixed || !rodata_names_open(e, &p.names))
        return error_set(err, ERROR_INPUT, "no relocated tables of names");
    buffer_init(&unpacked, RELOCATIONS_BYTES_MAX);
    bool ok = elf_section_source(e, relocations, &unpacked, &table, err) &&
              elf_relocations(&table, take_relocation, &p, err);
    buffer_done(&unpacked);
    sort(&p);
    *out = p;
    if (!ok)
        relocated_pointers_done(out);
    return ok;
}

void relocated_pointers_done(struct relocated_pointers *p)
{
    rodata_names_done(&p->names);
    free(p->rows);
}

const struct relocated_pointer *relocated_pointer_at(const struct relocated_pointers *p, uint64_t addr)
{
    struct relocated_pointer key = { .addr = addr };
    return p->count ? bsearch(&key, p->rows, p->count, sizeof key, compare) : NULL;
}
