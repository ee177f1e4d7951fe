/*
 * symbol_table: the functions that one symbol source of an image names, sorted by address.
 *
 * Holds 16 bytes for each symbol and no names: a name is read from the string table when its symbol
 * is found.
 */
#ifndef CLRPERF_SYMBOLIZE_SYMBOL_TABLE_H
#define CLRPERF_SYMBOLIZE_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/source.h"
#include "read/elf.h"

struct symbol_row {
    uint32_t start; /* from the table's base */
    uint32_t size_bytes;
    uint32_t name; /* offset in the strings */
    uint8_t rank;  /* of two names for one address the lower is better */
};

struct symbol_table {
    uint64_t base;
    struct symbol_row *rows;
    size_t count, capacity;
    uint32_t longest; /* largest size of a row */
    bool unsized_allowed;
};

/*
 * `unsized_allowed`: a symbol without a size reaches to the next one. Assembly code in a .symtab has
 * such symbols; a .dynsym knows too few functions for that to be true.
 */
void symbol_table_init(struct symbol_table *t, uint64_t base, bool unsized_allowed);
void symbol_table_done(struct symbol_table *t);
void symbol_table_add(struct symbol_table *t, uint64_t addr, uint64_t size_bytes, uint32_t name,
                      uint8_t rank);
/* Adds the functions of an ELF symbol table. `e` says which sections hold code. */
bool symbol_table_add_elf(struct symbol_table *t, const struct elf *e, const struct source *symbols,
                          struct error *err);
/* Must be called between adding and finding. */
void symbol_table_sort(struct symbol_table *t);

struct symbol_match {
    uint64_t start, size_bytes; /* size 0: not known */
};
/*
 * The symbol around `addr`. Its name is read from `strings` into `name`, NUL-ended. Of several names
 * for one address a global one wins, then the one with the fewest leading underscores, then the
 * better rank; `by_rank_only` looks at the rank alone.
 */
bool symbol_table_find(const struct symbol_table *t, uint64_t addr, const struct source *strings,
                       bool by_rank_only, struct buffer *name, struct symbol_match *out);

#endif
