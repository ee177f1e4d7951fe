#include "cli/question_gc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/profile.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/standard_output.h"
#include "cli/text_table.h"
#include "clr/runtime_events.h"
#include "trace/facts.h"

enum {
    REASONS_MAX = 64, /* the runtime knows some twenty */
    GC_ROWS_SHOWN = 30,
    GC_TRIGGER_FRAMES = 2,
    GC_TRIGGERS_SHOWN = 5,
    GC_LEVEL = 4,
    GC_LONG_PAUSE_NS = 200000000,
    CELL_MAX = 64,
};

extern const struct question question_gc;

const char *const gc_kind_names[] = { "blocking", "background", "foreground" };

uint64_t gc_answer_told_ns(const struct gc_answer *a, uint32_t process)
{
    return capture_time_asked_ns(&a->scope.shown, a->scope.trace, process, RUNTIME_PROVIDER,
                                 RUNTIME_KEYWORD_GC);
}

static int by_pause(const void *a, const void *b)
{
    const struct gc_record *x = *(const struct gc_record *const *)a, *y = *(const struct gc_record *const *)b;
    if (x->pause_ns != y->pause_ns)
        return x->pause_ns > y->pause_ns ? -1 : 1;
    return (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
    const struct gc_record *x = *(const struct gc_record *const *)a, *y = *(const struct gc_record *const *)b;
    return (x > y) - (x < y);
}

/* The complete ones; of too many the longest. */
static size_t choose_rows(struct gc_answer *a, size_t top)
{
    size_t complete = 0;
    a->rows = mem_alloc(a->stats.row_count + 1, sizeof *a->rows);
    for (size_t i = 0; i < a->stats.row_count; i++)
        if (a->stats.rows[i].complete)
            a->rows[complete++] = &a->stats.rows[i];
    a->row_count = complete;
    if (top && top < complete) {
        qsort(a->rows, complete, sizeof *a->rows, by_pause);
        a->row_count = top;
        qsort(a->rows, top, sizeof *a->rows, by_place);
    }
    return complete;
}

/* Collections by the function that triggered them. */
static void sum_triggers(struct gc_answer *a)
{
    event_tally_init(&a->triggers, &a->callers);
    for (size_t i = 0; i < a->stats.row_count; i++) {
        const struct gc_record *row = &a->stats.rows[i];
        const char *reason = gc_reason_key(row->reason);
        char label[8];
        if (!row->complete)
            continue;
        gc_record_label(row, label);
        event_tally_add(&a->triggers, span_of(reason ? reason : "", reason ? strlen(reason) : 0),
                        span_of(label, strlen(label)), event_stacks_node(&a->callers, row->trigger_stack),
                        row->process, row->start_ns,
                        &(struct event_weight){ .weight = (double)row->pause_ns });
    }
    event_groups_init(&a->by_trigger, &a->triggers, TALLY_BY_FUNCTION);
}

/* What of the CPU time went into collecting, of a capture that has samples of it. */
static bool sum_cpu(struct gc_answer *a, struct error *err)
{
    const struct trace *t = a->scope.trace;
    struct profile_options options;
    struct profile *p;
    if (!trace_fact_value(t, FACT_EVENT) || !t->samples.count)
        return true;
    if (!profile_choice_options(&a->scope.call->values->choice, &options, err))
        return false;
    options.tree_only = true;
    if (!profile_build(t, &options, &p, err))
        return false;
    if (p->counts.work_known && strcmp(p->weight_unit, "ns") == 0) {
        a->cpu_ns = p->counts.weight;
        a->gc_cpu_ns = p->counts.work[WORK_GC];
    }
    profile_free(p);
    return true;
}

static void add_duration(struct text_table *table, uint64_t ns)
{
    text_table_add(table, units_duration(ns).text);
}

static void add_size(struct text_table *table, bool known, uint64_t bytes)
{
    text_table_add(table, known ? units_size(bytes).text : NULL);
}

__attribute__((format(printf, 2, 3))) static void add_format(struct text_table *table, const char *format,
                                                             ...)
{
    char cell[CELL_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(cell, sizeof cell, format, values);
    va_end(values);
    text_table_add(table, cell);
}

static void add_known(struct text_table *table, bool known, uint64_t count)
{
    if (known)
        add_format(table, "%" PRIu64, count);
    else
        text_table_add(table, NULL);
}

static void add_sum(struct text_table *table, const char *name, const struct gc_sum *sum)
{
    text_table_add(table, name);
    add_format(table, "%" PRIu64, sum->count);
    add_format(table, "%" PRIu64, sum->induced);
    add_duration(table, sum->pause_ns);
    add_duration(table, sum->count ? sum->pause_ns / sum->count : 0);
    add_duration(table, sum->pause_max_ns);
    add_size(table, sum->peak_max != 0, sum->peak_max);
    add_size(table, sum->with_allocated != 0, sum->allocated);
    add_size(table, sum->with_stats != 0, sum->promoted);
    add_known(table, sum->with_stats != 0, sum->pinned);
}

static void put_rollup(const struct gc_process_stats *p, struct buffer *out)
{
    static const struct text_column columns[] = {
        { "generation", TEXT_LEFT }, { "count", TEXT_RIGHT },        { "induced", TEXT_RIGHT, 4 },
        { "paused", TEXT_RIGHT },    { "mean", TEXT_RIGHT, 1 },      { "longest", TEXT_RIGHT },
        { "peak heap", TEXT_RIGHT }, { "allocated", TEXT_RIGHT, 2 }, { "promoted", TEXT_RIGHT, 3 },
        { "pinned", TEXT_RIGHT, 5 },
    };
    struct text_table table;
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (unsigned gen = 0; gen < 3; gen++)
        if (p->by_generation[gen].count)
            add_sum(&table, gc_gen_name(gen), &p->by_generation[gen]);
    add_sum(&table, "all", &p->all);
    buffer_u8(out, '\n');
    text_table_print(&table, stdout_width(), out);
    text_table_done(&table);
}

static void add_shares(struct text_table *table, const struct gc_record *row)
{
    double paused;
    uint64_t fragmentation = 0;
    for (unsigned gen = 0; gen < GC_EVENT_GENS; gen++)
        fragmentation += row->gen[gen].fragmentation;
    if (gc_record_pause_share(row, &paused))
        add_format(table, "%.1f", paused * 100);
    else
        text_table_add(table, NULL);
    const struct gc_gen_record *g = &row->gen[row->generation];
    if (g->has_survival)
        add_format(table, "%.0f", g->survival_share * 100);
    else
        text_table_add(table, NULL);
    add_size(table, row->has_before, fragmentation);
}

static void add_row(struct gc_answer *a, struct text_table *table, const struct gc_record *row,
                    struct buffer *cell)
{
    char label[8];
    const char *reason = gc_reason_name(row->reason);
    gc_record_label(row, label);
    add_format(table, "%" PRIu32, row->number);
    text_table_add(table, label);
    add_format(table, "%.3f", capture_time_s(&a->scope.time, row->pause_from_ns));
    add_duration(table, row->pause_ns);
    add_duration(table, row->suspend_ns);
    add_size(table, row->has_before, row->heap_before);
    add_size(table, row->has_stats, row->heap_after);
    add_size(table, row->has_stats, row->promoted);
    add_shares(table, row);
    add_known(table, row->has_stats, row->stats.pinned_count);
    if (reason)
        text_table_add(table, reason);
    else
        add_format(table, "%" PRIu32, row->reason);
    buffer_clear(cell);
    question_stack_text(&a->callers, event_stacks_node(&a->callers, row->trigger_stack), GC_TRIGGER_FRAMES,
                        cell);
    buffer_u8(cell, 0);
    text_table_add(table, (const char *)cell->data);
}

static void put_rows(struct gc_answer *a, uint32_t process, struct buffer *out)
{
    static const struct text_column columns[] = {
        { "#", TEXT_RIGHT },           { "gen", TEXT_LEFT },
        { "at s", TEXT_RIGHT },        { "pause", TEXT_RIGHT },
        { "stopping", TEXT_RIGHT, 3 }, { "before", TEXT_RIGHT, 1 },
        { "after", TEXT_RIGHT },       { "promoted", TEXT_RIGHT, 2 },
        { "paused %", TEXT_RIGHT, 4 }, { "survive %", TEXT_RIGHT, 6 },
        { "fragm", TEXT_RIGHT, 5 },    { "pin", TEXT_RIGHT, 7 },
        { "reason", TEXT_LEFT },       { "triggered by", TEXT_LEFT },
    };
    struct text_table table;
    struct buffer cell;
    buffer_init(&cell, OUTPUT_BYTES_MAX);
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i]->process == process)
            add_row(a, &table, a->rows[i], &cell);
    buffer_u8(out, '\n');
    if (table.cells)
        text_table_print(&table, stdout_width(), out);
    text_table_done(&table);
    buffer_done(&cell);
}

/* "12 gen 2, 3 gen 0" of a group. */
static void put_kinds(const struct gc_answer *a, const struct tally_group *group, struct buffer *cell)
{
    uint64_t by_generation[3] = { 0 };
    for (size_t i = 0; i < group->count; i++) {
        const struct tally_row *row = event_group_row(&a->by_trigger, group, i);
        by_generation[(unsigned)(intern_text(&a->triggers.texts, row->detail)[0] - '0') % 3] +=
            row->sum.count;
    }
    const char *comma = "";
    buffer_clear(cell);
    for (unsigned gen = 3; gen-- > 0;) {
        if (!by_generation[gen])
            continue;
        buffer_format(cell, "%s%s gen %u", comma, units_count(by_generation[gen]).text, gen);
        comma = ", ";
    }
    buffer_u8(cell, 0);
}

size_t gc_answer_reasons(const struct gc_answer *a, const struct tally_group *group, gc_reason_fn *emit,
                         void *user)
{
    struct {
        uint32_t text;
        uint64_t count;
    } reasons[REASONS_MAX];
    size_t found = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct tally_row *row = event_group_row(&a->by_trigger, group, i);
        size_t at = 0;
        while (at < found && reasons[at].text != row->text)
            at++;
        if (at == REASONS_MAX)
            continue;
        if (at == found) {
            reasons[found].text = row->text;
            reasons[found++].count = 0;
        }
        reasons[at].count += row->sum.count;
    }
    for (size_t i = 0; i < found; i++)
        emit(user, intern_text(&a->triggers.texts, reasons[i].text), reasons[i].count);
    return found;
}

static void put_reason(void *user, const char *reason, uint64_t count)
{
    struct buffer *cell = user;
    buffer_format(cell, "%s%s %s", cell->size ? "; " : "", units_count(count).text,
                  gc_reason_name_of_key(reason));
}

/* "induced, not forced", or of several "4 small allocation; 2 induced". */
static void put_reasons(const struct gc_answer *a, const struct tally_group *group, struct buffer *cell)
{
    buffer_clear(cell);
    if (gc_answer_reasons(a, group, put_reason, cell) == 1) {
        buffer_clear(cell);
        buffer_string(cell, gc_reason_name_of_key(intern_text(
                                &a->triggers.texts, event_group_row(&a->by_trigger, group, 0)->text)));
    }
    buffer_u8(cell, 0);
}

static void put_triggers(const struct gc_answer *a, struct buffer *out)
{
    static const struct text_column columns[] = {
        { "count", TEXT_RIGHT }, { "paused", TEXT_RIGHT },      { "of", TEXT_LEFT },
        { "reason", TEXT_LEFT }, { "triggered by", TEXT_LEFT },
    };
    struct text_table table;
    struct buffer cell;
    if (a->by_trigger.count < 2) /* one alone is in every row */
        return;
    buffer_init(&cell, OUTPUT_BYTES_MAX);
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < a->by_trigger.count && i < GC_TRIGGERS_SHOWN; i++) {
        const struct tally_group *group = &a->by_trigger.rows[i];
        const struct tally_row *row = event_group_row(&a->by_trigger, group, 0);
        text_table_add(&table, units_count(group->sum.count).text);
        add_duration(&table, (uint64_t)group->sum.weight);
        put_kinds(a, group, &cell);
        text_table_add(&table, (const char *)cell.data);
        put_reasons(a, group, &cell);
        text_table_add(&table, (const char *)cell.data);
        buffer_clear(&cell);
        question_stack_text(&a->callers, row->node, GC_TRIGGER_FRAMES, &cell);
        if (!row->node)
            buffer_string(&cell, "[no stack]");
        buffer_u8(&cell, 0);
        text_table_add(&table, (const char *)cell.data);
    }
    buffer_u8(out, '\n');
    text_table_print(&table, stdout_width(), out);
    text_table_done(&table);
    buffer_done(&cell);
}

static void put_long_pauses(const struct gc_answer *a, const struct gc_process_stats *p, struct buffer *out)
{
    uint64_t count = 0;
    for (size_t i = 0; i < p->count; i++)
        count += a->stats.rows[p->first + i].pause_ns >= GC_LONG_PAUSE_NS;
    if (count)
        buffer_format(out, "long        %s pause%s of 200 ms or more\n", units_count(count).text,
                      count == 1 ? "" : "s");
}

static bool put_text(struct gc_answer *a, size_t complete, struct error *err)
{
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    question_head(&a->scope, &out);
    if (!a->stats.process_count)
        buffer_string(&out, "collections none\n");
    if (a->cpu_ns)
        buffer_format(&out, "CPU         %s, of it %.1f %% for collections\n", units_duration(a->cpu_ns).text,
                      question_share(a->gc_cpu_ns, a->cpu_ns) * 100);
    for (size_t i = 0; i < a->stats.process_count; i++) {
        const struct gc_process_stats *p = &a->stats.processes[i];
        question_gc_head(a, p, a->stats.process_count > 1, &out);
        put_long_pauses(a, p, &out);
        if (!p->all.count)
            continue;
        put_rollup(p, &out);
        put_rows(a, p->process, &out);
    }
    put_triggers(a, &out);
    if (a->row_count < complete)
        buffer_format(&out, "the %zu with the longest pauses of %zu (--top 0 shows all)\n", a->row_count,
                      complete);
    if (a->stats.malformed)
        buffer_format(&out, "%s events are not what a runtime sends, and were left out\n",
                      units_count(a->stats.malformed).text);
    return question_print(&out, err);
}

static bool gc_run(struct question_call *call, struct error *err)
{
    struct gc_answer a = { 0 };
    if (!question_scope_init(&a.scope, call, err))
        return false;
    gc_stats_init(&a.stats, a.scope.trace, a.scope.from_ns, a.scope.to_ns);
    if (!question_was_asked(&a.scope, &question_gc, a.stats.any, err)) {
        gc_stats_done(&a.stats);
        return false;
    }
    event_stacks_init(&a.stacks, a.scope.trace, a.scope.raw_names, EVENT_CUT_NOTHING);
    event_stacks_init(&a.callers, a.scope.trace, a.scope.raw_names, EVENT_CUT_COLLECT);
    sum_triggers(&a);
    finalized_types_init(&a.finalized, a.scope.trace, a.scope.from_ns, a.scope.to_ns);
    bool table = !call->values->json && !call->values->csv;
    size_t complete = choose_rows(&a, report_top(call->values, table ? GC_ROWS_SHOWN : 0));
    bool ok = !sum_cpu(&a, err)    ? false
              : call->values->json ? question_gc_json(&a, err)
              : call->values->csv  ? question_gc_csv(&a, err)
                                   : put_text(&a, complete, err);
    free(a.rows);
    finalized_types_done(&a.finalized);
    event_groups_done(&a.by_trigger);
    event_tally_done(&a.triggers);
    event_stacks_done(&a.callers);
    event_stacks_done(&a.stacks);
    gc_stats_done(&a.stats);
    return ok;
}

static enum import_want gc_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return import_want_event(provider,
                             gc_stats_wants(provider, event_id) || finalized_types_wants(provider, event_id));
}

const struct question question_gc = {
    .name = "gc",
    .summary = "garbage collections: why, who began them, how long they paused, what they left",
    .names_code = true,
    .takes = QUESTION_TAKES_EVENTS,
    .wants = gc_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "gc",
    .keywords = RUNTIME_KEYWORD_GC,
    .level = GC_LEVEL,
    .run = gc_run,
};
