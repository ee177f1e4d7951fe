#include <inttypes.h>
#include <stdio.h>

#include "analyse/exception_stats.h"
#include "base/units.h"
#include "cli/json_put.h"
#include "cli/question_groups.h"
#include "cli/standard_output.h"
#include "clr/runtime_events.h"

enum { EXCEPTION_KEYWORD = 0x8000, EXCEPTION_LEVEL = 2, THROWER_FRAMES = 2 };

extern const struct question question_exceptions;

struct exception_answer {
    struct question_scope scope;
    struct exception_stats stats;
    struct event_groups groups;
};

static double per_second(const struct exception_answer *a, uint64_t count)
{
    return a->scope.time.duration_ns ? (double)count * 1e9 / (double)a->scope.time.duration_ns : 0;
}

static void put_totals(struct json_writer *j, const struct exception_answer *a)
{
    uint64_t count = a->stats.tally.total.count;
    json_put_object(j, "totals");
    json_put_u64(j, "count", count);
    json_put_u64(j, "rethrown", a->stats.rethrown);
    json_put_u64(j, "nested", a->stats.nested);
    json_put_known_double(j, "per_s", a->scope.time.duration_ns, per_second(a, count));
    json_put_u64(j, "lost", question_lost(&a->scope));
    json_put_u64(j, "malformed", a->stats.malformed);
    json_end_object(j);
}

static void put_row(struct json_writer *j, const struct exception_answer *a, const struct tally_group *group)
{
    const struct tally_row *heaviest = event_group_row(&a->groups, group, 0);
    json_begin_object(j);
    question_groups_json_key(j, &a->scope, &a->groups, group, "type");
    json_put_string(j, "message", question_groups_detail(&a->groups, heaviest));
    json_put_u64(j, "count", group->sum.count);
    json_put_known_double(j, "per_s", a->scope.time.duration_ns, per_second(a, group->sum.count));
    json_put_double(j, "first_s", capture_time_s(&a->scope.time, group->sum.first_ns));
    json_put_double(j, "last_s", capture_time_s(&a->scope.time, group->sum.last_ns));
    question_json_stack(j, &a->stats.stacks, heaviest->node);
    json_put_u64(j, "site_count", group->count);
    json_put_array(j, "sites");
    for (size_t i = 0; i < question_groups_places(a->scope.call->values, group); i++) {
        const struct tally_row *row = event_group_row(&a->groups, group, i);
        json_begin_object(j);
        json_put_string(j, "type", question_groups_text(&a->groups, row));
        json_put_string(j, "message", question_groups_detail(&a->groups, row));
        json_put_u64(j, "count", row->sum.count);
        question_json_stack(j, &a->stats.stacks, row->node);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static bool put_json(const struct exception_answer *a, size_t rows, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    question_json_begin(&j, &text, &a->scope, "clrperf.report.exceptions/1");
    put_totals(&j, a);
    question_groups_json_by(&j, &a->groups, "type");
    json_put_array(&j, "rows");
    for (size_t i = 0; i < rows; i++)
        put_row(&j, a, &a->groups.rows[i]);
    json_end_array(&j);
    return question_json_end(&j, err);
}

/* A row for each site: type, message and stack. */
static bool put_csv(const struct exception_answer *a, size_t rows, struct error *err)
{
    struct buffer out, stack;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&stack, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv, "pid,type,message,count,first_s,last_s,stack");
    for (size_t i = 0; i < rows; i++) {
        const struct tally_group *group = &a->groups.rows[i];
        for (size_t k = 0; k < group->count; k++) {
            const struct tally_row *row = event_group_row(&a->groups, group, k);
            buffer_clear(&stack);
            question_stack_csv(&a->stats.stacks, row->node, &stack);
            buffer_u8(&stack, 0);
            csv_u64(&csv, a->scope.trace->processes.rows[row->process].pid);
            csv_string(&csv, question_groups_text(&a->groups, row));
            csv_string(&csv, question_groups_detail(&a->groups, row));
            csv_u64(&csv, row->sum.count);
            csv_double(&csv, capture_time_s(&a->scope.time, row->sum.first_ns));
            csv_double(&csv, capture_time_s(&a->scope.time, row->sum.last_ns));
            csv_string(&csv, (const char *)stack.data);
            csv_end_row(&csv);
        }
    }
    buffer_done(&stack);
    return question_print(&out, err);
}

static void put_head(const struct exception_answer *a, struct buffer *out)
{
    uint64_t count = a->stats.tally.total.count;
    question_head(&a->scope, out);
    buffer_format(out, "thrown      %s", count ? units_count(count).text : "none");
    if (count && a->scope.time.duration_ns)
        buffer_format(out, " (%.1f a second)", per_second(a, count));
    if (a->stats.nested)
        buffer_format(out, "; %s while another one was handled", units_count(a->stats.nested).text);
    if (a->stats.rethrown)
        buffer_format(out, "; %s times thrown again", units_count(a->stats.rethrown).text);
    buffer_string(out, "\n\n");
}

static void add_row(const struct exception_answer *a, const struct tally_group *group,
                    struct text_table *table, struct buffer *cell)
{
    const struct tally_row *heaviest = event_group_row(&a->groups, group, 0);
    const char *message = question_groups_detail(&a->groups, heaviest);
    bool by_stack = a->groups.by == TALLY_BY_STACK || a->groups.by == TALLY_BY_FUNCTION;
    char rate[32];
    text_table_add(table, units_count(group->sum.count).text);
    snprintf(rate, sizeof rate, "%.1f", per_second(a, group->sum.count));
    text_table_add(table, rate);
    question_groups_add_share(table, (double)group->sum.count, (double)a->stats.tally.total.count);
    question_groups_name(&a->scope, &a->groups, group, cell);
    text_table_add(table, (const char *)cell->data);
    buffer_clear(cell);
    if (by_stack)
        buffer_string(cell, intern_text(&a->stats.tally.texts, heaviest->text));
    else
        question_stack_text(&a->stats.stacks, heaviest->node, THROWER_FRAMES, cell);
    buffer_u8(cell, 0);
    text_table_add(table, (const char *)cell->data);
    text_table_add(table, message);
}

static bool put_text(const struct exception_answer *a, size_t rows, struct error *err)
{
    static const char *const names[TALLY_BYS] = { "type", "thrown by", "thrown by", "process" };
    bool by_stack = a->groups.by == TALLY_BY_STACK || a->groups.by == TALLY_BY_FUNCTION;
    const struct text_column columns[] = {
        { "count", TEXT_RIGHT },
        { "per s", TEXT_RIGHT },
        { "%", TEXT_RIGHT },
        { names[a->groups.by], TEXT_LEFT },
        { by_stack ? "mostly" : "mostly thrown by", TEXT_LEFT },
        { "with the message", TEXT_LEFT },
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

static bool exceptions_check(const struct report_values *v, struct error *err)
{
    return question_groups_check(v, "type", err);
}

static bool exceptions_run(struct question_call *call, struct error *err)
{
    struct exception_answer a;
    if (!question_scope_init(&a.scope, call, err))
        return false;
    exception_stats_init(&a.stats, a.scope.trace, a.scope.raw_names, a.scope.from_ns, a.scope.to_ns);
    bool ok = question_was_asked(&a.scope, &question_exceptions, a.stats.any, err);
    if (ok) {
        event_groups_init(&a.groups, &a.stats.tally, question_groups_by(call->values, "type"));
        size_t rows = question_groups_rows(call->values, &a.groups);
        ok = call->values->json  ? put_json(&a, rows, err)
             : call->values->csv ? put_csv(&a, rows, err)
                                 : put_text(&a, rows, err);
        event_groups_done(&a.groups);
    }
    exception_stats_done(&a.stats);
    return ok;
}

static enum import_want exceptions_wants(void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return exception_stats_wants(provider, event_id) ? IMPORT_PAYLOADS : IMPORT_NOTHING;
}

const struct question question_exceptions = {
    .name = "exceptions",
    .summary = "which exceptions were thrown, where, and how often",
    .names_code = true,
    .has_csv = true,
    .wants = exceptions_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "exceptions",
    .keywords = EXCEPTION_KEYWORD,
    .level = EXCEPTION_LEVEL,
    .check = exceptions_check,
    .run = exceptions_run,
};
