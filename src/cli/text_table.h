/*
 * text_table: columns of text for a terminal, each as wide as it needs.
 *
 * Cells may hold text from outside: it is escaped.
 */
#ifndef CLRPERF_CLI_TEXT_TABLE_H
#define CLRPERF_CLI_TEXT_TABLE_H

#include <stddef.h>

#include "base/buffer.h"

enum text_align { TEXT_LEFT, TEXT_RIGHT };

struct text_column {
    const char *title;
    enum text_align align;
    unsigned char spare; /* 1 and up: it is left out where there is no room, the highest first; 0: it stays */
};

struct text_table {
    const struct text_column *columns; /* borrowed */
    size_t column_count;
    struct buffer text; /* the cells, escaped, each with a NUL behind */
    size_t cells;
};

void text_table_init(struct text_table *table, const struct text_column *columns, size_t column_count);
void text_table_done(struct text_table *table);
/* The next cell, left to right and row by row; NULL is "-". */
void text_table_add(struct text_table *table, const char *text);
/*
 * Appends the lines to `out`. To fit into `width_max` the last column is cut, then others of words; spare
 * ones are left out, which is said below, rather than that little stays of those. 0: no limit.
 */
void text_table_print(const struct text_table *table, size_t width_max, struct buffer *out);

#endif
