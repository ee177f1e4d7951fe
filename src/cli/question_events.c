#include "cli/question_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob_text.h"
#include "base/mem.h"
#include "base/units.h"
#include "cli/csv_text.h"
#include "cli/event_fields.h"
#include "cli/event_parts.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/text_table.h"
#include "clr/event_catalogue.h"
#include "clr/provider_names.h"

enum { ROWS_SHOWN = 30, ROWS_AT_ONCE = 1000, FRAMES_SHOWN = 32, CELL_BYTES_MAX = 16 << 20 };

/* ---- one event's cells ---- */

static const char *cell_text(struct buffer *cell)
{
    buffer_u8(cell, 0);
    return cell->failed ? "[too long]" : (const char *)cell->data;
}

/* The runtime's own events are known by their names; those of others say whose they are. */
static void cell_event(const struct events_answer *a, const struct event_schema *s, uint32_t event,
                       struct buffer *cell)
{
    const char *provider = trace_string(a->scope.trace, events_type(a, event)->provider);
    if (strncmp(provider, RUNTIME_PROVIDER, strlen(RUNTIME_PROVIDER)) != 0)
        buffer_format(cell, "%s ", provider);
    buffer_string(cell, event_schema_name(s));
}

static void cell_fields(const struct event_schema *s, struct span payload, struct buffer *cell)
{
    event_fields_text(s, payload, cell);
    if (payload.size && event_schema_fields(s) == 0)
        event_bytes_hex(payload, cell);
}

static void cell_thread(const struct events_answer *a, uint32_t thread, struct buffer *cell)
{
    if (thread)
        buffer_format(cell, "%" PRIu32, a->scope.trace->threads.rows[thread].tid);
}

/* Native frames are a sample's: which one is said. */
static void cell_stack(struct events_answer *a, const struct trace_event *row, struct buffer *cell)
{
    struct native_leaf leaf;
    buffer_string(cell, "  at ");
    question_stack_text(&a->stacks, event_stacks_node(&a->stacks, row->stack), FRAMES_SHOWN, cell);
    if (!native_leaf_find(&a->leaves, row, &leaf))
        return;
    uint64_t ns = (uint64_t)(leaf.after_ns < 0 ? -leaf.after_ns : leaf.after_ns);
    buffer_format(cell, "; below, by a sample %s %s: ", units_duration(ns).text,
                  leaf.after_ns < 0 ? "before" : "after");
    for (size_t i = 0; i < leaf.count; i++) {
        buffer_string(cell, i ? " < " : "");
        buffer_string(cell, native_leaf_frame(&a->leaves, &leaf, i)->name);
    }
}

/* ---- table ---- */

static void table_row(struct events_answer *a, struct text_table *table, uint32_t event, bool processes,
                      struct buffer *cell)
{
    const struct trace *t = a->scope.trace;
    const struct trace_event *row = &t->events.rows[event];
    const struct event_schema *s = event_query_schema(&a->query, event);
    struct span payload = trace_event_payload(t, row);
    char time[40];
    snprintf(time, sizeof time, "%.6f", capture_time_s(&a->scope.time, row->time_ns));
    text_table_add(table, time);
    buffer_clear(cell);
    if (processes) {
        question_process(&a->scope, row->process, cell);
        text_table_add(table, cell_text(cell));
        buffer_clear(cell);
    }
    cell_thread(a, row->thread, cell);
    text_table_add(table, cell_text(cell));
    buffer_clear(cell);
    cell_event(a, s, event, cell);
    text_table_add(table, cell_text(cell));
    for (size_t i = 0; i < a->wanted.column_count; i++) {
        buffer_clear(cell);
        event_field_text(s, payload, a->wanted.columns[i], cell);
        text_table_add(table, cell_text(cell));
    }
    buffer_clear(cell);
    if (!a->wanted.column_count)
        cell_fields(s, payload, cell);
    if (a->stacks_shown && row->stack >= STACK_ROOTS)
        cell_stack(a, row, cell);
    if (!a->wanted.column_count || a->stacks_shown)
        text_table_add(table, cell_text(cell));
}

static size_t table_columns(const struct events_answer *a, bool processes, struct text_column *out)
{
    size_t count = 0;
    out[count++] = (struct text_column){ "time s", TEXT_RIGHT };
    if (processes)
        out[count++] = (struct text_column){ "process", TEXT_LEFT };
    out[count++] = (struct text_column){ "thread", TEXT_RIGHT };
    out[count++] = (struct text_column){ "event", TEXT_LEFT };
    for (size_t i = 0; i < a->wanted.column_count; i++)
        out[count++] = (struct text_column){ a->wanted.columns[i], TEXT_LEFT };
    if (!a->wanted.column_count || a->stacks_shown)
        out[count++] = (struct text_column){ a->wanted.column_count ? "stack" : "fields", TEXT_LEFT };
    return count;
}

/* Up to so many rows. Their number. */
static uint64_t table_part(struct events_answer *a, const struct text_column *columns, size_t column_count,
                           bool processes, uint64_t most, struct buffer *out)
{
    struct text_table table;
    struct buffer cell;
    uint64_t rows = 0;
    text_table_init(&table, columns, column_count);
    buffer_init(&cell, CELL_BYTES_MAX);
    for (uint32_t event = 0; rows < most && (event = event_query_next(&a->query)); rows++)
        table_row(a, &table, event, processes, &cell);
    if (rows)
        text_table_print(&table, stdout_width(), out);
    buffer_done(&cell);
    text_table_done(&table);
    return rows;
}

/* Part by part, as there may be millions; each with its titles. */
static bool events_table(struct events_answer *a, struct error *err)
{
    struct text_column columns[EVENT_COLUMNS_MAX + 5];
    bool processes = a->has_processes, ok = true;
    size_t column_count = table_columns(a, processes, columns);
    struct buffer out;
    uint64_t rows = ROWS_AT_ONCE;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    if (a->is_first) {
        question_head(&a->scope, &out);
        buffer_u8(&out, '\n');
    }
    while (ok && rows == ROWS_AT_ONCE && (!a->top || a->shown < a->top)) {
        uint64_t most = a->top && a->top - a->shown < ROWS_AT_ONCE ? a->top - a->shown : ROWS_AT_ONCE;
        rows = table_part(a, columns, column_count, processes, most, &out);
        a->shown += rows;
        ok = stdout_text(&out, err);
        buffer_clear(&out);
    }
    while (ok && event_query_next(&a->query))
        a->more++;
    if (a->is_last && !a->shown)
        buffer_string(&out, "no such events\n");
    if (a->is_last && a->more)
        buffer_format(&out, "%s more; --top 0 shows all, --counts how many of each kind\n",
                      units_count(a->more).text);
    return question_print(&out, ok ? err : NULL) && ok;
}

/* A number that names something, and counts nothing. */
static struct units_text number_text(uint32_t number)
{
    struct units_text out;
    snprintf(out.text, sizeof out.text, "%" PRIu32, number);
    return out;
}

static struct units_text rate_text(const struct events_answer *a, const struct event_count *row)
{
    struct units_text out;
    double rate = events_per_s(a, row);
    snprintf(out.text, sizeof out.text, rate < 10 ? "%.2f" : "%.0f", rate);
    return out;
}

/* Fewer bars than slices: a line has to hold more. */
static void counts_strip(const struct event_count *row, struct buffer *out)
{
    enum { BARS = 20, SLICES = EVENT_COUNTS_SLICES / BARS };
    double bars[BARS];
    for (size_t i = 0; i < BARS; i++) {
        bars[i] = 0;
        for (size_t k = 0; k < SLICES; k++)
            bars[i] += row->when[i * SLICES + k];
        if (bars[i] == 0)
            bars[i] = -1; /* none is not few */
    }
    question_strip(bars, BARS, out);
}

static bool counts_table(struct events_answer *a, struct error *err)
{
    static const struct text_column columns[] = {
        { "events", TEXT_RIGHT },        { "per s", TEXT_RIGHT, 3 },    { "when", TEXT_LEFT },
        { "with stack", TEXT_RIGHT, 4 }, { "payloads", TEXT_RIGHT, 2 }, { "mean", TEXT_RIGHT, 5 },
        { "id", TEXT_RIGHT, 1 },         { "version", TEXT_RIGHT, 6 },  { "event", TEXT_LEFT },
        { "provider", TEXT_LEFT },
    };
    struct event_count *rows;
    size_t count = event_counts_take(&a->query, a->from_ns, a->duration_ns, &rows);
    struct text_table table;
    struct buffer out, when;
    text_table_init(&table, columns, sizeof columns / sizeof *columns);
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&when, CELL_BYTES_MAX);
    question_head(&a->scope, &out);
    buffer_u8(&out, '\n');
    for (size_t i = 0; i < count && (!a->top || i < a->top); i++) {
        text_table_add(&table, units_count(rows[i].count).text);
        text_table_add(&table, rate_text(a, &rows[i]).text);
        buffer_clear(&when);
        counts_strip(&rows[i], &when);
        text_table_add(&table, cell_text(&when));
        text_table_add(&table, units_count(rows[i].with_stack).text);
        text_table_add(&table, units_size(rows[i].payload_bytes).text);
        text_table_add(&table, units_size(rows[i].payload_bytes / rows[i].count).text);
        text_table_add(&table, number_text(rows[i].id).text);
        text_table_add(&table, number_text(rows[i].version).text);
        text_table_add(&table, rows[i].event);
        text_table_add(&table, rows[i].provider);
    }
    text_table_print(&table, stdout_width(), &out);
    text_table_done(&table);
    buffer_done(&when);
    free(rows);
    return question_print(&out, err);
}

/* ---- CSV ---- */

static void csv_native(struct events_answer *a, struct csv_text *csv, const struct trace_event *row,
                       struct buffer *cell)
{
    struct native_leaf leaf;
    bool found = native_leaf_find(&a->leaves, row, &leaf);
    buffer_clear(cell);
    for (size_t i = found ? leaf.count : 0; i-- > 0;) {
        question_frame(native_leaf_frame(&a->leaves, &leaf, i), cell);
        buffer_string(cell, i ? ";" : "");
    }
    csv_string(csv, cell_text(cell));
    csv_known_double(csv, found, found ? (double)leaf.after_ns / 1e6 : 0);
}

static void csv_row(struct events_answer *a, struct csv_text *csv, uint32_t event, struct buffer *cell)
{
    const struct trace *t = a->scope.trace;
    const struct trace_event *row = &t->events.rows[event];
    const struct trace_event_type *type = events_type(a, event);
    const struct event_schema *s = event_query_schema(&a->query, event);
    struct span payload = trace_event_payload(t, row);
    char time[40];
    snprintf(time, sizeof time, "%.9f", capture_time_s(&a->scope.time, row->time_ns));
    csv_string(csv, time);
    csv_string(csv, trace_string(t, t->processes.rows[row->process].name));
    csv_known_u64(csv, row->process != 0, t->processes.rows[row->process].pid);
    csv_known_u64(csv, row->thread != 0, t->threads.rows[row->thread].tid);
    csv_string(csv, trace_string(t, type->provider));
    csv_string(csv, event_schema_name(s));
    csv_u64(csv, type->event_id);
    csv_u64(csv, type->version);
    for (size_t i = 0; i < a->wanted.column_count; i++) {
        buffer_clear(cell);
        event_field_text(s, payload, a->wanted.columns[i], cell);
        csv_string(csv, cell_text(cell));
    }
    if (!a->wanted.column_count) {
        buffer_clear(cell);
        cell_fields(s, payload, cell);
        csv_string(csv, cell_text(cell));
    }
    if (a->stacks_shown) {
        buffer_clear(cell);
        question_stack_csv(&a->stacks, event_stacks_node(&a->stacks, row->stack), cell);
        csv_string(csv, cell_text(cell));
        csv_native(a, csv, row, cell);
    }
    csv_end_row(csv);
}

static void csv_head(const struct events_answer *a, struct csv_text *csv)
{
    static const char *const titles[] = { "time_s",   "process", "pid", "thread",
                                          "provider", "event",   "id",  "version" };
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        csv_string(csv, titles[i]);
    for (size_t i = 0; i < a->wanted.column_count; i++)
        csv_string(csv, a->wanted.columns[i]);
    if (!a->wanted.column_count)
        csv_string(csv, "fields");
    if (a->stacks_shown) {
        csv_string(csv, "stack");
        csv_string(csv, "native_stack");
        csv_string(csv, "native_after_ms");
    }
    csv_end_row(csv);
}

static bool events_csv(struct events_answer *a, struct error *err)
{
    struct buffer out, cell;
    struct csv_text csv;
    uint32_t event;
    bool ok = true;
    buffer_init(&out, OUTPUT_BYTES_MAX);
    buffer_init(&cell, CELL_BYTES_MAX);
    csv_init(&csv, &out);
    if (a->is_first)
        csv_head(a, &csv);
    while (ok && (!a->top || a->shown < a->top) && (event = event_query_next(&a->query))) {
        csv_row(a, &csv, event, &cell);
        a->shown++;
        if (out.size < JSON_FLUSH_BYTES)
            continue;
        ok = stdout_text(&out, err);
        buffer_clear(&out);
    }
    buffer_done(&cell);
    return question_print(&out, ok ? err : NULL) && ok;
}

static bool counts_csv(struct events_answer *a, struct error *err)
{
    struct buffer out;
    struct csv_text csv;
    struct event_count *rows;
    size_t count = event_counts_take(&a->query, a->from_ns, a->duration_ns, &rows);
    buffer_init(&out, OUTPUT_BYTES_MAX);
    csv_init(&csv, &out);
    csv_titles(&csv, "provider,event,id,version,count,per_s,with_stack,payload_bytes");
    for (size_t i = 0; i < count && (!a->top || i < a->top); i++) {
        csv_string(&csv, rows[i].provider);
        csv_string(&csv, rows[i].event);
        csv_u64(&csv, rows[i].id);
        csv_u64(&csv, rows[i].version);
        csv_u64(&csv, rows[i].count);
        csv_known_double(&csv, a->duration_ns != 0, events_per_s(a, &rows[i]));
        csv_u64(&csv, rows[i].with_stack);
        csv_u64(&csv, rows[i].payload_bytes);
        csv_end_row(&csv);
    }
    free(rows);
    return question_print(&out, err);
}

/* ---- the question ---- */

static bool events_check(const struct report_values *v, struct error *err)
{
    struct event_wanted wanted;
    struct profile_options options;
    if (!profile_choice_options(&v->choice, &options, err) || !event_wanted_read(&v->events, &wanted, err))
        return false;
    event_wanted_done(&wanted);
    if (v->events.counts && (v->events.columns || v->events.stacks)) {
        error_set(err, ERROR_USAGE, "--counts shows neither fields nor stacks");
        return error_hint(err, "leave --counts out");
    }
    return true;
}

static bool events_print(struct events_answer *a, const struct report_values *v, struct error *err)
{
    if (v->events.counts)
        return v->json  ? question_events_json_counts(a, err)
               : v->csv ? counts_csv(a, err)
                        : counts_table(a, err);
    return v->json ? question_events_json(a, err) : v->csv ? events_csv(a, err) : events_table(a, err);
}

static void warn_unknown_field(struct events_answer *a, const char *field, const char *option)
{
    enum { NAMES_MAX = 4096 };
    const char **names = mem_alloc(NAMES_MAX, sizeof *names);
    const char *close = option_suggest(field, names, event_query_fields(&a->query, names, NAMES_MAX));
    if (close)
        message_warning("none of these events has a field '%s' (%s); did you mean '%s'?", field, option,
                        close);
    else
        message_warning(
            "none of these events has a field '%s' (%s); the table without %s shows what they have", field,
            option, option);
    free(names);
}

/* Of events that come in parts the last one tells of fields that none of them had. */
static void events_warn(struct events_answer *a)
{
    for (size_t i = 0; i < a->wanted.condition_count; i++)
        a->conditions_known[i] |= event_query_has_field(&a->query, a->wanted.conditions[i].field);
    for (size_t i = 0; i < a->wanted.column_count; i++)
        a->columns_known[i] |= event_query_has_field(&a->query, a->wanted.columns[i]);
    for (size_t i = 0; a->is_last && i < a->wanted.condition_count; i++)
        if (!a->conditions_known[i])
            warn_unknown_field(a, a->wanted.conditions[i].field, "--where");
    for (size_t i = 0; a->is_last && i < a->wanted.column_count; i++)
        if (!a->columns_known[i])
            warn_unknown_field(a, a->wanted.columns[i], "--columns");
}

/* Answers for what is in memory: all, or a part of it. */
static bool events_answer_part(struct events_answer *a, const struct question_call *call, struct error *err)
{
    const struct report_values *v = call->values;
    if (!question_scope_of_part(&a->scope, call, err) || !event_wanted_read(&v->events, &a->wanted, err))
        return false;
    const struct event_wish wish = {
        .provider = v->events.provider,
        .event = v->choice.event,
        .who = v->choice.who,
        .text = v->events.text,
        /* all that was told, also before the recording's start, unless some time is asked for */
        .from_ns = a->scope.from_ns > a->scope.time.start_ns ? a->scope.from_ns : 0,
        .to_ns = a->scope.to_ns,
        .conditions = a->wanted.conditions,
        .condition_count = a->wanted.condition_count,
    };
    a->from_ns = a->scope.from_ns;
    uint64_t end_ns = a->scope.to_ns ? a->scope.to_ns : a->scope.time.start_ns + a->scope.time.duration_ns;
    a->duration_ns = end_ns > a->from_ns ? end_ns - a->from_ns : 0;
    event_query_init(&a->query, a->scope.trace, &wish, !v->events.counts);
    event_stacks_init(&a->stacks, a->scope.trace, a->scope.raw_names, EVENT_CUT_NOTHING);
    native_leaves_init(&a->leaves, &a->stacks, a->scope.trace);
    bool ok = events_print(a, v, err);
    if (ok)
        events_warn(a);
    native_leaves_done(&a->leaves);
    event_stacks_done(&a->stacks);
    event_query_done(&a->query);
    event_wanted_done(&a->wanted);
    return ok;
}

struct events_course {
    const struct question_call *call;
    struct events_answer answer;
};

static bool events_part(void *user, const struct capture *part, bool is_last, struct error *err)
{
    struct events_course *course = user;
    struct question_call call = *course->call;
    call.capture = part;
    course->answer.is_last = is_last;
    bool ok = events_answer_part(&course->answer, &call, err);
    course->answer.is_first = false;
    return ok;
}

/* Whether --provider and --event leave this event out, as far as its name is known before it is read. */
static bool events_left_out(const struct report_values *v, const char *provider, uint32_t event_id)
{
    const char *event = v->choice.event;
    if (v->events.provider && !glob_matches(v->events.provider, provider))
        return true;
    const struct catalogue_event *known = event_catalogue_find(provider, event_id, true);
    return event && known && !glob_matches_number(event, event_id, known->name);
}

/* Counts need no event in memory, unless a filter looks at it: a file may be larger than that. */
static enum import_want events_want(const void *user, const char *provider, uint32_t event_id)
{
    const struct report_values *v = user;
    const struct event_choice *c = &v->events;
    bool all = !v->choice.who.process && !v->choice.who.thread && !c->text && !c->where.count &&
               !v->choice.event && !v->choice.time;
    if (events_left_out(v, provider, event_id))
        return IMPORT_NOTHING;
    return c->counts && all ? IMPORT_COUNTS : IMPORT_PAYLOADS;
}

static bool events_run(struct question_call *call, struct error *err)
{
    const struct report_values *v = call->values;
    bool table = !v->events.counts && !v->json && !v->csv, in_parts = call->part && call->part->overflowed;
    struct question_scope whole;
    if (!question_scope_init(&whole, call, err))
        return false;
    struct events_course course = {
        .call = call,
        .answer = { .stacks_shown = v->events.stacks,
                    .top = report_top(v, table ? ROWS_SHOWN : 0),
                    /* which processes have events is not known before the last part */
                    .has_processes =
                        in_parts ? whole.trace->processes.count > 2 : question_has_processes(&whole),
                    .is_first = true },
    };
    if (!in_parts)
        return events_part(&course, call->capture, true, err);
    const struct event_parts parts = { .path = call->capture->path,
                                       .wants = events_want,
                                       .values = v,
                                       .names_code = true,
                                       .events_max = call->part->events_max,
                                       .part = events_part,
                                       .user = &course };
    return event_parts_each(&parts, call->part, err);
}

extern const struct question question_events;
const struct question question_events = {
    .name = "events",
    .summary = "the events of .NET runtimes and event sources, with their fields",
    .names_code = true,
    .takes = QUESTION_TAKES_EVENTS " event counts samples provider thread text where columns stacks",
    .in_parts = true,
    .wants = events_want,
    .check = events_check,
    .run = events_run,
};
