#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/jit_stats.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "cli/csv_text.h"
#include "cli/json_put.h"
#include "cli/question_put.h"
#include "cli/standard_output.h"
#include "cli/text_table.h"
#include "clr/runtime_events.h"

enum { JIT_LEVEL = 5, JIT_ROWS_SHOWN = 30, JIT_MODULES_SHOWN = 8, JIT_REASONS_SHOWN = 3, CELL_MAX = 64 };

extern const struct question question_jit;

struct jit_answer {
    struct question_scope scope;
    struct jit_stats stats;
    const struct jit_method **rows; /* those that are shown */
    size_t row_count;
};

static int by_time(const void *a, const void *b)
{
    const struct jit_method *x = *(const struct jit_method *const *)a,
                            *y = *(const struct jit_method *const *)b;
    if (x->own_ns != y->own_ns)
        return x->own_ns > y->own_ns ? -1 : 1;
    return (x > y) - (x < y);
}

/* In a table the ones that took longest; else all of them, as they came. */
static void choose_rows(struct jit_answer *a)
{
    const struct report_values *v = a->scope.call->values;
    bool table = !v->json && !v->csv;
    size_t top = report_top(v, table ? JIT_ROWS_SHOWN : 0);
    a->rows = mem_alloc(a->stats.row_count + 1, sizeof *a->rows);
    for (size_t i = 0; i < a->stats.row_count; i++)
        a->rows[i] = &a->stats.rows[i];
    if ((table || top) && a->stats.row_count)
        qsort(a->rows, a->stats.row_count, sizeof *a->rows, by_time);
    a->row_count = top && top < a->stats.row_count ? top : a->stats.row_count;
}

static void put_sum(struct json_writer *j, const struct jit_sum *sum)
{
    json_put_u64(j, "count", sum->count);
    json_put_known_double(j, "time_ms", sum->timed, question_ms(sum->time_ns));
    json_put_known_u64(j, "il_bytes", sum->timed, sum->il_bytes);
    json_put_u64(j, "native_bytes", sum->native_bytes);
}

static void put_totals(struct json_writer *j, const struct jit_answer *a)
{
    const struct jit_stats *s = &a->stats;
    json_put_object(j, "totals");
    put_sum(j, &s->all);
    json_put_u64(j, "timed", s->all.timed);
    json_put_u64(j, "unfinished", s->unfinished);
    json_put_known_u64(j, "inlined", s->inlined + s->not_inlined != 0, s->inlined);
    json_put_known_u64(j, "not_inlined", s->inlined + s->not_inlined != 0, s->not_inlined);
    json_put_u64(j, "lost", question_lost(&a->scope));
    json_put_u64(j, "malformed", s->malformed);
    json_put_object(j, "not_inlined_by");
    for (size_t i = 0; i < s->refusal_count; i++)
        json_put_u64(j, s->refusals[i].reason, s->refusals[i].count);
    json_end_object(j);
    json_put_array(j, "by_trigger");
    for (unsigned i = 0; i < JIT_TRIGGERS; i++) {
        json_begin_object(j);
        json_put_string(j, "trigger", jit_trigger_name((enum jit_trigger)i));
        put_sum(j, &s->by_trigger[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_put_array(j, "by_tier");
    for (unsigned i = 0; i < CODE_TIERS; i++) {
        if (!s->by_tier[i].count)
            continue;
        json_begin_object(j);
        json_put_string(j, "tier", code_tier_name((enum code_tier)i));
        put_sum(j, &s->by_tier[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_put_array(j, "by_module");
    for (size_t i = 0; i < s->module_count; i++) {
        json_begin_object(j);
        json_put_string(j, "module", *s->modules[i].name ? s->modules[i].name : NULL);
        put_sum(j, &s->modules[i].sum);
        json_put_bool(j, "precompiled", s->modules[i].is_precompiled);
        json_put_object(j, "precompilable");
        put_sum(j, &s->modules[i].ahead);
        json_end_object(j);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_row(struct json_writer *j, struct jit_answer *a, const struct jit_method *m)
{
    json_begin_object(j);
    question_json_process(j, &a->scope, m->process);
    json_put_string(j, "method", m->name);
    json_put_string(j, "module", *m->module ? m->module : NULL);
    json_put_string(j, "tier", code_tier_name((enum code_tier)m->tier));
    json_put_bool(j, "dynamic", m->is_dynamic);
    json_put_known_u64(j, "il_bytes", m->has_start, m->il_bytes);
    json_put_u64(j, "native_bytes", m->native_bytes);
    json_put_known_double(j, "time_ms", m->has_start, question_ms(m->time_ns));
    json_put_known_double(j, "own_ms", m->has_start, question_ms(m->own_ns));
    question_json_thread(j, &a->scope, "thread", m->thread);
    json_put_double(j, "start_s", capture_time_s(&a->scope.time, m->start_ns));
    json_put_string(j, "trigger", jit_trigger_name((enum jit_trigger)m->trigger));
    json_put_known_u64(j, "hot_bytes", m->has_memory, m->hot_bytes);
    json_put_known_u64(j, "read_only_bytes", m->has_memory, m->read_only_bytes);
    json_put_known_u64(j, "allocated_bytes", m->has_memory, m->allocated_bytes);
    question_json_stack(j, &a->stats.stacks, event_stacks_node(&a->stats.stacks, m->stack));
    json_end_object(j);
}

static bool put_json(struct jit_answer *a, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    question_json_begin(&j, &text, &a->scope, "clrperf.report.jit/1");
    put_totals(&j, a);
    json_put_array(&j, "rows");
    for (size_t i = 0; i < a->row_count; i++)
        put_row(&j, a, a->rows[i]);
    json_end_array(&j);
    return question_json_end(&j, err);
}

static bool put_csv(const struct jit_answer *a, struct error *err)
{
    struct buffer out;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv,
               "pid,start_s,method,module,tier,trigger,il_bytes,native_bytes,time_ms,own_ms,thread,hot_bytes,"
               "read_only_bytes,allocated_bytes");
    for (size_t i = 0; i < a->row_count; i++) {
        const struct jit_method *m = a->rows[i];
        csv_u64(&csv, a->scope.trace->processes.rows[m->process].pid);
        csv_double(&csv, capture_time_s(&a->scope.time, m->start_ns));
        csv_string(&csv, m->name);
        csv_string(&csv, m->module);
        csv_string(&csv, code_tier_name((enum code_tier)m->tier));
        csv_string(&csv, jit_trigger_name((enum jit_trigger)m->trigger));
        csv_known_u64(&csv, m->has_start, m->il_bytes);
        csv_u64(&csv, m->native_bytes);
        csv_known_double(&csv, m->has_start, question_ms(m->time_ns));
        csv_known_double(&csv, m->has_start, question_ms(m->own_ns));
        csv_known_u64(&csv, m->thread != 0, a->scope.trace->threads.rows[m->thread].tid);
        csv_known_u64(&csv, m->has_memory, m->hot_bytes);
        csv_known_u64(&csv, m->has_memory, m->read_only_bytes);
        csv_known_u64(&csv, m->has_memory, m->allocated_bytes);
        csv_end_row(&csv);
    }
    return question_print(&out, err);
}

static void put_inlining(const struct jit_stats *s, struct buffer *out)
{
    buffer_format(out, "inlining    %s calls inlined, %s not", units_count(s->inlined).text,
                  units_count(s->not_inlined).text);
    for (size_t i = 0; i < s->refusal_count && i < JIT_REASONS_SHOWN; i++)
        buffer_format(out, "%s%s %s", i ? ", " : ": ", s->refusals[i].reason,
                      units_count(s->refusals[i].count).text);
    buffer_u8(out, '\n');
}

/* Of modules that are precompiled, or of those that are not: what a thread waited for, and where it was most.
 */
static const struct jit_module *sum_ahead(const struct jit_stats *s, bool precompiled, struct jit_sum *out)
{
    const struct jit_module *most = NULL;
    *out = (struct jit_sum){ 0 };
    for (size_t i = 0; i < s->module_count; i++) {
        const struct jit_module *m = &s->modules[i];
        if (m->is_precompiled != precompiled)
            continue;
        out->count += m->ahead.count;
        out->time_ns += m->ahead.time_ns;
        if (m->ahead.timed && (!most || m->ahead.time_ns > most->ahead.time_ns))
            most = m;
    }
    return most;
}

/*
 * What PublishReadyToRun would spare: methods of assemblies, compiled while a thread waited. Code that
 * precompiled modules leave to the JIT it does not: generics over types of others, code for newer CPUs.
 */
static void put_ahead(const struct jit_stats *s, struct buffer *out)
{
    for (unsigned precompiled = 0; precompiled < 2; precompiled++) {
        struct jit_sum all;
        const struct jit_module *most = sum_ahead(s, precompiled, &all);
        if (!most)
            continue;
        buffer_format(out, "%s %s methods%s took %s while a thread waited, most of it %s%s\n",
                      precompiled ? "left out   " : "precompile ", units_count(all.count).text,
                      precompiled ? " of precompiled modules" : "", units_duration(all.time_ns).text,
                      *most->name ? most->name : "of an unknown module",
                      precompiled ? "" : ": PublishReadyToRun does it ahead");
    }
}

static void put_head(const struct jit_answer *a, struct buffer *out)
{
    const struct jit_stats *s = &a->stats;
    question_head(&a->scope, out);
    buffer_format(out, "compiled    %s", s->all.count ? units_count(s->all.count).text : "none");
    if (s->all.count)
        buffer_format(out, " method%s, %s of native code", s->all.count == 1 ? "" : "s",
                      units_size(s->all.native_bytes).text);
    if (s->all.timed)
        buffer_format(out, " from %s of IL, in %s", units_size(s->all.il_bytes).text,
                      units_duration(s->all.time_ns).text);
    if (s->all.timed < s->all.count)
        buffer_format(out, "; the time of %s is not known", units_count(s->all.count - s->all.timed).text);
    buffer_u8(out, '\n');
    if (s->inlined + s->not_inlined)
        put_inlining(s, out);
    put_ahead(s, out);
    question_wrap(out, 0);
}

static void add_sum(struct text_table *table, const char *what, const char *name, const struct jit_sum *sum)
{
    text_table_add(table, what);
    text_table_add(table, sum->timed ? units_duration(sum->time_ns).text : NULL);
    text_table_add(table, units_count(sum->count).text);
    text_table_add(table, sum->timed ? units_size(sum->il_bytes).text : NULL);
    text_table_add(table, units_size(sum->native_bytes).text);
    text_table_add(table, name);
}

static const char *module_label(const struct jit_module *m)
{
    return *m->name ? m->name : m->dynamic == m->sum.count ? "[dynamic]" : "[unknown]";
}

static void put_sums(const struct jit_answer *a, struct buffer *out)
{
    static const struct text_column columns[] = {
        { "by", TEXT_LEFT },     { "time", TEXT_RIGHT },   { "methods", TEXT_RIGHT },
        { "IL", TEXT_RIGHT, 1 }, { "native", TEXT_RIGHT }, { "", TEXT_LEFT },
    };
    const struct jit_stats *s = &a->stats;
    struct text_table table;
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (unsigned i = 0; i < JIT_TRIGGERS; i++)
        if (s->by_trigger[i].count)
            add_sum(&table, "trigger", jit_trigger_name((enum jit_trigger)i), &s->by_trigger[i]);
    for (unsigned i = 0; i < CODE_TIERS; i++)
        if (s->by_tier[i].count)
            add_sum(&table, "tier", code_tier_name((enum code_tier)i), &s->by_tier[i]);
    for (size_t i = 0; i < s->module_count && i < JIT_MODULES_SHOWN; i++)
        add_sum(&table, "module", module_label(&s->modules[i]), &s->modules[i].sum);
    buffer_u8(out, '\n');
    if (table.cells)
        text_table_print(&table, stdout_width(), out);
    text_table_done(&table);
}

static void add_row(const struct jit_answer *a, struct text_table *table, const struct jit_method *m)
{
    char cell[CELL_MAX];
    text_table_add(table, m->has_start ? units_duration(m->own_ns).text : NULL);
    snprintf(cell, sizeof cell, "%.3f", capture_time_s(&a->scope.time, m->start_ns));
    text_table_add(table, cell);
    snprintf(cell, sizeof cell, "%" PRIu32, m->il_bytes);
    text_table_add(table, m->has_start ? cell : NULL);
    snprintf(cell, sizeof cell, "%" PRIu32, m->native_bytes);
    text_table_add(table, cell);
    text_table_add(table, code_tier_name((enum code_tier)m->tier));
    text_table_add(table, jit_trigger_name((enum jit_trigger)m->trigger));
    text_table_add(table, m->module);
    text_table_add(table, m->name);
}

static bool put_text(const struct jit_answer *a, struct error *err)
{
    static const struct text_column columns[] = {
        { "time", TEXT_RIGHT },   { "at s", TEXT_RIGHT, 1 }, { "IL", TEXT_RIGHT, 3 },
        { "native", TEXT_RIGHT }, { "tier", TEXT_LEFT },     { "trigger", TEXT_LEFT, 2 },
        { "module", TEXT_LEFT },  { "method", TEXT_LEFT },
    };
    struct buffer out;
    struct text_table table;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    put_head(a, &out);
    put_sums(a, &out);
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < a->row_count; i++)
        add_row(a, &table, a->rows[i]);
    buffer_u8(&out, '\n');
    if (table.cells)
        text_table_print(&table, stdout_width(), &out);
    if (a->row_count < a->stats.row_count)
        buffer_format(&out, "the %zu that took longest of %zu (--top 0 shows all)\n", a->row_count,
                      a->stats.row_count);
    text_table_done(&table);
    return question_print(&out, err);
}

static bool jit_run(struct question_call *call, struct error *err)
{
    struct jit_answer a = { 0 };
    if (!question_scope_init(&a.scope, call, err))
        return false;
    jit_stats_init(&a.stats, a.scope.trace, a.scope.raw_names, a.scope.from_ns, a.scope.to_ns);
    bool ok = question_was_asked(&a.scope, &question_jit, a.stats.any, err);
    if (ok) {
        choose_rows(&a);
        ok = call->values->json  ? put_json(&a, err)
             : call->values->csv ? put_csv(&a, err)
                                 : put_text(&a, err);
        free(a.rows);
    }
    jit_stats_done(&a.stats);
    return ok;
}

static enum import_want jit_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return import_want_event(provider, jit_stats_wants(provider, event_id));
}

const struct question question_jit = {
    .name = "jit",
    .summary = "methods that were compiled: how long it took, at which tier, who wanted them",
    .names_code = true,
    .takes = QUESTION_TAKES_EVENTS,
    .wants = jit_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "jit",
    .keywords = RUNTIME_KEYWORD_JIT,
    .level = JIT_LEVEL,
    .run = jit_run,
};
