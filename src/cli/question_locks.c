#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyse/lock_stats.h"
#include "base/units.h"
#include "cli/groups_print.h"
#include "cli/json_put.h"
#include "clr/runtime_events.h"

enum { LOCK_KEYWORD = 0x4000, LOCK_LEVEL = 4, WAITER_FRAMES = 2, OTHERS_LOOKED_AT = 256 };

extern const struct question question_locks;

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

static void json_totals(struct json_writer *j, const struct groups_answer *a)
{
    const struct lock_stats *stats = a->stats;
    put_sum(j, &stats->tally.total);
    json_put_u64(j, "unfinished", stats->unfinished);
    json_put_u64(j, "unbegun", stats->unbegun);
    json_put_u64(j, "lost", question_lost(a->scope));
    json_put_u64(j, "malformed", stats->malformed);
}

/* Who held it; null where that was not told. */
static void put_owner(struct json_writer *j, const struct groups_answer *a, const struct tally_row *row)
{
    const char *owner = question_groups_detail(a->groups, row);
    json_put_known_u64(j, "owner", owner != NULL, owner ? strtoull(owner, NULL, 10) : 0);
}

static void json_row(struct json_writer *j, const struct groups_answer *a, const struct tally_group *group)
{
    put_sum(j, &group->sum);
    put_owner(j, a, event_group_row(a->groups, group, 0)); /* of its longest */
}

static void json_place(struct json_writer *j, const struct groups_answer *a, const struct tally_row *row)
{
    put_owner(j, a, row);
    put_sum(j, &row->sum);
}

static void csv_cells(struct csv_text *csv, const struct groups_answer *a, const struct tally_group *group,
                      const struct tally_row *row)
{
    (void)group;
    csv_string(csv, question_groups_detail(a->groups, row));
    csv_u64(csv, row->sum.count);
    csv_u64(csv, whole_ns(row->sum.weight));
    csv_u64(csv, whole_ns(row->sum.most));
}

static void put_head(const struct groups_answer *a, struct buffer *out)
{
    const struct lock_stats *stats = a->stats;
    const struct event_sum *all = &stats->tally.total;
    question_head(a->scope, out);
    buffer_format(out, "waits       %s", all->count ? units_count(all->count).text : "none");
    if (all->count)
        buffer_format(out, ", %s in all; mean %s, longest %s", units_duration(whole_ns(all->weight)).text,
                      units_duration(whole_ns(all->weight / (double)all->count)).text,
                      units_duration(whole_ns(all->most)).text);
    if (stats->unfinished)
        buffer_format(out, "; %s more had no end yet", units_count(stats->unfinished).text);
    if (stats->unbegun)
        buffer_format(out, "; %s more had begun before", units_count(stats->unbegun).text);
    buffer_string(out, "\n\n");
}

/* What a wait was for, or who held it. */
static uint32_t place_of(const struct tally_row *row, bool owner)
{
    return owner ? row->detail : row->text;
}

/* The heaviest wait whose owner was told; the heaviest where none was. */
static size_t owned_row(const struct groups_answer *a, const struct tally_group *group)
{
    size_t rows = group->count < OTHERS_LOOKED_AT ? group->count : OTHERS_LOOKED_AT;
    for (size_t i = 0; i < rows; i++)
        if (question_groups_detail(a->groups, event_group_row(a->groups, group, i)))
            return i;
    return 0;
}

/* How many other locks, or owners that were told, the heaviest waits of a group have. Each counts once. */
static unsigned others(const struct groups_answer *a, const struct tally_group *group, size_t first,
                       bool owner)
{
    unsigned count = 0;
    size_t rows = group->count < OTHERS_LOOKED_AT ? group->count : OTHERS_LOOKED_AT;
    for (size_t i = first + 1; i < rows; i++) {
        const struct tally_row *row = event_group_row(a->groups, group, i);
        bool is_new = !owner || question_groups_detail(a->groups, row);
        for (size_t k = first; k < i && is_new; k++)
            is_new = place_of(event_group_row(a->groups, group, k), owner) != place_of(row, owner);
        count += is_new;
    }
    return count;
}

/* One of them, and how many more there are. */
static void add_one_of(struct text_table *table, const char *first, unsigned more, struct buffer *cell)
{
    if (!first || !more) {
        text_table_add(table, first);
        return;
    }
    buffer_clear(cell);
    buffer_format(cell, "%s +%u", first, more);
    buffer_u8(cell, 0);
    text_table_add(table, (const char *)cell->data);
}

static void add_row(const struct groups_answer *a, const struct tally_group *group, struct text_table *table,
                    struct buffer *cell)
{
    const struct lock_stats *stats = a->stats;
    const struct tally_row *heaviest = event_group_row(a->groups, group, 0);
    text_table_add(table, units_duration(whole_ns(group->sum.weight)).text);
    question_groups_add_share(table, group->sum.weight, stats->tally.total.weight);
    text_table_add(table, units_count(group->sum.count).text);
    text_table_add(table, units_duration(whole_ns(group->sum.weight / (double)group->sum.count)).text);
    text_table_add(table, units_duration(whole_ns(group->sum.most)).text);
    size_t owned = owned_row(a, group);
    add_one_of(table, question_groups_text(a->groups, heaviest), others(a, group, 0, false), cell);
    add_one_of(table, question_groups_detail(a->groups, event_group_row(a->groups, group, owned)),
               others(a, group, owned, true), cell);
    if (a->groups->by == TALLY_BY_TEXT) {
        buffer_clear(cell);
        question_stack_text(&stats->stacks, heaviest->node, WAITER_FRAMES, cell);
        buffer_u8(cell, 0);
    } else {
        question_groups_name(a->scope, a->groups, group, cell);
    }
    text_table_add(table, (const char *)cell->data);
}

static bool locks_check(const struct report_values *v, struct error *err)
{
    return question_groups_check(v, "lock", err);
}

static enum tally_by locks_by(const struct report_values *v)
{
    return v->by ? question_groups_by(v, "lock") : TALLY_BY_STACK;
}

static const struct groups_form form = {
    .schema = "clrperf.report.locks/1",
    .text = "lock",
    .json_totals = json_totals,
    .json_row = json_row,
    .places = "waits",
    .json_place = json_place,
    .csv_titles = "pid,lock,owner,count,wait_ns,longest_ns,stack",
    .csv_cells = csv_cells,
    .head = put_head,
    .add_row = add_row,
};

static const struct text_column columns[] = {
    { "waited", TEXT_RIGHT },  { "%", TEXT_RIGHT },   { "waits", TEXT_RIGHT },   { "mean", TEXT_RIGHT },
    { "longest", TEXT_RIGHT }, { "lock", TEXT_LEFT }, { "held by", TEXT_RIGHT }, { "who waits", TEXT_LEFT },
};

static bool locks_run(struct question_call *call, struct error *err)
{
    struct question_scope scope;
    struct lock_stats stats;
    struct event_groups groups;
    if (!question_scope_init(&scope, call, err))
        return false;
    lock_stats_init(&stats, scope.trace, scope.raw_names, scope.from_ns, scope.to_ns);
    bool ok = question_was_asked(&scope, &question_locks, stats.any, err);
    if (ok) {
        event_groups_init(&groups, &stats.tally, locks_by(call->values));
        ok = groups_print(&form, &(struct groups_answer){ &scope, &groups, &stats }, columns,
                          ARRAY_LEN(columns), err);
        event_groups_done(&groups);
    }
    lock_stats_done(&stats);
    return ok;
}

static enum import_want locks_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return import_want_event(provider, lock_stats_wants(provider, event_id));
}

const struct question question_locks = {
    .name = "locks",
    .summary = "which locks threads waited for, where and how long, and who held them",
    .names_code = true,
    .takes = QUESTION_TAKES_EVENTS " by",
    .wants = locks_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "locks",
    .keywords = LOCK_KEYWORD,
    .level = LOCK_LEVEL,
    .check = locks_check,
    .run = locks_run,
};
