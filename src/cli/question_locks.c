#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyse/lock_stats.h"
#include "base/units.h"
#include "cli/json_put.h"
#include "cli/question_groups.h"
#include "cli/standard_output.h"
#include "clr/runtime_events.h"

enum { LOCK_KEYWORD = 0x4000, LOCK_LEVEL = 4, WAITER_FRAMES = 2 };

extern const struct question question_locks;

struct lock_answer {
    struct question_scope scope;
    struct lock_stats stats;
    struct event_groups groups;
};

static uint64_t whole_ns(double ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

static void put_sum(struct json_writer *j, const struct event_sum *sum)
{
    json_put_u64(j, "count", sum->count);
    json_put_u64(j, "wait_ns", whole_ns(sum->weight));
    json_put_known_u64(j, "mean_ns", sum->count, sum->count ? whole_ns(sum->weight / (double)sum->count) : 0);
    json_put_u64(j, "longest_ns", whole_ns(sum->most));
}

static void put_totals(struct json_writer *j, const struct lock_answer *a)
{
    json_put_object(j, "totals");
    put_sum(j, &a->stats.tally.total);
    json_put_u64(j, "unfinished", a->stats.unfinished);
    json_put_u64(j, "unbegun", a->stats.unbegun);
    json_put_u64(j, "lost", question_lost(&a->scope));
    json_put_u64(j, "malformed", a->stats.malformed);
    json_end_object(j);
}

/* Who held it longest, of a group's waits; null where that was not told. */
static void put_owner(struct json_writer *j, const struct lock_answer *a, const struct tally_row *row)
{
    const char *owner = question_groups_detail(&a->groups, row);
    json_put_known_u64(j, "owner", owner != NULL, owner ? strtoull(owner, NULL, 10) : 0);
}

static void put_row(struct json_writer *j, const struct lock_answer *a, const struct tally_group *group)
{
    const struct tally_row *heaviest = event_group_row(&a->groups, group, 0);
    json_begin_object(j);
    question_groups_json_key(j, &a->scope, &a->groups, group, "lock");
    question_json_stack(j, &a->stats.stacks, heaviest->node);
    put_sum(j, &group->sum);
    put_owner(j, a, heaviest);
    json_put_array(j, "waits");
    for (size_t i = 0; i < question_groups_places(a->scope.call->values, group); i++) {
        const struct tally_row *row = event_group_row(&a->groups, group, i);
        json_begin_object(j);
        json_put_string(j, "lock", question_groups_text(&a->groups, row));
        put_owner(j, a, row);
        put_sum(j, &row->sum);
        question_json_stack(j, &a->stats.stacks, row->node);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static bool put_json(const struct lock_answer *a, size_t rows, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    question_json_begin(&j, &text, &a->scope, "clrperf.report.locks/1");
    put_totals(&j, a);
    question_groups_json_by(&j, &a->groups, "lock");
    json_put_array(&j, "rows");
    for (size_t i = 0; i < rows; i++)
        put_row(&j, a, &a->groups.rows[i]);
    json_end_array(&j);
    return question_json_end(&j, err);
}

static bool put_csv(const struct lock_answer *a, size_t rows, struct error *err)
{
    struct buffer out, stack;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&stack, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv, "pid,lock,owner,count,wait_ns,longest_ns,stack");
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
            csv_u64(&csv, whole_ns(row->sum.weight));
            csv_u64(&csv, whole_ns(row->sum.most));
            csv_string(&csv, (const char *)stack.data);
            csv_end_row(&csv);
        }
    }
    buffer_done(&stack);
    return question_print(&out, err);
}

static void put_head(const struct lock_answer *a, struct buffer *out)
{
    const struct event_sum *all = &a->stats.tally.total;
    question_head(&a->scope, out);
    buffer_format(out, "waits       %s", all->count ? units_count(all->count).text : "none");
    if (all->count)
        buffer_format(out, ", %s in all; mean %s, longest %s", units_duration(whole_ns(all->weight)).text,
                      units_duration(whole_ns(all->weight / (double)all->count)).text,
                      units_duration(whole_ns(all->most)).text);
    if (a->stats.unfinished)
        buffer_format(out, "; %s more had no end yet", units_count(a->stats.unfinished).text);
    if (a->stats.unbegun)
        buffer_format(out, "; %s more had begun before", units_count(a->stats.unbegun).text);
    buffer_string(out, "\n\n");
}

static void add_row(const struct lock_answer *a, const struct tally_group *group, struct text_table *table,
                    struct buffer *cell)
{
    const struct tally_row *heaviest = event_group_row(&a->groups, group, 0);
    text_table_add(table, units_duration(whole_ns(group->sum.weight)).text);
    question_groups_add_share(table, group->sum.weight, a->stats.tally.total.weight);
    text_table_add(table, units_count(group->sum.count).text);
    text_table_add(table, units_duration(whole_ns(group->sum.weight / (double)group->sum.count)).text);
    text_table_add(table, units_duration(whole_ns(group->sum.most)).text);
    text_table_add(table, question_groups_text(&a->groups, heaviest));
    text_table_add(table, question_groups_detail(&a->groups, heaviest));
    if (a->groups.by == TALLY_BY_TEXT) {
        buffer_clear(cell);
        question_stack_text(&a->stats.stacks, heaviest->node, WAITER_FRAMES, cell);
        buffer_u8(cell, 0);
    } else {
        question_groups_name(&a->scope, &a->groups, group, cell);
    }
    text_table_add(table, (const char *)cell->data);
}

static bool put_text(const struct lock_answer *a, size_t rows, struct error *err)
{
    static const struct text_column columns[] = {
        { "waited", TEXT_RIGHT },  { "%", TEXT_RIGHT },        { "waits", TEXT_RIGHT },
        { "mean", TEXT_RIGHT },    { "longest", TEXT_RIGHT },  { "lock", TEXT_LEFT },
        { "held by", TEXT_RIGHT }, { "who waits", TEXT_LEFT },
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

static bool locks_check(const struct report_values *v, struct error *err)
{
    return question_groups_check(v, "lock", err);
}

static enum tally_by locks_by(const struct report_values *v)
{
    return v->by ? question_groups_by(v, "lock") : TALLY_BY_STACK;
}

static bool locks_run(struct question_call *call, struct error *err)
{
    struct lock_answer a;
    if (!question_scope_init(&a.scope, call, err))
        return false;
    lock_stats_init(&a.stats, a.scope.trace, a.scope.raw_names, a.scope.from_ns, a.scope.to_ns);
    bool ok = question_was_asked(&a.scope, &question_locks, a.stats.any, err);
    if (ok) {
        event_groups_init(&a.groups, &a.stats.tally, locks_by(call->values));
        size_t rows = question_groups_rows(call->values, &a.groups);
        ok = call->values->json  ? put_json(&a, rows, err)
             : call->values->csv ? put_csv(&a, rows, err)
                                 : put_text(&a, rows, err);
        event_groups_done(&a.groups);
    }
    lock_stats_done(&a.stats);
    return ok;
}

static enum import_want locks_wants(void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return lock_stats_wants(provider, event_id) ? IMPORT_PAYLOADS : IMPORT_NOTHING;
}

const struct question question_locks = {
    .name = "locks",
    .summary = "which locks threads waited for, where and how long, and who held them",
    .names_code = true,
    .has_csv = true,
    .wants = locks_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "locks",
    .keywords = LOCK_KEYWORD,
    .level = LOCK_LEVEL,
    .check = locks_check,
    .run = locks_run,
};
