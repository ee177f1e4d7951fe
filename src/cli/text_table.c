#include "cli/text_table.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf8.h"

enum { TABLE_BYTES_MAX = 64 << 20, GAP = 2 };

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

/* As many characters of `cell` as fit into `width` columns. */
static struct span cut(struct span cell, size_t width)
{
    struct cursor c = cursor_over(cell);
    for (size_t i = 0; i < width && cursor_left(&c); i++)
        utf8_next(&c);
    return (struct span){ cell.data, c.pos };
}

static void print_cell(struct buffer *out, struct span cell, enum text_align align, size_t width, bool last)
{
    size_t used = utf8_width(cell);
    size_t pad = used < width ? width - used : 0;
    if (align == TEXT_RIGHT)
        buffer_format(out, "%*s", (int)pad, "");
    buffer_append(out, cell.data, cell.size);
    if (align == TEXT_LEFT && !last)
        buffer_format(out, "%*s", (int)pad, "");
    buffer_string(out, last ? "\n" : "  ");
}

static size_t widen(const struct text_table *table, size_t *widths)
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
    size_t before_last = 0;
    for (size_t i = 0; i + 1 < table->column_count; i++)
        before_last += widths[i] + GAP;
    return before_last;
}

void text_table_print(const struct text_table *table, size_t width_max, struct buffer *out)
{
    AUTO_FREE size_t *widths = mem_alloc(table->column_count, sizeof *widths);
    size_t before_last = widen(table, widths);
    size_t last_width = width_max > before_last + 10 ? width_max - before_last : width_max ? 10 : SIZE_MAX;
    for (size_t i = 0; i < table->column_count; i++) {
        const char *title = table->columns[i].title;
        print_cell(out, span_of(title, strlen(title)), table->columns[i].align, widths[i],
                   i + 1 == table->column_count);
    }
    struct cursor c = cursor_over(buffer_span(&table->text));
    for (size_t i = 0; i < table->cells; i++) {
        size_t column = i % table->column_count;
        bool last = column + 1 == table->column_count;
        struct span cell = cursor_zstring(&c);
        print_cell(out, last ? cut(cell, last_width) : cell, table->columns[column].align, widths[column],
                   last);
    }
}
