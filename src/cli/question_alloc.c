#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analyse/alloc_stats.h"
#include "base/units.h"
#include "cli/groups_print.h"
#include "cli/json_put.h"
#include "clr/runtime_events.h"

enum { ALLOC_LEVEL = 5, ALLOC_SAMPLED_LEVEL = 4, CELL_MAX = 64, HEAPS_MAX = 4 };

extern const struct question question_alloc;

static const char *source_name(enum alloc_source source)
{
    static const char *const names[] = { "none", "ticks", "sampled", "mixed" };
    return names[source];
}

static uint64_t rounded(double value)
{
    return value > 0 ? (uint64_t)llround(value) : 0;
}

static void put_sum(struct json_writer *j, const struct groups_answer *a, const struct event_sum *sum)
{
    double low, high;
    alloc_stats_bounds(a->stats, sum, &low, &high);
    json_put_u64(j, "bytes", rounded(sum->weight));
    json_put_known_u64(j, "count", sum->objects > 0, rounded(sum->objects));
    json_put_u64(j, "bytes_low", rounded(low));
    json_put_u64(j, "bytes_high", rounded(high));
    json_put_u64(j, "samples", sum->count);
}

static void json_totals(struct json_writer *j, const struct groups_answer *a)
{
    const struct alloc_stats *stats = a->stats;
    double seconds = (double)a->scope->shown.duration_ns / 1e9, bytes = stats->tally.total.weight;
    put_sum(j, a, &stats->tally.total);
    json_put_known_double(j, "bytes_per_s", seconds > 0, seconds > 0 ? bytes / seconds : 0);
    for (unsigned i = 0; i < ALLOC_KINDS; i++) {
        char key[CELL_MAX];
        snprintf(key, sizeof key, "%s_bytes", alloc_kind_name(i));
        json_put_u64(j, key, rounded(stats->bytes_of_kind[i]));
    }
    json_put_string(j, "source", source_name(stats->source));
    json_put_u64(j, "lost", question_lost(a->scope));
    json_put_u64(j, "malformed", stats->malformed);
}

static void json_row(struct json_writer *j, const struct groups_answer *a, const struct tally_group *group)
{
    const struct alloc_stats *stats = a->stats;
    double all = stats->tally.total.weight;
    put_sum(j, a, &group->sum);
    json_put_known_double(j, "share", all > 0, all > 0 ? group->sum.weight / all : 0);
    json_put_string(j, "heap", question_groups_detail(a->groups, event_group_row(a->groups, group, 0)));
}

static void json_place(struct json_writer *j, const struct groups_answer *a, const struct tally_row *row)
{
    json_put_string(j, "heap", question_groups_detail(a->groups, row));
    put_sum(j, a, &row->sum);
}

static void csv_cells(struct csv_text *csv, const struct groups_answer *a, const struct tally_group *group,
                      const struct tally_row *row)
{
    double low, high;
    alloc_stats_bounds(a->stats, &group->sum, &low, &high);
    csv_string(csv, question_groups_detail(a->groups, row));
    csv_u64(csv, rounded(group->sum.weight));
    csv_u64(csv, rounded(low));
    csv_u64(csv, rounded(high));
    csv_known_u64(csv, group->sum.objects > 0, rounded(group->sum.objects));
    csv_u64(csv, group->sum.count);
}

static void put_head(const struct groups_answer *a, struct buffer *out)
{
    const struct alloc_stats *stats = a->stats;
    const struct event_sum *all = &stats->tally.total;
    double seconds = (double)a->scope->shown.duration_ns / 1e9;
    question_head(a->scope, out);
    buffer_format(out, "allocated   %s", units_size(rounded(all->weight)).text);
    if (seconds > 0)
        buffer_format(out, " (%s/s)", units_size(rounded(all->weight / seconds)).text);
    const char *comma = ": ";
    for (unsigned i = 0; i < ALLOC_KINDS; i++) {
        if (stats->bytes_of_kind[i] <= 0)
            continue;
        buffer_format(out, "%s%s objects %s", comma, alloc_kind_name(i),
                      units_size(rounded(stats->bytes_of_kind[i])).text);
        comma = ", ";
    }
    if (stats->source == ALLOC_SOURCE_NONE) {
        buffer_string(out, "\n\n");
        return;
    }
    buffer_format(out, "\nestimated   from %s %s; +- is where the truth lies in 19 of 20 cases\n\n",
                  units_count(all->count).text,
                  stats->source == ALLOC_SOURCE_SAMPLED ? "sampled objects" : "ticks of about 100 kB");
    if (stats->source == ALLOC_SOURCE_SAMPLED && !stats->ticks)
        return;
    if (stats->ticks)
        buffer_string(
            out,
            "note        ticks follow the bytes: what is allocated in step with them can be off by more; "
            "-e alloc-sampled (.NET 10) chooses at random\n\n");
    if (stats->samples && stats->ticks)
        buffer_string(out, "note        sampling switches allocation ticks off in the whole process\n\n");
}

/* The heaps that a group's objects are on, that of the heaviest row first: an array can be on any. */
static void add_heaps(const struct groups_answer *a, const struct tally_group *group,
                      struct text_table *table, struct buffer *cell)
{
    uint32_t seen[HEAPS_MAX];
    size_t count = 0;
    buffer_clear(cell);
    for (size_t i = 0; i < group->count && count < HEAPS_MAX; i++) {
        const struct tally_row *row = event_group_row(a->groups, group, i);
        const char *heap = question_groups_detail(a->groups, row);
        size_t k = 0;
        while (k < count && seen[k] != row->detail)
            k++;
        if (!heap || k < count)
            continue;
        seen[count++] = row->detail;
        buffer_format(cell, "%s%s", k ? ", " : "", heap);
    }
    buffer_u8(cell, 0);
    text_table_add(table, count ? (const char *)cell->data : NULL);
}

static void add_row(const struct groups_answer *a, const struct tally_group *group, struct text_table *table,
                    struct buffer *cell)
{
    const struct alloc_stats *stats = a->stats;
    const struct tally_row *heaviest = event_group_row(a->groups, group, 0);
    char text[CELL_MAX];
    double low, high;
    alloc_stats_bounds(stats, &group->sum, &low, &high);
    text_table_add(table, units_size(rounded(group->sum.weight)).text);
    snprintf(text, sizeof text, "%.1f %%",
             group->sum.weight > 0 ? (high - group->sum.weight) * 100 / group->sum.weight : 0);
    text_table_add(table, text);
    question_groups_add_share(table, group->sum.weight, stats->tally.total.weight);
    text_table_add(table, group->sum.objects > 0 ? units_count(rounded(group->sum.objects)).text : NULL);
    add_heaps(a, group, table, cell);
    question_groups_name(a->scope, a->groups, group, cell);
    text_table_add(table, (const char *)cell->data);
    buffer_clear(cell);
    if (a->groups->by == TALLY_BY_TEXT || a->groups->by == TALLY_BY_PROCESS)
        question_stack_text(&stats->stacks, heaviest->node, 2, cell);
    else
        buffer_string(cell, intern_text(&stats->tally.texts, heaviest->text));
    buffer_u8(cell, 0);
    text_table_add(table, (const char *)cell->data);
}

static bool alloc_check(const struct report_values *v, struct error *err)
{
    return question_groups_check(v, "type", err);
}

static const struct groups_form form = {
    .schema = "clrperf.report.alloc/1",
    .text = "type",
    .json_totals = json_totals,
    .json_row = json_row,
    .places = "stacks",
    .json_place = json_place,
    .csv_titles = "pid,type,heap,bytes,bytes_low,bytes_high,count,samples,stack",
    .csv_groups = true,
    .csv_cells = csv_cells,
    .head = put_head,
    .add_row = add_row,
};

static bool print(const struct groups_answer *a, struct error *err)
{
    static const char *const names[TALLY_BYS] = { "type", "stack", "function", "process" };
    bool by_stack = a->groups->by == TALLY_BY_STACK || a->groups->by == TALLY_BY_FUNCTION;
    const struct text_column columns[] = {
        { "bytes", TEXT_RIGHT },
        { "+-", TEXT_RIGHT },
        { "%", TEXT_RIGHT },
        { "objects", TEXT_RIGHT },
        { "heap", TEXT_LEFT },
        { names[a->groups->by], TEXT_LEFT },
        { by_stack ? "mostly" : "mostly in", TEXT_LEFT },
    };
    return groups_print(&form, a, columns, ARRAY_LEN(columns), err);
}

static bool alloc_run(struct question_call *call, struct error *err)
{
    struct question_scope scope;
    struct alloc_stats stats;
    struct event_groups groups;
    if (!question_scope_init(&scope, call, err))
        return false;
    alloc_stats_init(&stats, scope.trace, scope.raw_names, scope.from_ns, scope.to_ns);
    bool ok = question_was_asked(&scope, &question_alloc, stats.any, err);
    if (ok) {
        event_groups_init(&groups, &stats.tally, question_groups_by(call->values, "type"));
        ok = print(&(struct groups_answer){ &scope, &groups, &stats }, err);
        event_groups_done(&groups);
    }
    alloc_stats_done(&stats);
    return ok;
}

static enum import_want alloc_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return import_want_event(provider, alloc_stats_wants(provider, event_id));
}

const struct question question_alloc = {
    .name = "alloc",
    .summary = "what was allocated, by type, stack or function, with error bars",
    .names_code = true,
    .takes = QUESTION_TAKES_EVENTS " by",
    .wants = alloc_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "alloc",
    .keywords = RUNTIME_KEYWORD_GC,
    .level = ALLOC_LEVEL,
    .other_keywords = RUNTIME_KEYWORD_ALLOCATION_SAMPLING,
    .other_level = ALLOC_SAMPLED_LEVEL,
    .check = alloc_check,
    .run = alloc_run,
};
