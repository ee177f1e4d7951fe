#include "cli/trace_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/event_fields.h"
#include "cli/json_put.h"
#include "cli/standard_output.h"
#include "clr/exception_events.h"
#include "clr/gc_events.h"
#include "clr/provider_names.h"
#include "clr/runtime_events.h"
#include "clr/type_name.h"

enum { SCRATCH_BYTES = 1 << 17, PORT_TEXT = 24 };

void trace_lines_init(struct trace_lines *l)
{
    *l = (struct trace_lines){ 0 };
    trace_tally_init(&l->tally);
    buffer_init(&l->out, OUTPUT_BYTES_MAX);
    buffer_init(&l->scratch, SCRATCH_BYTES);
    buffer_init(&l->type, SCRATCH_BYTES);
}

void trace_lines_done(struct trace_lines *l)
{
    trace_tally_done(&l->tally);
    trace_requests_done(&l->requests);
    trace_threads_free(l->threads);
    throw_sites_free(l->sites);
    thrown_before_done(&l->thrown);
    buffer_done(&l->out);
    buffer_done(&l->scratch);
    buffer_done(&l->type);
}

static void put_time(struct trace_lines *l, uint64_t time_ns)
{
    buffer_format(&l->out, "%10.3f  ", ((double)time_ns - (double)l->started_ns) / 1e9);
}

static uint64_t number(const struct stream_schema *of, struct span payload, const char *name)
{
    return event_schema_u64(of->schema, payload, event_schema_field(of->schema, name), 0);
}

static struct span text_field(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                              const char *name)
{
    struct event_value v;
    buffer_clear(&l->scratch);
    if (event_schema_read(of->schema, payload, event_schema_field(of->schema, name), &v))
        event_value_append_text(&l->scratch, &v);
    return buffer_span(&l->scratch);
}

/* The same, as it may stand on a terminal: the target chose it. */
static void put_text(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                     const char *name)
{
    utf8_escape(&l->out, text_field(l, of, payload, name));
}

/* A type as people write it. Valid until the next. */
static struct span type_field(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                              const char *name)
{
    struct span raw = text_field(l, of, payload, name);
    buffer_clear(&l->type);
    if (runtime_text_is_told(raw))
        type_name_show_full(raw, &l->type);
    else
        buffer_string(&l->type, "[unknown]");
    return buffer_span(&l->type);
}

static const char *gc_kind(const struct gc_watch_one *gc)
{
    return gc->type == RUNTIME_GC_BACKGROUND      ? ", in the background"
           : gc->type == RUNTIME_GC_IN_BACKGROUND ? ", during one in the background"
                                                  : "";
}

static void show_heap(struct trace_lines *l)
{
    if (!l->heap_ns)
        return;
    put_time(l, l->heap_ns);
    buffer_string(&l->out, "heap      ");
    for (unsigned i = 0; i < GC_EVENT_GENS; i++)
        buffer_format(&l->out, "%s %s %s", i ? "," : "", gc_gen_name(i),
                      units_size(l->tally.heap_bytes[i]).text);
    buffer_string(&l->out, "\n");
    l->heap_ns = 0;
}

static void tell_collection(struct trace_lines *l, const struct gc_watch_one *gc, uint64_t time_ns)
{
    trace_tally_collection(&l->tally, gc);
    if (l->json || !l->wants.gc)
        return;
    const char *reason = gc_reason_name(gc->reason);
    put_time(l, gc->start_ns);
    buffer_format(&l->out, "gc         #%" PRIu32 " gen %" PRIu32 "%s: %s, paused %s, took %s\n", gc->number,
                  gc->generation, gc_kind(gc), reason ? reason : "unknown reason",
                  units_duration(gc->pause_ns).text, units_duration(time_ns - gc->start_ns).text);
    show_heap(l);
}

/* It is shown behind the line of its collection, which ends a little later. */
static void tell_heap(struct trace_lines *l, struct span payload, uint64_t time_ns)
{
    struct gc_heap_stats_event heap;
    show_heap(l); /* of a collection whose line came before */
    if (!gc_heap_stats_read(payload, &heap, NULL))
        return;
    l->tally.heap_known = true;
    memcpy(l->tally.heap_bytes, heap.size_bytes, sizeof l->tally.heap_bytes);
    if (l->json || !l->wants.heap)
        return;
    l->heap_ns = time_ns;
    if (!l->wants.gc || l->collections.count == 0)
        show_heap(l);
}

/* Whether it had been thrown before: by `throw;`, which runtimes up to 8 say, or by an await. */
static bool is_thrown_again(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                            const struct trace_line_event *event)
{
    if (number(of, payload, "ExceptionFlags") & EXCEPTION_FLAG_RETHROWN)
        return true;
    struct buffer *type = &l->type;
    buffer_clear(type);
    struct span raw = text_field(l, of, payload, "ExceptionType");
    buffer_append(type, raw.data, raw.size);
    uint64_t kind = thrown_before_kind(0, buffer_span(type), text_field(l, of, payload, "ExceptionMessage"));
    if (thrown_before_has(&l->thrown, kind))
        return l->sites && throw_sites_again(l->sites, event->stack, event->stack_count);
    thrown_before_add(&l->thrown, kind);
    return false;
}

static void tell_exception(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                           const struct trace_line_event *event)
{
    bool again = is_thrown_again(l, of, payload, event);
    if (again)
        l->tally.rethrown++;
    else
        trace_ranking_add(&l->tally.thrown, type_field(l, of, payload, "ExceptionType"), 0);
    if (l->json || !l->wants.exceptions)
        return;
    put_time(l, event->time_ns);
    buffer_string(&l->out, again ? "exception  thrown again: " : "exception  ");
    utf8_escape(&l->out, type_field(l, of, payload, "ExceptionType"));
    if (runtime_text_is_told(text_field(l, of, payload, "ExceptionMessage"))) {
        buffer_string(&l->out, ": ");
        put_text(l, of, payload, "ExceptionMessage");
    }
    buffer_format(&l->out, " (thread %" PRIu64 ")\n", event->thread_id);
}

/* Requests. */

/* ":8080", where it is not the usual one. */
static void port_text(uint64_t port, char out[PORT_TEXT])
{
    out[0] = '\0';
    if (port && port != 80 && port != 443)
        snprintf(out, PORT_TEXT, ":%" PRIu64, port);
}

/* "GET /orders"; of one that is sent scheme, host, port and path. */
static void request_text(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                         bool sent, char out[TRACE_REQUEST_TEXT_MAX])
{
    char port[PORT_TEXT];
    const char *const served_fields[] = { "method", " ", "path" };
    const char *const sent_fields[] = { "scheme", "://", "host", port, "pathAndQuery" };
    const char *const *fields = sent ? sent_fields : served_fields;
    size_t count = sent ? ARRAY_LEN(sent_fields) : ARRAY_LEN(served_fields), used = 0;
    port_text(number(of, payload, "port"), port);
    for (size_t i = 0; i < count && used < TRACE_REQUEST_TEXT_MAX - 1; i++) {
        struct span part =
            i % 2 ? span_of(fields[i], strlen(fields[i])) : text_field(l, of, payload, fields[i]);
        int size = snprintf(out + used, TRACE_REQUEST_TEXT_MAX - used, "%.*s", (int)part.size,
                            part.size ? (const char *)part.data : "");
        used += size > 0 ? (size_t)size : 0;
    }
}

static void end_request(struct trace_lines *l, const struct trace_line_event *event, bool sent,
                        const char *how)
{
    struct trace_request request;
    if (!trace_requests_end(&l->requests, event->activity, sent, event->time_ns, &request) || l->json)
        return;
    put_time(l, event->time_ns);
    buffer_string(&l->out, sent ? "http out   " : "http       ");
    utf8_escape(&l->out, span_of(request.text, strlen(request.text)));
    buffer_format(
        &l->out, "%s, took %s\n", how,
        units_duration(event->time_ns > request.from_ns ? event->time_ns - request.from_ns : 0).text);
}

static void tell_request(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                         const struct trace_line_event *event, bool sent)
{
    char how[32] = "";
    if (of->event_id == (sent ? HTTP_SENT_EVENT_START : HTTP_SERVED_EVENT_START)) {
        struct trace_request request = { .from_ns = event->time_ns, .sent = sent };
        memcpy(request.activity, event->activity, sizeof request.activity);
        request_text(l, of, payload, sent, request.text);
        trace_requests_begin(&l->requests, &request);
        return;
    }
    if (sent && of->event_id == HTTP_SENT_EVENT_FAILED)
        snprintf(how, sizeof how, ": failed");
    else if (sent && of->event_id == HTTP_SENT_EVENT_STOP &&
             event_schema_field(of->schema, "statusCode") >= 0)
        snprintf(how, sizeof how, ": %" PRIu64, number(of, payload, "statusCode"));
    if (sent ? of->event_id == HTTP_SENT_EVENT_STOP || of->event_id == HTTP_SENT_EVENT_FAILED
             : of->event_id == HTTP_SERVED_EVENT_STOP)
        end_request(l, event, sent, how);
}

/* Whether the event is one of those that requests are made of, or of no interest beside them. */
static bool tell_http(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                      const struct trace_line_event *event)
{
    bool sent = strcmp(of->provider, HTTP_SENT_PROVIDER) == 0;
    if (!l->wants.http)
        return false;
    if (sent || strcmp(of->provider, HTTP_SERVED_PROVIDER) == 0) {
        tell_request(l, of, payload, event, sent);
        return true;
    }
    return strcmp(of->provider, HTTP_KESTREL_PROVIDER) == 0 ||
           (strcmp(of->provider, TASKS_PROVIDER) == 0 &&
            (!l->wants.tasks || of->event_id == TASKS_EVENT_SET_ACTIVITY));
}

static void tell_other(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                       const struct trace_line_event *event)
{
    const char *name = event_schema_name(of->schema);
    trace_ranking_add(&l->tally.other, span_of(name, strlen(name)), 0);
    if (l->json)
        return;
    put_time(l, event->time_ns);
    buffer_clear(&l->scratch);
    buffer_format(&l->scratch, "%s ", name);
    event_fields_text(of->schema, payload, &l->scratch);
    utf8_escape(&l->out, buffer_span(&l->scratch));
    buffer_format(&l->out, " (thread %" PRIu64 ")\n", event->thread_id);
}

static void tell_json(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                      const struct trace_line_event *event)
{
    struct json_writer j;
    json_init(&j, &l->out);
    json_begin_object(&j);
    json_put_double(&j, "time_s", ((double)event->time_ns - (double)l->started_ns) / 1e9);
    json_put_u64(&j, "process", l->pid);
    uint32_t tid = trace_threads_tid(l->threads, event->thread_id);
    json_put_known_u64(&j, "thread", tid != 0, tid);
    json_put_string(&j, "comm", trace_threads_name(l->threads, tid));
    json_put_string(&j, "provider", of->provider);
    json_put_string(&j, "event", event_schema_name(of->schema));
    event_fields_json(&j, of->schema, payload, &l->scratch);
    json_put_string(&j, "stack", NULL);
    json_end_object(&j);
    json_finish(&j, NULL);
}

/* Whether the event is one of the runtime's own that is summed up, and gets no line as others do. */
static bool tell_known(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                       const struct trace_line_event *event)
{
    struct gc_watch_one gc;
    if (strcmp(of->provider, RUNTIME_PROVIDER) != 0)
        return false;
    if (gc_watch_take(&l->collections, of->event_id, event->time_ns, payload, &gc))
        tell_collection(l, &gc, event->time_ns);
    switch (of->event_id) {
    case GC_EVENT_HEAP_STATS:
        tell_heap(l, payload, event->time_ns);
        return true;
    case GC_EVENT_ALLOCATION_TICK:
        trace_ranking_add(&l->tally.allocated, type_field(l, of, payload, "TypeName"),
                          number(of, payload, "AllocationAmount64"));
        return true;
    case EXCEPTION_EVENT_THROWN:
        tell_exception(l, of, payload, event);
        return true;
    default:
        return gc_event_is_of_heap(of->event_id);
    }
}

void trace_lines_event(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                       const struct trace_line_event *event)
{
    if (!tell_known(l, of, payload, event) && !tell_http(l, of, payload, event))
        tell_other(l, of, payload, event);
    if (l->json)
        tell_json(l, of, payload, event);
}

void trace_lines_allocating(struct trace_lines *l, uint64_t now_ns, uint64_t *seen_bytes, uint64_t passed_ns)
{
    if (!l->wants.alloc || l->json)
        return;
    put_time(l, now_ns);
    trace_tally_allocating(&l->tally, seen_bytes, passed_ns, &l->out);
}

static void put_requests(struct trace_lines *l)
{
    const struct trace_requests *r = &l->requests;
    if (!l->wants.http)
        return;
    buffer_format(&l->out, "requests    %s", r->ended ? units_count(r->ended).text : "none");
    if (r->ended)
        buffer_format(&l->out, ", mean %s, longest %s", units_duration(r->total_ns / r->ended).text,
                      units_duration(r->longest_ns).text);
    if (r->count)
        buffer_format(&l->out, "; %zu still run", r->count);
    buffer_u8(&l->out, '\n');
}

void trace_lines_end(struct trace_lines *l, uint64_t duration_ns, uint64_t lost)
{
    struct json_writer j;
    l->tally.lost = lost;
    if (l->json) {
        json_init(&j, &l->out);
        trace_tally_json(&l->tally, &l->wants, &l->requests, duration_ns, &j);
        json_finish(&j, NULL);
        return;
    }
    buffer_u8(&l->out, '\n');
    trace_tally_text(&l->tally, duration_ns, &l->out);
    put_requests(l);
}
