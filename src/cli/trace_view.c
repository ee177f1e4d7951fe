#include "cli/trace_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyse/gc_stats.h"
#include "base/own.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/event_fields.h"
#include "cli/json_put.h"
#include "cli/text_table.h"
#include "clr/runtime_events.h"
#include "collect/proc_file.h"

enum {
    CHAINS = 64,
    TEXT_BYTES_MAX = 4096, /* of a type or a message */
    SCRATCH_BYTES_MAX = 1 << 20,
    INTERVAL_TYPES = 5,
    SUMMARY_TYPES = 10,
    EVENTS_KEPT_MAX = 4 * TRACE_PRINTED_GCS, /* what waits for the end of a collection that is never told */
    EXCEPTION_THROWN = 80,
    HOSTING_START = 3,
    HOSTING_STOP = 4,
    HTTP_START = 1,
    HTTP_STOP = 2,
    HTTP_FAILED = 3,
};

#define HOSTING_PROVIDER "Microsoft.AspNetCore.Hosting"
#define HTTP_PROVIDER    "System.Net.Http"

void trace_view_init(struct trace_view *view, const bool topics[TRACE_TOPICS], uint64_t interval_ns,
                     struct buffer *out)
{
    *view = (struct trace_view){ .interval_ns = interval_ns, .out = out };
    memcpy(view->topics, topics, sizeof view->topics);
    trace_builder_init(&view->b, CHAINS);
    event_schemas_init(&view->schemas, &view->b.trace);
    buffer_init(&view->scratch, SCRATCH_BYTES_MAX);
    name_tally_init(&view->allocated);
    name_tally_init(&view->interval_allocated);
    name_tally_init(&view->thrown);
}

void trace_view_done(struct trace_view *view)
{
    event_schemas_done(&view->schemas);
    trace_requests_done(&view->requests);
    buffer_done(&view->scratch);
    name_tally_done(&view->allocated);
    name_tally_done(&view->interval_allocated);
    name_tally_done(&view->thrown);
    trace_builder_done(&view->b);
}

/* "   1.234 s  gc         ": the beginning of a line. */
static void begin_line(struct trace_view *view, uint64_t time_ns, const char *topic)
{
    double at_s = time_ns > view->start_ns ? (double)(time_ns - view->start_ns) / 1e9 : 0;
    buffer_format(view->out, "%9.3f s  %-10s", at_s, topic);
}

/* A text of the target's, fit for a terminal. */
static void put_text(struct trace_view *view, struct span text)
{
    utf8_escape(view->out, text);
}

/* A field that is a text, as UTF-8; empty when there is none. */
static void field_text(const struct event_schema *s, struct span payload, const char *field,
                       struct buffer *out)
{
    struct event_value value;
    if (event_schema_read(s, payload, event_schema_field(s, field), &value))
        event_value_append_text(out, &value);
}

/* Collections. */

static bool is_printed(const struct trace_view *view, uint32_t number)
{
    for (size_t i = 0; i < TRACE_PRINTED_GCS; i++)
        if (view->printed[i] == number + 1)
            return true;
    return false;
}

static void gc_line(struct trace_view *view, const struct gc_record *row)
{
    static const char *const kinds[] = { "", " in the background", " during one in the background" };
    const char *reason = gc_reason_name(row->reason);
    begin_line(view, row->end_ns ? row->end_ns : row->start_ns, "gc");
    buffer_format(view->out, "#%" PRIu32 " gen %u%s: paused %s", row->number, row->generation,
                  kinds[row->kind], units_duration(row->pause_ns).text);
    buffer_format(view->out, " (stopping %s)", units_duration(row->suspend_ns).text);
    if (reason)
        buffer_format(view->out, ", %s", reason);
    if (row->has_before && row->has_stats)
        buffer_format(view->out, "; heap %s -> %s", units_size(row->heap_before).text,
                      units_size(row->heap_after).text);
    if (row->has_stats)
        buffer_format(view->out, ", promoted %s", units_size(row->promoted).text);
    buffer_u8(view->out, '\n');
}

static void heap_line(struct trace_view *view, const struct gc_record *row)
{
    static const char *const names[GC_EVENT_GENS] = { "gen 0", "gen 1", "gen 2", "large", "pinned" };
    if (!row->has_stats)
        return;
    begin_line(view, row->end_ns ? row->end_ns : row->start_ns, "heap");
    buffer_string(view->out, units_size(row->heap_after).text);
    for (unsigned gen = 0; gen < GC_EVENT_GENS; gen++)
        buffer_format(view->out, "%s%s %s", gen ? ", " : ": ", names[gen],
                      units_size(row->stats.size_bytes[gen]).text);
    buffer_u8(view->out, '\n');
}

static void add_collection(struct trace_view *view, const struct gc_record *row)
{
    view->printed[view->printed_at++ % TRACE_PRINTED_GCS] = row->number + 1;
    view->sums.collections[row->generation < 3 ? row->generation : 2]++;
    view->sums.pauses += row->pauses;
    view->sums.paused_ns += row->pause_ns;
    if (row->pause_ns > view->sums.longest_ns)
        view->sums.longest_ns = row->pause_ns;
    if (view->topics[TRACE_GC])
        gc_line(view, row);
    if (view->topics[TRACE_HEAP])
        heap_line(view, row);
}

static void forget_events(struct trace *t)
{
    t->events.count = 1;
    t->event_activities.count = 1;
    buffer_clear(&t->payloads);
}

/* Threads go on: what collections ended by now? */
static void take_collections(struct trace_view *view)
{
    struct gc_stats stats;
    bool open = false;
    gc_stats_init(&stats, &view->b.trace, 0, 0);
    for (size_t i = 0; i < stats.row_count; i++) {
        const struct gc_record *row = &stats.rows[i];
        open = open || !row->complete;
        if (row->complete && !is_printed(view, row->number))
            add_collection(view, row);
    }
    gc_stats_done(&stats);
    if (!open || view->b.trace.events.count > EVENTS_KEPT_MAX)
        forget_events(&view->b.trace);
}

/* Others. */

static void take_allocation(struct trace_view *view, const struct event_schema *s, struct span payload)
{
    struct buffer type;
    buffer_init(&type, TEXT_BYTES_MAX);
    uint64_t bytes = event_schema_u64(s, payload, event_schema_field(s, "AllocationAmount64"), 0);
    field_text(s, payload, "TypeName", &type);
    name_tally_add(&view->allocated, buffer_span(&type), bytes);
    name_tally_add(&view->interval_allocated, buffer_span(&type), bytes);
    buffer_done(&type);
}

static void take_exception(struct trace_view *view, const struct event_schema *s, struct span payload,
                           const struct trace_event *event)
{
    struct buffer type, message;
    buffer_init(&type, TEXT_BYTES_MAX);
    buffer_init(&message, TEXT_BYTES_MAX);
    field_text(s, payload, "ExceptionType", &type);
    field_text(s, payload, "ExceptionMessage", &message);
    name_tally_add(&view->thrown, buffer_span(&type), 0);
    begin_line(view, event->time_ns, "exception");
    put_text(view, buffer_span(&type));
    buffer_string(view->out, ": ");
    put_text(view, buffer_span(&message));
    if (event->thread)
        buffer_format(view->out, "  (thread %" PRIu32 ")", view->b.trace.threads.rows[event->thread].tid);
    buffer_u8(view->out, '\n');
    buffer_done(&type);
    buffer_done(&message);
}

static void request_text(const struct event_schema *s, struct span payload, bool sent,
                         char out[TRACE_REQUEST_TEXT_MAX])
{
    static const char *const served_fields[] = { "method", " ", "path" };
    static const char *const sent_fields[] = { "scheme", "://", "host", "", "pathAndQuery" };
    struct buffer text;
    buffer_init(&text, TEXT_BYTES_MAX);
    const char *const *fields = sent ? sent_fields : served_fields;
    size_t count = sent ? ARRAY_LEN(sent_fields) : ARRAY_LEN(served_fields);
    for (size_t i = 0; i < count; i++)
        if (i % 2)
            buffer_string(&text, fields[i]);
        else
            field_text(s, payload, fields[i], &text);
    snprintf(out, TRACE_REQUEST_TEXT_MAX, "%.*s", (int)text.size, text.data ? (const char *)text.data : "");
    buffer_done(&text);
}

static void end_request(struct trace_view *view, const struct trace_event *event,
                        const struct trace_event_activity *activity, bool sent, const char *how)
{
    struct trace_request request;
    if (!trace_requests_end(&view->requests, activity->id, sent, event->time_ns, &request))
        return;
    begin_line(view, event->time_ns, sent ? "http out" : "http");
    put_text(view, span_of(request.text, strlen(request.text)));
    buffer_format(
        view->out, "%s  %s\n", how,
        units_duration(event->time_ns > request.from_ns ? event->time_ns - request.from_ns : 0).text);
}

static void take_request(struct trace_view *view, uint32_t event_id, bool sent,
                         const struct trace_event *event)
{
    const struct trace *t = &view->b.trace;
    const struct trace_event_activity *activity = trace_event_activity(t, (uint32_t)(event - t->events.rows));
    const struct event_schema *s = event_schemas_get(&view->schemas, event->type);
    struct span payload = trace_event_payload(t, event);
    if (!activity)
        return;
    if (event_id == (sent ? HTTP_START : HOSTING_START)) {
        struct trace_request request = { .from_ns = event->time_ns, .sent = sent };
        memcpy(request.activity, activity->id, sizeof request.activity);
        request_text(s, payload, sent, request.text);
        trace_requests_begin(&view->requests, &request);
        return;
    }
    char how[32] = "";
    if (sent && event_id == HTTP_FAILED)
        snprintf(how, sizeof how, "  failed");
    else if (sent && event_id == HTTP_STOP)
        snprintf(how, sizeof how, "  %" PRId64,
                 event_schema_i64(s, payload, event_schema_field(s, "statusCode"), 0));
    else if (sent || event_id != HOSTING_STOP)
        return;
    end_request(view, event, activity, sent, how);
}

/* Whether it must be kept: collections are made of several. */
static bool take_runtime_event(struct trace_view *view, uint32_t event_id, const struct trace_event *event)
{
    const struct event_schema *s = event_schemas_get(&view->schemas, event->type);
    struct span payload = trace_event_payload(&view->b.trace, event);
    switch (event_id) {
    case GC_EVENT_ALLOCATION_TICK:
        take_allocation(view, s, payload);
        return false;
    case EXCEPTION_THROWN:
        take_exception(view, s, payload, event);
        return false;
    default:
        return view->topics[TRACE_GC] || view->topics[TRACE_HEAP];
    }
}

/* Takes the last event off. */
static void drop_event(struct trace *t)
{
    uint32_t last = (uint32_t)--t->events.count;
    t->payloads.size = t->events.rows[last].payload_off;
    while (t->event_activities.count > 1 &&
           t->event_activities.rows[t->event_activities.count - 1].event == last)
        t->event_activities.count--;
}

/* The thread's name, asked of the kernel once. */
static const char *thread_comm(struct trace_view *view, uint32_t thread)
{
    const struct trace *t = &view->b.trace;
    const struct trace_thread *row = &t->threads.rows[thread];
    if (thread && !row->name) {
        char file[64];
        struct buffer text;
        uint32_t pid = t->processes.rows[row->process].pid, tid = row->tid;
        buffer_init(&text, TEXT_BYTES_MAX);
        snprintf(file, sizeof file, "task/%" PRIu32 "/comm", tid);
        if (proc_file_read((pid_t)pid, file, &text, NULL) && text.size > 1)
            trace_builder_thread_name(&view->b, pid, tid, span_of(text.data, text.size - 1), 0);
        buffer_done(&text);
    }
    return trace_string(t, t->threads.rows[thread].name);
}

static void event_json(struct trace_view *view)
{
    const struct trace *t = &view->b.trace;
    const struct trace_event *event = &t->events.rows[t->events.count - 1];
    const struct event_schema *s = event_schemas_get(&view->schemas, event->type);
    struct json_writer *j = view->json;
    const char *comm = thread_comm(view, event->thread);
    json_begin_object(j);
    json_key(j, "time_s");
    json_ns_as_s(j, (int64_t)(event->time_ns - view->start_ns));
    json_put_u64(j, "process", t->processes.rows[event->process].pid);
    json_key(j, "thread");
    if (event->thread)
        json_u64(j, t->threads.rows[event->thread].tid);
    else
        json_null(j);
    json_put_string(j, "comm", comm[0] ? comm : NULL);
    json_put_string(j, "event", event_schema_name(s));
    event_fields_json(j, s, trace_event_payload(t, event), &view->scratch);
    json_put_string(j, "stack", NULL);
    json_end_object(j);
    json_next(j);
}

/* Whether it must be kept. */
static bool show_event(struct trace_view *view)
{
    struct trace *t = &view->b.trace;
    const struct trace_event *event = &t->events.rows[t->events.count - 1];
    const struct trace_event_type *type = &t->event_types.rows[event->type];
    const char *provider = trace_string(t, type->provider);
    uint32_t event_id = type->event_id;
    bool keep = false;
    if (strcmp(provider, RUNTIME_PROVIDER) == 0)
        keep = take_runtime_event(view, event_id, event);
    else if (strcmp(provider, HOSTING_PROVIDER) == 0)
        take_request(view, event_id, false, event);
    else if (strcmp(provider, HTTP_PROVIDER) == 0)
        take_request(view, event_id, true, event);
    if (keep && event_id == GC_EVENT_RESTART_END)
        take_collections(view);
    return keep;
}

void trace_view_event(struct trace_view *view)
{
    if (view->json)
        event_json(view);
    if (view->json || !show_event(view))
        drop_event(&view->b.trace);
}

void trace_view_tick(struct trace_view *view, uint64_t now_ns)
{
    struct name_tally_row rows[INTERVAL_TYPES];
    if (view->json || !view->topics[TRACE_ALLOC] || now_ns - view->interval_from_ns < view->interval_ns)
        return;
    view->interval_from_ns = now_ns;
    size_t count = name_tally_top(&view->interval_allocated, rows, INTERVAL_TYPES);
    if (!count)
        return;
    begin_line(view, now_ns, "alloc");
    buffer_string(view->out, units_size(view->interval_allocated.bytes).text);
    for (size_t i = 0; i < count; i++) {
        const char *name = name_tally_name(&view->interval_allocated, &rows[i]);
        buffer_string(view->out, i ? ", " : ": ");
        put_text(view, span_of(name, strlen(name)));
        buffer_format(view->out, " %s", units_size(rows[i].bytes).text);
    }
    buffer_u8(view->out, '\n');
    name_tally_clear(&view->interval_allocated);
}

static void summary_collections(const struct trace_view *view)
{
    const struct trace_sums *sums = &view->sums;
    uint64_t all = sums->collections[0] + sums->collections[1] + sums->collections[2];
    buffer_format(view->out, "collections  %s", units_count(all).text);
    for (unsigned gen = 0; all && gen < 3; gen++)
        buffer_format(view->out, "%sgen %u %s", gen ? ", " : ": ", gen,
                      units_count(sums->collections[gen]).text);
    if (all)
        buffer_format(view->out, "; paused %s in all, mean %s, longest %s",
                      units_duration(sums->paused_ns).text, units_duration(sums->paused_ns / all).text,
                      units_duration(sums->longest_ns).text);
    buffer_u8(view->out, '\n');
}

static void summary_tally(const struct trace_view *view, const struct name_tally *tally, bool bytes)
{
    static const struct text_column columns[] = { { "  ", TEXT_RIGHT },
                                                  { "times", TEXT_RIGHT },
                                                  { "type", TEXT_LEFT } };
    struct name_tally_row rows[SUMMARY_TYPES];
    struct text_table table;
    size_t count = name_tally_top(tally, rows, SUMMARY_TYPES);
    text_table_init(&table, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        text_table_add(&table, bytes ? units_size(rows[i].bytes).text : "");
        text_table_add(&table, units_count(rows[i].count).text);
        text_table_add(&table, name_tally_name(tally, &rows[i]));
    }
    if (count)
        text_table_print(&table, 0, view->out);
    text_table_done(&table);
}

static void summary_requests(const struct trace_view *view)
{
    const struct trace_requests *r = &view->requests;
    buffer_format(view->out, "requests     %s", units_count(r->ended).text);
    if (r->ended)
        buffer_format(view->out, "; mean %s, longest %s", units_duration(r->total_ns / r->ended).text,
                      units_duration(r->longest_ns).text);
    if (r->count)
        buffer_format(view->out, "; %zu still run", r->count);
    buffer_u8(view->out, '\n');
}

void trace_view_summary(const struct trace_view *view, uint64_t now_ns, uint64_t lost)
{
    if (view->json)
        return;
    buffer_format(view->out, "\nin %s\n", units_duration(now_ns - view->start_ns).text);
    if (view->topics[TRACE_GC] || view->topics[TRACE_HEAP])
        summary_collections(view);
    if (view->topics[TRACE_EXCEPTIONS]) {
        buffer_format(view->out, "exceptions   %s\n", units_count(view->thrown.count).text);
        summary_tally(view, &view->thrown, false);
    }
    if (view->topics[TRACE_HTTP])
        summary_requests(view);
    if (view->topics[TRACE_ALLOC]) {
        buffer_format(view->out, "allocated    %s, seen once in 100 KB\n",
                      units_size(view->allocated.bytes).text);
        summary_tally(view, &view->allocated, true);
    }
    if (lost)
        buffer_format(view->out, "lost         at least %s events: the sums are too small\n",
                      units_count(lost).text);
}
