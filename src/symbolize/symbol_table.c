#include "symbolize/symbol_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    SYMBOLS_MAX = 4 << 20,
    BACK_MAX = 64,    /* symbols before the nearest one that may still reach over an address */
    ALIASES_MAX = 32, /* names of one address that are looked at */
    RANK_LOCAL = 64,  /* worse than any number of underscores */
    RADIX_BITS = 11,
    RADIX_ROWS_MIN = 512,
    SECTION_EXECUTABLE = 4,
    SECTION_INDEX_SPECIAL = 0xff00,
    SECTION_INDEX_EXTENDED = 0xffff,
};

void symbol_table_init(struct symbol_table *t, uint64_t base, bool unsized_allowed)
{
    *t = (struct symbol_table){ .base = base, .unsized_allowed = unsized_allowed };
}

void symbol_table_done(struct symbol_table *t)
{
    free(t->rows);
    *t = (struct symbol_table){ 0 };
}

void symbol_table_add(struct symbol_table *t, uint64_t addr, uint64_t size_bytes, uint32_t name, uint8_t rank)
{
    if (addr < t->base || addr - t->base > UINT32_MAX || size_bytes > UINT32_MAX || t->count == SYMBOLS_MAX)
        return;
    t->rows = mem_grow(t->rows, &t->capacity, t->count + 1, sizeof *t->rows);
    t->rows[t->count++] = (struct symbol_row){ (uint32_t)(addr - t->base), (uint32_t)size_bytes, name, rank };
    if (size_bytes > t->longest)
        t->longest = (uint32_t)size_bytes;
}

struct elf_addition {
    struct symbol_table *table;
    const struct elf *elf;
};

static bool is_code(const struct elf *e, const struct elf_symbol *s)
{
    if (s->type == ELF_SYMBOL_FUNCTION || s->type == ELF_SYMBOL_IFUNC)
        return s->section < SECTION_INDEX_SPECIAL || s->section == SECTION_INDEX_EXTENDED;
    return s->type == ELF_SYMBOL_UNTYPED && s->section < e->section_count &&
           e->sections[s->section].flags & SECTION_EXECUTABLE;
}

static bool add_symbol(void *user, const struct elf_symbol *s)
{
    struct elf_addition *addition = user;
    struct symbol_table *t = addition->table;
    if (s->name == 0 || s->addr == 0 || (s->size_bytes == 0 && !t->unsized_allowed) ||
        !is_code(addition->elf, s))
        return true;
    uint8_t rank = s->binding == ELF_BINDING_GLOBAL ? 0 : s->binding == ELF_BINDING_WEAK ? 1 : RANK_LOCAL;
    if (s->type == ELF_SYMBOL_UNTYPED)
        rank += 3;
    if (s->size_bytes == 0)
        rank += 6;
    symbol_table_add(t, s->addr, s->size_bytes, s->name, rank);
    return true;
}

bool symbol_table_add_elf(struct symbol_table *t, const struct elf *e, const struct source *symbols,
                          struct error *err)
{
    struct elf_addition addition = { t, e };
    return elf_symbols(symbols, add_symbol, &addition, err);
}

static int compare_rows(const void *a, const void *b)
{
    const struct symbol_row *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Three passes of 11 bits over the start; several times faster than comparing. */
static void radix_sort(struct symbol_row *rows, size_t count)
{
    struct symbol_row *other = mem_alloc(count, sizeof *other);
    struct symbol_row *from = rows, *to = other;
    for (unsigned shift = 0; shift < 32; shift += RADIX_BITS) {
        size_t places[1 << RADIX_BITS] = { 0 };
        for (size_t i = 0; i < count; i++)
            places[from[i].start >> shift & ((1 << RADIX_BITS) - 1)]++;
        size_t place = 0;
        for (size_t i = 0; i < 1 << RADIX_BITS; i++) {
            size_t here = places[i];
            places[i] = place;
            place += here;
        }
        for (size_t i = 0; i < count; i++)
            to[places[from[i].start >> shift & ((1 << RADIX_BITS) - 1)]++] = from[i];
        struct symbol_row *swap = from;
        from = to;
        to = swap;
    }
    memcpy(rows, from, count * sizeof *rows); /* three passes end in `other` */
    free(other);
}

void symbol_table_sort(struct symbol_table *t)
{
    if (t->count >= RADIX_ROWS_MIN)
        radix_sort(t->rows, t->count);
    else if (t->count > 1)
        qsort(t->rows, t->count, sizeof *t->rows, compare_rows);
    if (t->count) { /* it lives as long as its image: no spare room */
        t->rows = mem_resize(t->rows, t->count, sizeof *t->rows);
        t->capacity = t->count;
    }
}

/* The number of rows that start at or before `start`. */
static size_t rows_up_to(const struct symbol_table *t, uint32_t start)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->rows[middle].start <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * The last row that reaches over `wanted`, or count. Only the nearest start may be without a size;
 * one farther away would claim what belongs to its neighbour.
 */
static size_t covering_row(const struct symbol_table *t, uint32_t wanted)
{
    size_t nearest = rows_up_to(t, wanted);
    size_t unsized = t->count;
    for (size_t back = 0; back < BACK_MAX && back < nearest; back++) {
        const struct symbol_row *row = &t->rows[nearest - 1 - back];
        uint32_t distance = wanted - row->start;
        if (distance < row->size_bytes)
            return nearest - 1 - back;
        if (row->size_bytes == 0 && row->start == t->rows[nearest - 1].start)
            unsized = nearest - 1 - back;
        if (distance >= t->longest && row->start != t->rows[nearest - 1].start)
            break;
    }
    return unsized;
}

static unsigned leading_underscores(const char *name)
{
    unsigned count = 0;
    while (name[count] == '_')
        count++;
    /* _Z and _R begin a mangled name */
    return count && (name[count] == 'Z' || name[count] == 'R') ? 0 : count;
}

static bool is_mapping_symbol(const char *name)
{
    /* $x and $d tell code from data on aarch64 */
    return name[0] == '$' && (name[1] == 'x' || name[1] == 'd') && (name[2] == 0 || name[2] == '.');
}

bool symbol_table_find(const struct symbol_table *t, uint64_t addr, const struct source *strings,
                       bool by_rank_only, struct buffer *name, struct symbol_match *out)
{
    if (addr < t->base || addr - t->base > UINT32_MAX)
        return false;
    uint32_t wanted = (uint32_t)(addr - t->base);
    size_t found = covering_row(t, wanted);
    if (found == t->count)
        return false;
    size_t first = found;
    while (first > 0 && t->rows[first - 1].start == t->rows[found].start && found - first < ALIASES_MAX)
        first--;
    bool sized = t->rows[found].size_bytes != 0, any = false;
    unsigned best = UINT32_MAX;
    uint32_t best_name = 0;
    for (size_t i = first; i < t->count && i - first < ALIASES_MAX; i++) {
        const struct symbol_row *row = &t->rows[i];
        if (row->start != t->rows[found].start)
            break;
        if (sized && wanted - row->start >= row->size_bytes)
            continue;
        if (!elf_string(strings, row->name, name) || is_mapping_symbol((const char *)name->data))
            continue;
        unsigned score = row->rank * 16u;
        if (!by_rank_only)
            score = row->rank / RANK_LOCAL * UINT16_MAX + row->rank % RANK_LOCAL +
                    leading_underscores((const char *)name->data) * 16u;
        if (!any || score < best) {
            any = true;
            best = score;
            best_name = row->name;
        }
    }
    if (!any || !elf_string(strings, best_name, name))
        return false;
    *out = (struct symbol_match){ t->base + t->rows[found].start, t->rows[found].size_bytes };
    return true;
}
