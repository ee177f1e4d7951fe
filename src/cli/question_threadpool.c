#include <inttypes.h>
#include <stdio.h>

#include "analyse/threadpool_stats.h"
#include "base/own.h"
#include "base/units.h"
#include "cli/csv_text.h"
#include "cli/json_put.h"
#include "cli/question_put.h"
#include "cli/standard_output.h"
#include "cli/text_table.h"
#include "clr/runtime_events.h"

enum { THREADPOOL_KEYWORD = 0x10000, THREADPOOL_LEVEL = 4, ADJUSTMENTS_SHOWN = 30, CELL_MAX = 64 };

extern const struct question question_threadpool;

struct pool_answer {
    struct question_scope scope;
    struct threadpool_stats stats;
};

static uint64_t all_adjustments(const struct threadpool_process *p)
{
    uint64_t all = 0;
    for (unsigned i = 0; i <= THREADPOOL_REASONS; i++)
        all += p->adjustments[i];
    return all;
}

static void put_process(struct json_writer *j, const struct pool_answer *a,
                        const struct threadpool_process *p)
{
    json_begin_object(j);
    question_json_process(j, &a->scope, p->process);
    json_put_known_u64(j, "most_workers", p->has_workers, p->most_workers);
    json_put_known_u64(j, "last_workers", p->has_workers, p->last_workers);
    json_put_known_u64(j, "min_workers", p->has_limits, p->min_workers);
    json_put_known_u64(j, "max_workers", p->has_limits, p->max_workers);
    json_put_u64(j, "started", p->started);
    json_put_u64(j, "stopped", p->stopped);
    json_put_u64(j, "adjustments", all_adjustments(p));
    json_put_u64(j, "starvation", p->adjustments[THREADPOOL_STARVATION]);
    json_put_u64(j, "cooperative_blocking", p->adjustments[THREADPOOL_COOPERATIVE_BLOCKING]);
    json_put_known_double(j, "first_starved_s", p->first_starved_ns,
                          capture_time_s(&a->scope.time, p->first_starved_ns));
    json_put_known_double(j, "last_starved_s", p->last_starved_ns,
                          capture_time_s(&a->scope.time, p->last_starved_ns));
    json_put_known_double(j, "throughput_max_per_s", p->throughput_max > 0, p->throughput_max);
    json_put_object(j, "by_reason");
    for (unsigned i = 0; i <= THREADPOOL_REASONS; i++)
        if (p->adjustments[i])
            json_put_u64(j, threadpool_reason_name(i), p->adjustments[i]);
    json_end_object(j);
    json_put_array(j, "workers");
    for (size_t i = 0; i < a->stats.level_count; i++) {
        const struct threadpool_level *level = &a->stats.levels[i];
        if (level->process != p->process)
            continue;
        json_begin_object(j);
        json_put_double(j, "start_s", capture_time_s(&a->scope.time, level->time_ns));
        json_put_u64(j, "count", level->workers);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void put_totals(struct json_writer *j, const struct pool_answer *a)
{
    uint64_t adjustments = 0, starvation = 0, cooperative = 0, most = 0;
    bool has_workers = false;
    for (size_t i = 0; i < a->stats.process_count; i++) {
        const struct threadpool_process *p = &a->stats.processes[i];
        adjustments += all_adjustments(p);
        starvation += p->adjustments[THREADPOOL_STARVATION];
        cooperative += p->adjustments[THREADPOOL_COOPERATIVE_BLOCKING];
        has_workers |= p->has_workers;
        most = p->most_workers > most ? p->most_workers : most;
    }
    json_put_object(j, "totals");
    json_put_u64(j, "adjustments", adjustments);
    json_put_u64(j, "starvation", starvation);
    json_put_u64(j, "cooperative_blocking", cooperative);
    json_put_known_u64(j, "most_workers", has_workers, most);
    json_put_u64(j, "lost", question_lost(&a->scope));
    json_put_u64(j, "malformed", a->stats.malformed);
    json_put_array(j, "processes");
    for (size_t i = 0; i < a->stats.process_count; i++)
        put_process(j, a, &a->stats.processes[i]);
    json_end_array(j);
    json_end_object(j);
}

static size_t rows_shown(const struct pool_answer *a)
{
    const struct report_values *v = a->scope.call->values;
    size_t top = report_top(v, v->json || v->csv ? 0 : ADJUSTMENTS_SHOWN);
    return top && top < a->stats.adjustment_count ? top : a->stats.adjustment_count;
}

static bool put_json(const struct pool_answer *a, struct error *err)
{
    struct buffer text;
    struct json_writer j;
    question_json_begin(&j, &text, &a->scope, "clrperf.report.threadpool/1");
    put_totals(&j, a);
    json_put_array(&j, "rows");
    for (size_t i = 0; i < rows_shown(a); i++) {
        const struct threadpool_adjustment *row = &a->stats.adjustments[i];
        json_begin_object(&j);
        question_json_process(&j, &a->scope, row->process);
        json_put_double(&j, "start_s", capture_time_s(&a->scope.time, row->time_ns));
        json_put_string(&j, "reason", threadpool_reason_name(row->reason));
        json_put_known_u64(&j, "workers_before", row->has_before, row->workers_before);
        json_put_u64(&j, "workers", row->workers);
        json_put_known_double(&j, "throughput_per_s", row->throughput >= 0, row->throughput);
        question_json_thread(&j, &a->scope, "thread", row->thread);
        json_end_object(&j);
    }
    json_end_array(&j);
    return question_json_end(&j, err);
}

static bool put_csv(const struct pool_answer *a, struct error *err)
{
    struct buffer out;
    struct csv_text csv;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv, "pid,start_s,reason,workers_before,workers,throughput_per_s");
    for (size_t i = 0; i < rows_shown(a); i++) {
        const struct threadpool_adjustment *row = &a->stats.adjustments[i];
        csv_u64(&csv, a->scope.trace->processes.rows[row->process].pid);
        csv_double(&csv, capture_time_s(&a->scope.time, row->time_ns));
        csv_string(&csv, threadpool_reason_name(row->reason));
        csv_known_u64(&csv, row->has_before, row->workers_before);
        csv_u64(&csv, row->workers);
        csv_known_double(&csv, row->throughput >= 0, row->throughput);
        csv_end_row(&csv);
    }
    return question_print(&out, err);
}

/* Active workers over the capture: the most in each part of it. */
static void put_strip(const struct pool_answer *a, uint32_t process, struct buffer *out)
{
    double counts[QUESTION_STRIP];
    double now = -1;
    size_t next = 0;
    for (size_t i = 0; i < QUESTION_STRIP; i++) {
        double to_s = (double)a->scope.shown.duration_ns / 1e9 * (double)(i + 1) / QUESTION_STRIP, most = now;
        for (; next < a->stats.level_count; next++) {
            const struct threadpool_level *level = &a->stats.levels[next];
            if (level->process != process)
                continue;
            if (capture_time_s(&a->scope.shown, level->time_ns) > to_s)
                break;
            now = level->workers;
            most = now > most ? now : most;
        }
        counts[i] = most;
    }
    buffer_string(out, "workers     ");
    question_strip(counts, QUESTION_STRIP, out);
}

static void put_head(const struct pool_answer *a, const struct threadpool_process *p, struct buffer *out)
{
    if (a->stats.process_count > 1) {
        buffer_u8(out, '\n');
        question_process(&a->scope, p->process, out);
        buffer_u8(out, '\n');
    }
    if (p->has_workers) {
        put_strip(a, p->process, out);
        buffer_format(out, "  0 to %" PRIu32 ", %" PRIu32 " at the end\n", p->most_workers, p->last_workers);
    }
    if (p->has_limits)
        buffer_format(out, "limits      %" PRIu32 " to %" PRIu32 " workers\n", p->min_workers,
                      p->max_workers);
    if (p->throughput_max > 0)
        buffer_format(out, "throughput  at most %.1f work items a second\n", p->throughput_max);
    buffer_format(out, "adjusted    %s times", units_count(all_adjustments(p)).text);
    const char *comma = ": ";
    for (unsigned i = 0; i <= THREADPOOL_REASONS; i++) {
        if (!p->adjustments[i])
            continue;
        buffer_format(out, "%s%s %s", comma, threadpool_reason_name(i), units_count(p->adjustments[i]).text);
        comma = ", ";
    }
    buffer_u8(out, '\n');
    if (p->first_starved_ns)
        buffer_format(out,
                      "starvation  from %.3f s to %.3f s: work items waited while all workers were busy or "
                      "blocked\n",
                      capture_time_s(&a->scope.time, p->first_starved_ns),
                      capture_time_s(&a->scope.time, p->last_starved_ns));
    if (p->adjustments[THREADPOOL_COOPERATIVE_BLOCKING])
        buffer_string(out, "blocking    work items waited for tasks, and workers were added for them\n");
}

static void put_rows(const struct pool_answer *a, struct buffer *out)
{
    static const struct text_column columns[] = {
        { "at s", TEXT_RIGHT },    { "from", TEXT_RIGHT },  { "to", TEXT_RIGHT },
        { "items/s", TEXT_RIGHT }, { "reason", TEXT_LEFT },
    };
    struct text_table table;
    char cell[CELL_MAX];
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < rows_shown(a); i++) {
        const struct threadpool_adjustment *row = &a->stats.adjustments[i];
        snprintf(cell, sizeof cell, "%.3f", capture_time_s(&a->scope.time, row->time_ns));
        text_table_add(&table, cell);
        snprintf(cell, sizeof cell, "%" PRIu32, row->workers_before);
        text_table_add(&table, row->has_before ? cell : NULL);
        snprintf(cell, sizeof cell, "%" PRIu32, row->workers);
        text_table_add(&table, cell);
        snprintf(cell, sizeof cell, "%.1f", row->throughput);
        text_table_add(&table, row->throughput >= 0 ? cell : NULL);
        text_table_add(&table, threadpool_reason_name(row->reason));
    }
    buffer_u8(out, '\n');
    if (table.cells)
        text_table_print(&table, stdout_width(), out);
    if (rows_shown(a) < a->stats.adjustment_count)
        buffer_format(out, "... %zu more (--top 0 shows all)\n", a->stats.adjustment_count - rows_shown(a));
    text_table_done(&table);
}

static bool put_text(const struct pool_answer *a, struct error *err)
{
    struct buffer out;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    question_head(&a->scope, &out);
    if (!a->stats.process_count)
        buffer_string(&out, "workers     nothing was told\n");
    for (size_t i = 0; i < a->stats.process_count; i++)
        put_head(a, &a->stats.processes[i], &out);
    question_wrap(&out, 0);
    put_rows(a, &out);
    return question_print(&out, err);
}

static bool threadpool_run(struct question_call *call, struct error *err)
{
    struct pool_answer a;
    if (!question_scope_init(&a.scope, call, err))
        return false;
    threadpool_stats_init(&a.stats, a.scope.trace, a.scope.from_ns, a.scope.to_ns);
    bool ok = question_was_asked(&a.scope, &question_threadpool, a.stats.any, err);
    if (ok)
        ok = call->values->json  ? put_json(&a, err)
             : call->values->csv ? put_csv(&a, err)
                                 : put_text(&a, err);
    threadpool_stats_done(&a.stats);
    return ok;
}

static enum import_want threadpool_wants(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    return import_want_event(provider, threadpool_stats_wants(provider, event_id));
}

const struct question question_threadpool = {
    .name = "threadpool",
    .summary = "how many workers the thread pool had, why that changed, whether it starved",
    .takes = QUESTION_TAKES_EVENTS,
    .wants = threadpool_wants,
    .provider = RUNTIME_PROVIDER,
    .record = "threadpool",
    .keywords = THREADPOOL_KEYWORD,
    .level = THREADPOOL_LEVEL,
    .run = threadpool_run,
};
