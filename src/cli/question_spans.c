#include "cli/question_spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyse/span_lanes.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "cli/csv_text.h"
#include "cli/json_put.h"
#include "cli/span_course.h"
#include "cli/span_inside.h"
#include "cli/standard_output.h"
#include "cli/text_fit.h"
#include "cli/text_table.h"

enum { SPAN_ROWS_SHOWN = 30, SLOWEST_SHOWN = 10, SLOWEST_OF_ROW = 5, CELL_MAX = 64 };

static const char *text_of(const struct spans_answer *a, uint32_t id)
{
    const char *text = intern_text(&a->table->texts, id);
    return *text ? text : NULL;
}

static size_t rows_shown(const struct spans_answer *a, const struct span_groups *groups)
{
    const struct report_values *v = a->scope.call->values;
    size_t top = report_top(v, v->json || v->csv ? 0 : SPAN_ROWS_SHOWN);
    return top && top < groups->count ? top : groups->count;
}

static uint64_t at_ns(const struct span_groups *groups, const struct span_group *group, double share)
{
    return span_ns(span_group_at(groups, group, share));
}

static void put_slowest(struct json_writer *j, const struct spans_answer *a, const struct span_groups *groups,
                        const struct span_group *group)
{
    const struct span_row *rows[SLOWEST_OF_ROW];
    struct span_course courses[SLOWEST_OF_ROW];
    size_t count = 0;
    for (; count < SLOWEST_OF_ROW && count < group->count; count++)
        rows[count] = &a->table->rows[groups->order[group->first + group->count - 1 - count]];
    if (a->accounts)
        span_courses_find(a->accounts, rows, count, courses);
    json_put_array(j, "slowest");
    for (size_t i = 0; i < count; i++) {
        const struct span_row *row = rows[i];
        json_begin_object(j);
        json_put_string(j, "name", text_of(a, row->name));
        question_json_process(j, &a->scope, row->process);
        question_json_thread(j, &a->scope, "thread", row->thread);
        json_put_double(j, "start_s", capture_time_s(&a->scope.time, row->start_ns));
        json_put_double(j, "duration_ms", question_ms(span_ns(row)));
        json_put_double(j, "gc_ms", question_ms(row->gc_ns));
        json_put_known_u64(j, "status", row->status != SPAN_STATUS_NONE, (uint64_t)row->status);
        json_put_bool(j, "failed", row->failed);
        if (a->accounts) {
            const struct span_account *inside = &a->accounts->rows[row - a->table->rows];
            span_inside_json(a->accounts, inside, j);
            json_put_string(j, "course", inside->known[SPAN_THREADS_UNKNOWN] ? NULL : courses[i].letters);
        }
        json_end_object(j);
    }
    json_end_array(j);
}

static struct span_account group_account(const struct spans_answer *a, const struct span_groups *groups,
                                         const struct span_group *group)
{
    struct span_account sum = { 0 };
    for (uint64_t i = 0; i < group->count; i++)
        span_account_add(&sum, &a->accounts->rows[groups->order[group->first + i]]);
    return sum;
}

static void put_row(struct json_writer *j, const struct spans_answer *a, const struct span_groups *groups,
                    const struct span_group *group)
{
    json_begin_object(j);
    json_put_string(j, "kind", text_of(a, group->kind));
    json_put_string(j, "name", text_of(a, group->name));
    json_put_u64(j, "count", group->count);
    json_put_u64(j, "failed", group->failed);
    json_put_double(j, "total_ms", question_ms(group->total_ns));
    json_put_double(j, "mean_ms", question_ms(group->total_ns) / (double)group->count);
    json_put_double(j, "p50_ms", question_ms(at_ns(groups, group, 0.5)));
    json_put_double(j, "p90_ms", question_ms(at_ns(groups, group, 0.9)));
    json_put_double(j, "p99_ms", question_ms(at_ns(groups, group, 0.99)));
    json_put_double(j, "max_ms", question_ms(at_ns(groups, group, 1)));
    json_put_double(j, "gc_ms", question_ms(group->gc_ns));
    if (a->accounts) {
        struct span_account sum = group_account(a, groups, group);
        span_inside_json(a->accounts, &sum, j);
    }
    put_slowest(j, a, groups, group);
    json_end_object(j);
}

static bool put_json(const struct spans_answer *a, const struct span_groups *groups, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    uint64_t failed = 0;
    for (size_t i = 0; i < groups->count; i++)
        failed += groups->rows[i].failed;
    question_json_begin(&j, &text, &a->scope, a->schema);
    json_put_object(&j, "totals");
    json_put_u64(&j, "count", a->table->count);
    json_put_u64(&j, "failed", failed);
    json_put_u64(&j, "unfinished", a->table->unfinished);
    json_put_u64(&j, "unbegun", a->table->unbegun);
    json_put_u64(&j, "by_thread", a->by_thread);
    json_put_u64(&j, "lost", question_lost(&a->scope));
    json_put_u64(&j, "malformed", a->malformed);
    json_end_object(&j);
    json_put_array(&j, "rows");
    for (size_t i = 0; i < rows_shown(a, groups); i++)
        put_row(&j, a, groups, &groups->rows[i]);
    json_end_array(&j);
    return question_json_end(&j, err);
}

static int by_duration(const void *a, const void *b)
{
    const struct span_row *x = *(const struct span_row *const *)a, *y = *(const struct span_row *const *)b;
    if (span_ns(x) != span_ns(y))
        return span_ns(x) > span_ns(y) ? -1 : 1;
    return (x > y) - (x < y);
}

static int by_end(const void *a, const void *b)
{
    const struct span_row *x = *(const struct span_row *const *)a, *y = *(const struct span_row *const *)b;
    return (x > y) - (x < y);
}

/* Those that --top wants, the longest, in the order they ended. The caller frees. */
static const struct span_row **chosen_rows(const struct spans_answer *a, size_t *out_count)
{
    size_t count = a->table->count, top = report_top(a->scope.call->values, 0);
    const struct span_row **rows = mem_alloc(count + 1, sizeof(struct span_row *));
    for (size_t i = 0; i < count; i++)
        rows[i] = &a->table->rows[i];
    if (top && top < count) {
        qsort(rows, count, sizeof(struct span_row *), by_duration);
        count = top;
        qsort(rows, count, sizeof(struct span_row *), by_end);
    }
    *out_count = count;
    return rows;
}

/* A row for each span. */
static bool put_csv(const struct spans_answer *a, struct error *err)
{
    struct buffer out;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    buffer_string(&out, "pid,thread,kind,name,start_s,duration_ms,gc_ms,status,failed");
    csv_titles(&csv, a->accounts ? span_inside_titles : "");
    size_t count;
    AUTO_FREE const struct span_row **rows = chosen_rows(a, &count);
    for (size_t i = 0; i < count; i++) {
        const struct span_row *row = rows[i];
        csv_u64(&csv, a->scope.trace->processes.rows[row->process].pid);
        csv_known_u64(&csv, row->thread != 0, a->scope.trace->threads.rows[row->thread].tid);
        csv_string(&csv, text_of(a, row->kind));
        csv_string(&csv, text_of(a, row->name));
        csv_double(&csv, capture_time_s(&a->scope.time, row->start_ns));
        csv_double(&csv, question_ms(span_ns(row)));
        csv_double(&csv, question_ms(row->gc_ns));
        csv_known_u64(&csv, row->status != SPAN_STATUS_NONE, (uint64_t)row->status);
        csv_u64(&csv, row->failed);
        if (a->accounts)
            span_inside_csv(a->accounts, &a->accounts->rows[row - a->table->rows], &csv);
        csv_end_row(&csv);
    }
    return question_print(&out, err);
}

static void put_head(const struct spans_answer *a, struct buffer *out)
{
    double seconds = (double)a->scope.shown.duration_ns / 1e9;
    question_head(&a->scope, out);
    buffer_format(out, "%-11s %s", a->what, a->table->count ? units_count(a->table->count).text : "none");
    if (a->table->count && seconds > 0)
        buffer_format(out, " (%.1f a second)", (double)a->table->count / seconds);
    if (a->table->unfinished)
        buffer_format(out, "; %s more did not end", units_count(a->table->unfinished).text);
    if (a->table->unbegun)
        buffer_format(out, "; %s more had begun before", units_count(a->table->unbegun).text);
    if (a->by_thread)
        buffer_format(out, "\nunreliable  %s have no activity: begins and ends are matched by thread; %s",
                      units_count(a->by_thread).text, a->apart);
    buffer_string(out, "\n\n");
    question_wrap(out, 0);
}

static void add_row(const struct spans_answer *a, const struct span_groups *groups,
                    const struct span_group *group, struct text_table *table)
{
    static const double shares[] = { 0.5, 0.9, 0.99, 1 };
    const struct span_row *slowest = span_group_at(groups, group, 1);
    char cell[CELL_MAX];
    text_table_add(table, units_count(group->count).text);
    text_table_add(table, group->failed ? units_count(group->failed).text : NULL);
    text_table_add(table, units_duration(group->total_ns).text);
    text_table_add(table, units_duration(group->total_ns / group->count).text);
    for (size_t i = 0; i < ARRAY_LEN(shares); i++)
        text_table_add(table, units_duration(at_ns(groups, group, shares[i])).text);
    snprintf(cell, sizeof cell, "%.3f", capture_time_s(&a->scope.time, slowest->start_ns));
    text_table_add(table, cell);
    text_table_add(table, group->gc_ns ? units_duration(group->gc_ns).text : NULL);
    text_table_add(table, text_of(a, group->kind));
    text_table_add(table, text_of(a, group->name));
}

/* How it is known who worked for them. */
static void put_threads(const struct spans_answer *a, struct buffer *out)
{
    const struct span_account *total = &a->accounts->total;
    uint64_t told = total->known[SPAN_THREADS_TOLD];
    size_t from = out->size;
    buffer_format(out, "\ninside one of them, in the mean; which threads worked for it %s",
                  told == a->table->count ? "was told" : "is known of ");
    if (told != a->table->count)
        buffer_format(out, "%s, assumed of %s, not known of %s", units_count(told).text,
                      units_count(total->known[SPAN_THREADS_ASSUMED]).text,
                      units_count(total->known[SPAN_THREADS_UNKNOWN]).text);
    if (a->accounts->left_out)
        buffer_format(out,
                      "\n%s are not looked into: %u others of the same activity or thread went on meanwhile",
                      units_count(a->accounts->left_out).text, SPAN_LANES_MAX);
    buffer_string(out, "\n\n");
    text_wrap(out, from, 0, stdout_width());
}

enum { INSIDE_LEAD = 2, INSIDE_NAMES = 2, INSIDE_COLUMNS = INSIDE_LEAD + SPAN_INSIDE_COLUMNS + INSIDE_NAMES };

static void init_inside(const struct spans_answer *a, const char *first, const char *second,
                        struct text_column columns[INSIDE_COLUMNS], struct text_table *table)
{
    columns[0] = (struct text_column){ first, TEXT_RIGHT };
    columns[1] = (struct text_column){ second, TEXT_RIGHT };
    size_t count = INSIDE_LEAD + span_inside_columns(a->accounts, columns + INSIDE_LEAD);
    columns[count++] = (struct text_column){ "kind", TEXT_LEFT };
    columns[count++] = (struct text_column){ a->name, TEXT_LEFT };
    text_table_init(table, columns, count);
}

static void put_inside_groups(const struct spans_answer *a, const struct span_groups *groups,
                              struct buffer *out)
{
    struct text_column columns[INSIDE_COLUMNS];
    struct text_table table;
    put_threads(a, out);
    init_inside(a, "count", "mean", columns, &table);
    size_t shown = 0, most = rows_shown(a, groups); /* what is not known of is not among them */
    for (size_t i = 0; i < groups->count && shown < most; i++) {
        const struct span_group *group = &groups->rows[i];
        struct span_account sum = group_account(a, groups, group);
        if (sum.known[SPAN_THREADS_UNKNOWN] == group->count)
            continue;
        shown++;
        text_table_add(&table, units_count(group->count).text);
        text_table_add(&table, units_duration(group->total_ns / group->count).text);
        span_inside_cells(a->accounts, &sum, group->count, &table);
        text_table_add(&table, text_of(a, group->kind));
        text_table_add(&table, text_of(a, group->name));
    }
    text_table_print(&table, stdout_width(), out);
    text_table_done(&table);
}

/* From begin to end of each. */
static void put_courses(const struct spans_answer *a, const struct span_row *const *rows, size_t count,
                        struct buffer *out)
{
    const struct text_column columns[] = {
        { "at s", TEXT_RIGHT }, { "took", TEXT_RIGHT }, { "course", TEXT_LEFT }, { a->name, TEXT_LEFT }
    };
    struct span_course courses[SLOWEST_SHOWN];
    struct text_table table;
    char cell[CELL_MAX];
    span_courses_find(a->accounts, rows, count, courses);
    size_t from = out->size;
    buffer_string(out, "\nfrom begin to end, what most of each part was: ");
    span_courses_legend(courses, count, out);
    buffer_string(out, "\n\n");
    text_wrap(out, from, 0, stdout_width());
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        snprintf(cell, sizeof cell, "%.3f", capture_time_s(&a->scope.time, rows[i]->start_ns));
        text_table_add(&table, cell);
        text_table_add(&table, units_duration(span_ns(rows[i])).text);
        text_table_add(&table, courses[i].letters);
        text_table_add(&table, text_of(a, rows[i]->name));
    }
    text_table_print(&table, stdout_width(), out);
    text_table_done(&table);
}

static void put_inside_slowest(const struct spans_answer *a, struct buffer *out)
{
    AUTO_FREE const struct span_row **rows = mem_alloc(a->table->count + 1, sizeof *rows);
    struct text_column columns[INSIDE_COLUMNS];
    struct text_table table;
    char cell[CELL_MAX];
    size_t count = 0;
    for (size_t i = 0; i < a->table->count; i++)
        if (!a->accounts->rows[i].known[SPAN_THREADS_UNKNOWN])
            rows[count++] = &a->table->rows[i];
    qsort(rows, count, sizeof(struct span_row *), by_duration);
    buffer_string(out,
                  count < a->table->count ? "\nthe slowest of which it is known\n\n" : "\nthe slowest\n\n");
    init_inside(a, "at s", "took", columns, &table);
    for (size_t i = 0; i < count && i < SLOWEST_SHOWN; i++) {
        snprintf(cell, sizeof cell, "%.3f", capture_time_s(&a->scope.time, rows[i]->start_ns));
        text_table_add(&table, cell);
        text_table_add(&table, units_duration(span_ns(rows[i])).text);
        span_inside_cells(a->accounts, &a->accounts->rows[rows[i] - a->table->rows], 1, &table);
        text_table_add(&table, text_of(a, rows[i]->kind));
        text_table_add(&table, text_of(a, rows[i]->name));
    }
    text_table_print(&table, stdout_width(), out);
    text_table_done(&table);
    put_courses(a, rows, count < SLOWEST_SHOWN ? count : SLOWEST_SHOWN, out);
}

static bool put_text(const struct spans_answer *a, const struct span_groups *groups, struct error *err)
{
    const struct text_column columns[] = {
        { "count", TEXT_RIGHT },    { "failed", TEXT_RIGHT, 1 }, { "total", TEXT_RIGHT, 2 },
        { "mean", TEXT_RIGHT },     { "50 %", TEXT_RIGHT, 4 },   { "90 %", TEXT_RIGHT, 5 },
        { "99 %", TEXT_RIGHT },     { "slowest", TEXT_RIGHT },   { "at s", TEXT_RIGHT, 6 },
        { "in GC", TEXT_RIGHT, 3 }, { "kind", TEXT_LEFT },       { a->name, TEXT_LEFT },
    };
    struct buffer out;
    struct text_table table;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    put_head(a, &out);
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < rows_shown(a, groups); i++)
        add_row(a, groups, &groups->rows[i], &table);
    if (table.cells)
        text_table_print(&table, stdout_width(), &out);
    if (rows_shown(a, groups) < groups->count)
        buffer_format(&out, "... %zu more (--top 0 shows all)\n", groups->count - rows_shown(a, groups));
    text_table_done(&table);
    if (a->accounts && span_inside_known(a->accounts)) {
        put_inside_groups(a, groups, &out);
        put_inside_slowest(a, &out);
    }
    return question_print(&out, err);
}

bool question_spans_put(const struct spans_answer *a, struct error *err)
{
    const struct report_values *v = a->scope.call->values;
    struct span_groups groups;
    if (v->csv)
        return put_csv(a, err);
    span_groups_init(&groups, a->table);
    bool ok = v->json ? put_json(a, &groups, err) : put_text(a, &groups, err);
    span_groups_done(&groups);
    return ok;
}
