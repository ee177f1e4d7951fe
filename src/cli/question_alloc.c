#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analyse/alloc_stats.h"
#include "base/units.h"
#include "cli/json_put.h"
#include "cli/question_groups.h"
#include "cli/standard_output.h"
#include "clr/runtime_events.h"

enum { ALLOC_LEVEL = 5, CELL_MAX = 64 };

extern const struct question question_alloc;

struct alloc_answer {
    struct question_scope scope;
    struct alloc_stats stats;
    struct event_groups groups;
};

static const char *source_name(enum alloc_source source)
{
    static const char *const names[] = { "none", "ticks", "sampled", "mixed" };
    return names[source];
}

static uint64_t rounded(double value)
{
    return value > 0 ? (uint64_t)llround(value) : 0;
}

static void put_sum(struct json_writer *j, const struct alloc_answer *a, const struct event_sum *sum)
{
    double low, high;
    alloc_stats_bounds(&a->stats, sum, &low, &high);
    json_put_u64(j, "bytes", rounded(sum->weight));
    json_put_known_u64(j, "count", sum->objects > 0, rounded(sum->objects));
    json_put_u64(j, "bytes_low", rounded(low));
    json_put_u64(j, "bytes_high", rounded(high));
    json_put_u64(j, "samples", sum->count);
}

static void put_totals(struct json_writer *j, const struct alloc_answer *a)
{
    double seconds = (double)a->scope.time.duration_ns / 1e9, bytes = a->stats.tally.total.weight;
    json_put_object(j, "totals");
    put_sum(j, a, &a->stats.tally.total);
    json_put_known_double(j, "bytes_per_s", seconds > 0, seconds > 0 ? bytes / seconds : 0);
    for (unsigned i = 0; i < ALLOC_KINDS; i++) {
        char key[CELL_MAX];
        snprintf(key, sizeof key, "%s_bytes", alloc_kind_name(i));
        json_put_u64(j, key, rounded(a->stats.bytes_of_kind[i]));
    }
    json_put_string(j, "source", source_name(a->stats.source));
    json_put_u64(j, "lost", question_lost(&a->scope));
    json_put_u64(j, "malformed", a->stats.malformed);
    json_end_object(j);
}

static void put_row(struct json_writer *j, const struct alloc_answer *a, const struct tally_group *group)
{
    const struct tally_row *heaviest = event_group_row(&a->groups, group, 0);
    double all = a->stats.tally.total.weight;
    json_begin_object(j);
    question_groups_json_key(j, &a->scope, &a->groups, group, "type");
    put_sum(j, a, &group->sum);
    json_put_known_double(j, "share", all > 0, all > 0 ? group->sum.weight / all : 0);
    json_put_string(j, "heap", question_groups_detail(&a->groups, heaviest));
    question_json_stack(j, &a->stats.stacks, heaviest->node);
    json_put_array(j, "stacks");
    for (size_t i = 0; i < question_groups_places(a->scope.call->values, group); i++) {
        const struct tally_row *row = event_group_row(&a->groups, group, i);
        json_begin_object(j);
        json_put_string(j, "type", question_groups_text(&a->groups, row));
        json_put_string(j, "heap", question_groups_detail(&a->groups, row));
        put_sum(j, a, &row->sum);
        question_json_stack(j, &a->stats.stacks, row->node);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static bool put_json(const struct alloc_answer *a, size_t rows, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    question_json_begin(&j, &text, &a->scope, "clrperf.report.alloc/1");
    put_totals(&j, a);
    question_groups_json_by(&j, &a->groups, "type");
    json_put_array(&j, "rows");
    for (size_t i = 0; i < rows; i++)
        put_row(&j, a, &a->groups.rows[i]);
    json_end_array(&j);
    return question_json_end(&j, err);
}

static bool put_csv(const struct alloc_answer *a, size_t rows, struct error *err)
{
    struct buffer out, stack;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&stack, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv, "pid,type,heap,bytes,bytes_low,bytes_high,count,samples,stack");
    for (size_t i = 0; i < rows; i++) {
        const struct tally_group *group = &a->groups.rows[i];
        const struct tally_row *row = event_group_row(&a->groups, group, 0);
        double low, high;
        alloc_stats_bounds(&a->stats, &group->sum, &low, &high);
        buffer_clear(&stack);
        question_stack_csv(&a->stats.stacks, row->node, &stack);
        buffer_u8(&stack, 0);
        csv_u64(&csv, a->scope.trace->processes.rows[row->process].pid);
        csv_string(&csv, question_groups_text(&a->groups, row));
        csv_string(&csv, question_groups_detail(&a->groups, row));
        csv_u64(&csv, rounded(group->sum.weight));
        csv_u64(&csv, rounded(low));
        csv_u64(&csv, rounded(high));
        csv_known_u64(&csv, group->sum.objects > 0, rounded(group->sum.objects));
        csv_u64(&csv, group->sum.count);
        csv_string(&csv, (const char *)stack.data);
        csv_end_row(&csv);
    }
    buffer_done(&stack);
    return question_print(&out, err);
}

static void put_head(const struct alloc_answer *a, struct buffer *out)
{
    const struct event_sum *all = &a->stats.tally.total;
    double seconds = (double)a->scope.time.duration_ns / 1e9;
    question_head(&a->scope, out);
    buffer_format(out, "allocated   %s", units_size(rounded(all->weight)).text);
    if (seconds > 0)
        buffer_format(out, " (%s/s)", units_size(rounded(all->weight / seconds)).text);
    const char *comma = ": ";
    for (unsigned i = 0; i < ALLOC_KINDS; i++) {
        if (a->stats.bytes_of_kind[i] <= 0)
            continue;
        buffer_format(out, "%s%s objects %s", comma, alloc_kind_name(i),
                      units_size(rounded(a->stats.bytes_of_kind[i])).text);
        comma = ", ";
    }
    buffer_format(out, "\nestimated   from %s %s; +- is where the truth lies in 19 of 20 cases\n\n",
                  units_count(all->count).text,
                  a->stats.source == ALLOC_SOURCE_SAMPLED ? "sampled objects" : "ticks of about 100 kB");
    if (a->stats.source == ALLOC_SOURCE_SAMPLED && !a->stats.ticks)
        return;
    if (a->stats.samples && a->stats.ticks)
        buffer_string(out, "note        sampling switches allocation ticks off in the whole process\n\n");
}

static void add_row(const struct alloc_answer *a, const struct tally_group *group, struct text_table *table,
                    struct buffer *cell)
{
    const struct tally_row *heaviest = event_group_row(&a->groups, group, 0);
    char text[CELL_MAX];
    double low, high;
    alloc_stats_bounds(&a->stats, &group->sum, &low, &high);
    text_table_add(table, units_size(rounded(group->sum.weight)).text);
    snprintf(text, sizeof text, "%.1f %%",
             group->sum.weight > 0 ? (high - group->sum.weight) * 100 / group->sum.weight : 0);
    text_table_add(table, text);
    question_groups_add_share(table, group->sum.weight, a->stats.tally.total.weight);
    text_table_add(table, group->sum.objects > 0 ? units_count(rounded(group->sum.objects)).text : NULL);
    text_table_add(table, question_groups_detail(&a->groups, heaviest));
    question_groups_name(&a->scope, &a->groups, group, cell);
    text_table_add(table, (const char *)cell->data);
    buffer_clear(cell);
    if (a->groups.by == TALLY_BY_TEXT || a->groups.by == TALLY_BY_PROCESS)
        question_stack_text(&a->stats.stacks, heaviest->node, 2, cell);
    else
        buffer_string(cell, intern_text(&a->stats.tally.texts, heaviest->text));
    buffer_u8(cell, 0);
    text_table_add(table, (const char *)cell->data);
}

static bool put_text(const struct alloc_answer *a, size_t rows, struct error *err)
{
    static const char *const names[TALLY_BYS] = { "type", "stack", "function", "process" };
    bool by_stack = a->groups.by == TALLY_BY_STACK || a->groups.by == TALLY_BY_FUNCTION;
    const struct text_column columns[] = {
        { "bytes", TEXT_RIGHT },
        { "+-", TEXT_RIGHT },
        { "%", TEXT_RIGHT },
        { "objects", TEXT_RIGHT },
        { "heap", TEXT_LEFT },
        { names[a->groups.by], TEXT_LEFT },
        { by_stack ? "mostly" : "mostly in", TEXT_LEFT },
    };
    struct buffer out, cell;
    struct text_table table;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&cell, OUTPUT_BYTES_MAX);
    put_head(a, &out);
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < rows; i++)
        add_row(a, &a->groups.rows[i], &table, &cell);
    if (rows)
        text_table_print(&table, stdout_width(), &out);
    question_groups_more(&a->groups, rows, &out);
    text_table_done(&table);
    buffer_done(&cell);
    return question_print(&out, err);
}

static bool alloc_check(const struct report_values *v, struct error *err)
{
    return question_groups_check(v, "type", err);
}

static bool alloc_run(struct question_call *call, struct error *err)
{
    struct alloc_answer a;
    if (!question_scope_init(&a.scope, call, err))
        return false;
    alloc_stats_init(&a.stats, a.scope.trace, a.scope.raw_names, a.scope.from_ns, a.scope.to_ns);
    bool ok = question_was_asked(&a.scope, &question_alloc, a.stats.any, err);
    if (ok) {
        event_groups_init(&a.groups, &a.stats.tally, question_groups_by(call->values, "type"));
        size_t rows = question_groups_rows(call->values, &a.groups);
        ok = call->values->json  ? put_json(&a, rows, err)
             : call->values->csv ? put_csv(&a, rows, err)
                                 : put_text(&a, rows, err);
        event_groups_done(&a.groups);
    }
    alloc_stats_done(&a.stats);
    return ok;
}

static enum import_want alloc_wants(void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return alloc_stats_wants(provider, event_id) ? IMPORT_PAYLOADS : IMPORT_NOTHING;
}

const struct question question_alloc = {
    .name = "alloc",
    .summary = "what was allocated, by type, stack or function, with error bars",
    .names_code = true,
    .has_csv = true,
    .wants = alloc_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "alloc",
    .keywords = RUNTIME_KEYWORD_GC,
    .level = ALLOC_LEVEL,
    .check = alloc_check,
    .run = alloc_run,
};
