#include "cli/text_table.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf8.h"
#include "cli/text_fit.h"

enum {
    TABLE_BYTES_MAX = 64 << 20,
    GAP = 2,
    LAST_LEAST = 10, /* columns of the last column, */
    WORDS_LEAST = 8  /* and of others that hold words */
};

void text_table_init(struct text_table *table, const struct text_column *columns, size_t column_count)
{
    *table = (struct text_table){ .columns = columns, .column_count = column_count };
    buffer_init(&table->text, TABLE_BYTES_MAX);
}

void text_table_done(struct text_table *table)
{
    buffer_done(&table->text);
}

void text_table_add(struct text_table *table, const char *text)
{
    if (!text || !*text)
        text = "-";
    utf8_escape(&table->text, span_of(text, strlen(text)));
    buffer_u8(&table->text, 0);
    table->cells++;
}

static void print_cell(struct buffer *out, struct span cell, enum text_align align, size_t width, bool last)
{
    size_t used = utf8_width(cell);
    if (align == TEXT_RIGHT && used < width)
        buffer_format(out, "%*s", (int)(width - used), "");
    text_cut(out, cell, width, align == TEXT_LEFT && !last);
    buffer_string(out, last ? "\n" : "  ");
}

static void widen(const struct text_table *table, size_t *widths)
{
    for (size_t i = 0; i < table->column_count; i++)
        widths[i] = strlen(table->columns[i].title);
    struct cursor c = cursor_over(buffer_span(&table->text));
    for (size_t i = 0; i < table->cells; i++) {
        size_t width = utf8_width(cursor_zstring(&c));
        size_t column = i % table->column_count;
        if (width > widths[column])
            widths[column] = width;
    }
}

static size_t width_of(const struct text_table *table, const size_t *widths)
{
    size_t sum = 0;
    for (size_t i = 0; i < table->column_count; i++)
        sum += widths[i] + (i ? GAP : 0);
    return sum;
}

/* The widest column of words that can be less wide, or none: all are. The last one gives way first. */
static size_t next_to_cut(const struct text_table *table, const size_t *widths)
{
    size_t last = table->column_count - 1, widest = table->column_count;
    if (widths[last] > LAST_LEAST)
        return last;
    for (size_t i = 0; i < last; i++)
        if (table->columns[i].align == TEXT_LEFT && widths[i] > WORDS_LEAST &&
            (widest == table->column_count || widths[i] > widths[widest]))
            widest = i;
    return widest;
}

static void fit(const struct text_table *table, size_t width_max, size_t *widths)
{
    size_t column;
    while (width_of(table, widths) > width_max && (column = next_to_cut(table, widths)) < table->column_count)
        widths[column]--;
}

void text_table_print(const struct text_table *table, size_t width_max, struct buffer *out)
{
    AUTO_FREE size_t *widths = mem_alloc(table->column_count, sizeof *widths);
    widen(table, widths);
    if (width_max)
        fit(table, width_max, widths);
    for (size_t i = 0; i < table->column_count; i++) {
        const char *title = table->columns[i].title;
        print_cell(out, span_of(title, strlen(title)), table->columns[i].align, widths[i],
                   i + 1 == table->column_count);
    }
    struct cursor c = cursor_over(buffer_span(&table->text));
    for (size_t i = 0; i < table->cells; i++) {
        size_t column = i % table->column_count;
        print_cell(out, cursor_zstring(&c), table->columns[column].align, widths[column],
                   column + 1 == table->column_count);
    }
}
