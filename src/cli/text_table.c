#include "cli/text_table.h"

#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf8.h"
#include "cli/text_fit.h"

enum {
    TABLE_BYTES_MAX = 64 << 20,
    GAP = 2,
    LAST_LEAST = 10,  /* columns of the last column, */
    WORDS_LEAST = 8,  /* and of others that hold words */
    LAST_WANTED = 24, /* rather than a spare column */
    WORDS_WANTED = 16,
    LEFT_OUT_INDENT = 2,
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

/* Width 0: it is left out. */
static size_t width_of(const struct text_table *table, const size_t *widths)
{
    size_t sum = 0;
    for (size_t i = 0; i < table->column_count; i++)
        sum += widths[i] ? widths[i] + (sum ? GAP : 0) : 0;
    return sum;
}

static bool has_words(const struct text_table *table, size_t column)
{
    return table->columns[column].align == TEXT_LEFT;
}

/* The widest column of words but the last one that can be less wide, or none. */
static size_t widest_words(const struct text_table *table, const size_t *widths)
{
    size_t last = table->column_count - 1, widest = table->column_count;
    for (size_t i = 0; i < last; i++)
        if (has_words(table, i) && widths[i] > WORDS_LEAST &&
            (widest == table->column_count || widths[i] > widths[widest]))
            widest = i;
    return widest;
}

/* The column that gives way next, or none. The last one says most, and is longest: first it, then the others.
 */
static size_t next_to_cut(const struct text_table *table, const size_t *widths)
{
    size_t last = table->column_count - 1, words = widest_words(table, widths), none = table->column_count;
    size_t more = has_words(table, last) ? widths[last] : 0;
    if (more > LAST_WANTED || (more > LAST_LEAST && words == none))
        return last;
    return words;
}

/* How wide the table is when its words are as short as they should be. */
static size_t wanted_width(const struct text_table *table, const size_t *widths)
{
    size_t last = table->column_count - 1, sum = width_of(table, widths);
    for (size_t i = 0; i <= last; i++) {
        size_t wanted = i == last ? LAST_WANTED : WORDS_WANTED;
        if (has_words(table, i) && widths[i] > wanted)
            sum -= widths[i] - wanted;
    }
    return sum;
}

/* The spare column that gives way first, or none. */
static size_t next_to_leave_out(const struct text_table *table, const size_t *widths)
{
    size_t found = table->column_count;
    for (size_t i = 0; i < table->column_count; i++)
        if (widths[i] && table->columns[i].spare &&
            (found == table->column_count || table->columns[i].spare > table->columns[found].spare))
            found = i;
    return found;
}

static void fit(const struct text_table *table, size_t width_max, size_t *widths)
{
    size_t column;
    while (wanted_width(table, widths) > width_max &&
           (column = next_to_leave_out(table, widths)) < table->column_count)
        widths[column] = 0;
    while (width_of(table, widths) > width_max && (column = next_to_cut(table, widths)) < table->column_count)
        widths[column]--;
}

static void put_left_out(const struct text_table *table, const size_t *widths, size_t width_max,
                         struct buffer *out)
{
    const char *comma = "no room for: ";
    size_t from = out->size;
    for (size_t i = 0; i < table->column_count; i++) {
        if (widths[i] || !table->columns[i].spare)
            continue;
        buffer_format(out, "%s%s", comma, table->columns[i].title);
        comma = ", ";
    }
    if (out->size == from)
        return;
    buffer_string(out, "; a wider terminal or a pipe shows all\n");
    text_wrap(out, from, LEFT_OUT_INDENT, width_max);
}

void text_table_print(const struct text_table *table, size_t width_max, struct buffer *out)
{
    AUTO_FREE size_t *widths = mem_alloc(table->column_count, sizeof *widths);
    widen(table, widths);
    if (width_max)
        fit(table, width_max, widths);
    size_t last = table->column_count - 1;
    while (last && !widths[last])
        last--;
    for (size_t i = 0; i <= last; i++) {
        const char *title = table->columns[i].title;
        if (widths[i] || i == last)
            print_cell(out, span_of(title, strlen(title)), table->columns[i].align, widths[i], i == last);
    }
    struct cursor c = cursor_over(buffer_span(&table->text));
    for (size_t i = 0; i < table->cells; i++) {
        size_t column = i % table->column_count;
        struct span cell = cursor_zstring(&c);
        if (widths[column] || column == last)
            print_cell(out, cell, table->columns[column].align, widths[column], column == last);
    }
    if (width_max)
        put_left_out(table, widths, width_max, out);
}
