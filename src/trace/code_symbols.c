#include "trace/code_symbols.h"

#include <stdlib.h>

#include "base/mem.h"

void code_symbols_done(struct code_symbols *symbols)
{
    free(symbols->rows);
    *symbols = (struct code_symbols){ 0 };
}

void code_symbols_add(struct code_symbols *symbols, struct code_symbol symbol)
{
    if (!symbol.size_bytes || symbol.size_bytes > UINT64_MAX - symbol.addr)
        return;
    symbols->rows = mem_grow(symbols->rows, &symbols->capacity, symbols->count + 1, sizeof *symbols->rows);
    symbols->rows[symbols->count++] = symbol;
}

static int symbol_compare(const void *a, const void *b)
{
    const struct code_symbol *x = a, *y = b;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->size_bytes != y->size_bytes)
        return x->size_bytes < y->size_bytes ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

void code_symbols_settle(struct code_symbols *symbols)
{
    size_t kept = 0;
    if (symbols->count)
        qsort(symbols->rows, symbols->count, sizeof *symbols->rows, symbol_compare);
    for (size_t i = 0; i < symbols->count; i++) {
        struct code_symbol *last = kept ? &symbols->rows[kept - 1] : NULL;
        if (last && last->addr == symbols->rows[i].addr)
            continue;
        if (last && last->size_bytes > symbols->rows[i].addr - last->addr)
            last->size_bytes = symbols->rows[i].addr - last->addr;
        symbols->rows[kept++] = symbols->rows[i];
    }
    symbols->count = kept;
}

size_t code_symbols_from(const struct code_symbols *symbols, uint64_t addr)
{
    size_t low = 0, high = symbols->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols->rows[middle].addr < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
