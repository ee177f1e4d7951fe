#include <inttypes.h>
#include <stdio.h>

#include "analyse/exception_stats.h"
#include "base/units.h"
#include "cli/groups_print.h"
#include "cli/json_put.h"
#include "clr/runtime_events.h"

enum { EXCEPTION_KEYWORD = 0x8000, EXCEPTION_LEVEL = 2, THROWER_FRAMES = 2 };

extern const struct question question_exceptions;

static double per_second(const struct groups_answer *a, uint64_t count)
{
    uint64_t duration_ns = a->scope->shown.duration_ns;
    return duration_ns ? (double)count * 1e9 / (double)duration_ns : 0;
}

static void json_totals(struct json_writer *j, const struct groups_answer *a)
{
    const struct exception_stats *stats = a->stats;
    uint64_t count = stats->tally.total.count;
    json_put_u64(j, "count", count);
    json_put_u64(j, "rethrown", stats->rethrown);
    json_put_u64(j, "nested", stats->nested);
    json_put_known_double(j, "per_s", a->scope->shown.duration_ns, per_second(a, count));
    json_put_u64(j, "lost", question_lost(a->scope));
    json_put_u64(j, "malformed", stats->malformed);
}

static void json_row(struct json_writer *j, const struct groups_answer *a, const struct tally_group *group)
{
    json_put_string(j, "message", question_groups_detail(a->groups, event_group_row(a->groups, group, 0)));
    json_put_u64(j, "count", group->sum.count);
    json_put_known_double(j, "per_s", a->scope->shown.duration_ns, per_second(a, group->sum.count));
    json_put_double(j, "first_s", capture_time_s(&a->scope->time, group->sum.first_ns));
    json_put_double(j, "last_s", capture_time_s(&a->scope->time, group->sum.last_ns));
    json_put_u64(j, "site_count", group->count);
}

static void json_place(struct json_writer *j, const struct groups_answer *a, const struct tally_row *row)
{
    json_put_string(j, "message", question_groups_detail(a->groups, row));
    json_put_u64(j, "count", row->sum.count);
}

/* A row for each site: type, message and stack. */
static void csv_cells(struct csv_text *csv, const struct groups_answer *a, const struct tally_group *group,
                      const struct tally_row *row)
{
    (void)group;
    csv_string(csv, question_groups_detail(a->groups, row));
    csv_u64(csv, row->sum.count);
    csv_double(csv, capture_time_s(&a->scope->time, row->sum.first_ns));
    csv_double(csv, capture_time_s(&a->scope->time, row->sum.last_ns));
}

static void put_head(const struct groups_answer *a, struct buffer *out)
{
    const struct exception_stats *stats = a->stats;
    uint64_t count = stats->tally.total.count;
    question_head(a->scope, out);
    buffer_format(out, "thrown      %s", count ? units_count(count).text : "none");
    if (count && a->scope->shown.duration_ns)
        buffer_format(out, " (%.1f a second)", per_second(a, count));
    if (stats->nested)
        buffer_format(out, "; %s while another one was handled", units_count(stats->nested).text);
    if (stats->rethrown)
        buffer_format(out, "; %s times thrown again", units_count(stats->rethrown).text);
    buffer_string(out, "\n\n");
}

static bool is_by_stack(const struct event_groups *groups)
{
    return groups->by == TALLY_BY_STACK || groups->by == TALLY_BY_FUNCTION;
}

static void add_row(const struct groups_answer *a, const struct tally_group *group, struct text_table *table,
                    struct buffer *cell)
{
    const struct exception_stats *stats = a->stats;
    const struct tally_row *heaviest = event_group_row(a->groups, group, 0);
    const char *message = question_groups_detail(a->groups, heaviest);
    char rate[32];
    text_table_add(table, units_count(group->sum.count).text);
    snprintf(rate, sizeof rate, "%.1f", per_second(a, group->sum.count));
    text_table_add(table, rate);
    question_groups_add_share(table, (double)group->sum.count, (double)stats->tally.total.count);
    question_groups_name(a->scope, a->groups, group, cell);
    text_table_add(table, (const char *)cell->data);
    buffer_clear(cell);
    if (is_by_stack(a->groups))
        buffer_string(cell, intern_text(&stats->tally.texts, heaviest->text));
    else
        question_stack_text(&stats->stacks, heaviest->node, THROWER_FRAMES, cell);
    buffer_u8(cell, 0);
    text_table_add(table, (const char *)cell->data);
    text_table_add(table, message);
}

static bool exceptions_check(const struct report_values *v, struct error *err)
{
    return question_groups_check(v, "type", err);
}

static const struct groups_form form = {
    .schema = "clrperf.report.exceptions/1",
    .text = "type",
    .json_totals = json_totals,
    .json_row = json_row,
    .places = "sites",
    .json_place = json_place,
    .csv_titles = "pid,type,message,count,first_s,last_s,stack",
    .csv_cells = csv_cells,
    .head = put_head,
    .add_row = add_row,
};

static bool print(const struct groups_answer *a, struct error *err)
{
    static const char *const names[TALLY_BYS] = { "type", "thrown by", "thrown by", "process" };
    const struct text_column columns[] = {
        { "count", TEXT_RIGHT },
        { "per s", TEXT_RIGHT },
        { "%", TEXT_RIGHT },
        { names[a->groups->by], TEXT_LEFT },
        { is_by_stack(a->groups) ? "mostly" : "mostly thrown by", TEXT_LEFT },
        { "with the message", TEXT_LEFT },
    };
    return groups_print(&form, a, columns, ARRAY_LEN(columns), err);
}

static bool exceptions_run(struct question_call *call, struct error *err)
{
    struct question_scope scope;
    struct exception_stats stats;
    struct event_groups groups;
    if (!question_scope_init(&scope, call, err))
        return false;
    exception_stats_init(&stats, scope.trace, scope.raw_names, scope.from_ns, scope.to_ns);
    bool ok = question_was_asked(&scope, &question_exceptions, stats.any, err);
    if (ok) {
        event_groups_init(&groups, &stats.tally, question_groups_by(call->values, "type"));
        ok = print(&(struct groups_answer){ &scope, &groups, &stats }, err);
        event_groups_done(&groups);
    }
    exception_stats_done(&stats);
    return ok;
}

static enum import_want exceptions_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return import_want_event(provider, exception_stats_wants(provider, event_id));
}

const struct question question_exceptions = {
    .name = "exceptions",
    .summary = "which exceptions were thrown, where, and how often",
    .names_code = true,
    .takes = QUESTION_TAKES_EVENTS " by",
    .wants = exceptions_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "exceptions",
    .keywords = EXCEPTION_KEYWORD,
    .level = EXCEPTION_LEVEL,
    .check = exceptions_check,
    .run = exceptions_run,
};
