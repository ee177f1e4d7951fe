#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/event_fields.h"
#include "cli/json_put.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/stop_signal.h"
#include "cli/target_options.h"
#include "cli/trace_requests.h"
#include "cli/trace_tally.h"
#include "cli/trace_threads.h"
#include "cli/verb.h"
#include "clr/event_profiles.h"
#include "clr/gc_events.h"
#include "clr/stream_schemas.h"
#include "collect/record_queue.h"
#include "collect/runtime_socket.h"
#include "collect/stream_recording.h"
#include "collect/target_select.h"
#include "collect/time_namespace.h"

enum {
    TRACE_BUFFER_MB = 64,
    TRACE_QUEUE_BYTES = 3 << 20, /* of events that wait for those of their time */
    TRACE_LINE_BYTES = 1 << 16,
    TRACE_TOPICS_MAX = 16,
    ALLOC_TICK = 10,
    HEAP_STATS = 4,
    EXCEPTION = 80,
    HOSTING_START = 3,
    HOSTING_STOP = 4,
    HTTP_START = 1,
    HTTP_STOP = 2,
    HTTP_FAILED = 3,
};

#define HOSTING_PROVIDER "Microsoft.AspNetCore.Hosting"
#define KESTREL_PROVIDER "Microsoft-AspNetCore-Server-Kestrel"
#define HTTP_PROVIDER    "System.Net.Http"
#define TASKS_PROVIDER   "System.Threading.Tasks.TplEventSource"

#define TRACE_LAG_NS UINT64_C(300000000) /* runtimes hand over what they have every 100 ms or so */

struct trace_values {
    struct target_options target;
    uint64_t duration_ns, interval_ns;
    bool json;
};

struct trace_run {
    const struct trace_values *values;
    struct event_request request;
    bool gc, heap, alloc, exceptions, http, tasks; /* that get lines of their own */
    struct target_list targets;
    int64_t clock_offset_ns;
    struct stream_schemas schemas;
    struct record_queue queue;
    struct gc_watch collections;
    uint64_t heap_ns; /* sizes of a collection that is not over yet; 0: none */
    struct trace_requests requests;
    struct trace_threads *threads;
    struct trace_tally tally;
    struct buffer out;
    struct buffer scratch;
    uint64_t started_ns, told_ns, seen_bytes;
    bool refused; /* nobody reads what we print */
    const volatile sig_atomic_t *stopped;
};

/* What the queue carries, with the payload behind it. */
struct queued_event {
    uint64_t time_ns, thread_id;
    const struct nettrace_type *type;
    uint32_t pointer_size;
    uint8_t activity[16];
};

static void put_time(struct trace_run *run, uint64_t time_ns)
{
    buffer_format(&run->out, "%10.3f  ", ((double)time_ns - (double)run->started_ns) / 1e9);
}

/* Field of a payload as people read it. */
static void put_field(struct trace_run *run, const struct stream_schema *of, struct span payload,
                      const char *name)
{
    struct event_value v;
    if (event_schema_read(of->schema, payload, event_schema_field(of->schema, name), &v))
        event_value_append(&run->out, &v);
}

static uint64_t number(const struct stream_schema *of, struct span payload, const char *name)
{
    return event_schema_u64(of->schema, payload, event_schema_field(of->schema, name), 0);
}

static struct span text_field(struct trace_run *run, const struct stream_schema *of, struct span payload,
                              const char *name)
{
    struct event_value v;
    buffer_clear(&run->scratch);
    if (event_schema_read(of->schema, payload, event_schema_field(of->schema, name), &v))
        event_value_append_text(&run->scratch, &v);
    return buffer_span(&run->scratch);
}

static const char *gc_kind(const struct gc_watch_one *gc)
{
    return gc->type == RUNTIME_GC_BACKGROUND      ? ", in the background"
           : gc->type == RUNTIME_GC_IN_BACKGROUND ? ", during one in the background"
                                                  : "";
}

static void show_heap(struct trace_run *run)
{
    static const char *const names[] = { "gen 0", "gen 1", "gen 2", "large", "pinned" };
    if (!run->heap_ns)
        return;
    put_time(run, run->heap_ns);
    buffer_string(&run->out, "heap      ");
    for (unsigned i = 0; i < TRACE_GENERATIONS; i++)
        buffer_format(&run->out, "%s %s %s", i ? "," : "", names[i],
                      units_size(run->tally.heap_bytes[i]).text);
    buffer_string(&run->out, "\n");
    run->heap_ns = 0;
}

static void tell_collection(struct trace_run *run, const struct gc_watch_one *gc, uint64_t time_ns)
{
    trace_tally_collection(&run->tally, gc);
    if (run->values->json || !run->gc)
        return;
    const char *reason = gc_reason_name(gc->reason);
    put_time(run, gc->start_ns);
    buffer_format(&run->out, "gc         #%" PRIu32 " gen %" PRIu32 "%s: %s, paused %s, took %s\n",
                  gc->number, gc->generation, gc_kind(gc), reason ? reason : "unknown reason",
                  units_duration(gc->pause_ns).text, units_duration(time_ns - gc->start_ns).text);
    show_heap(run);
}

/* It is shown behind the line of its collection, which ends a little later. */
static void tell_heap(struct trace_run *run, const struct stream_schema *of, struct span payload,
                      uint64_t time_ns)
{
    show_heap(run); /* of a collection whose line came before */
    run->tally.heap_known = true;
    for (unsigned i = 0; i < TRACE_GENERATIONS; i++) {
        char field[32];
        snprintf(field, sizeof field, "GenerationSize%u", i);
        run->tally.heap_bytes[i] = number(of, payload, field);
    }
    if (run->values->json || !run->heap)
        return;
    run->heap_ns = time_ns;
    if (!run->gc || run->collections.count == 0)
        show_heap(run);
}

static void tell_exception(struct trace_run *run, const struct stream_schema *of, struct span payload,
                           const struct queued_event *event)
{
    trace_ranking_add(&run->tally.thrown, text_field(run, of, payload, "ExceptionType"), 0);
    if (run->values->json || !run->exceptions)
        return;
    put_time(run, event->time_ns);
    buffer_string(&run->out, "exception  ");
    put_field(run, of, payload, "ExceptionType");
    buffer_string(&run->out, ": ");
    put_field(run, of, payload, "ExceptionMessage");
    buffer_format(&run->out, " (thread %" PRIu64 ")\n", event->thread_id);
}

/* Requests. */

/* "GET /orders"; of one that is sent scheme, host and path. */
static void request_text(struct trace_run *run, const struct stream_schema *of, struct span payload,
                         bool sent, char out[TRACE_REQUEST_TEXT_MAX])
{
    static const char *const served_fields[] = { "method", " ", "path" };
    static const char *const sent_fields[] = { "scheme", "://", "host", "", "pathAndQuery" };
    const char *const *fields = sent ? sent_fields : served_fields;
    size_t count = sent ? ARRAY_LEN(sent_fields) : ARRAY_LEN(served_fields), used = 0;
    for (size_t i = 0; i < count && used < TRACE_REQUEST_TEXT_MAX - 1; i++) {
        struct span part =
            i % 2 ? span_of(fields[i], strlen(fields[i])) : text_field(run, of, payload, fields[i]);
        int size = snprintf(out + used, TRACE_REQUEST_TEXT_MAX - used, "%.*s", (int)part.size,
                            part.size ? (const char *)part.data : "");
        used += size > 0 ? (size_t)size : 0;
    }
}

static void end_request(struct trace_run *run, const struct queued_event *event, bool sent, const char *how)
{
    struct trace_request request;
    if (!trace_requests_end(&run->requests, event->activity, sent, event->time_ns, &request) ||
        run->values->json)
        return;
    put_time(run, event->time_ns);
    buffer_string(&run->out, sent ? "http out   " : "http       ");
    utf8_escape(&run->out, span_of(request.text, strlen(request.text)));
    buffer_format(
        &run->out, "%s, took %s\n", how,
        units_duration(event->time_ns > request.from_ns ? event->time_ns - request.from_ns : 0).text);
}

static void tell_request(struct trace_run *run, const struct stream_schema *of, struct span payload,
                         const struct queued_event *event, bool sent)
{
    char how[32] = "";
    if (of->event_id == (sent ? HTTP_START : HOSTING_START)) {
        struct trace_request request = { .from_ns = event->time_ns, .sent = sent };
        memcpy(request.activity, event->activity, sizeof request.activity);
        request_text(run, of, payload, sent, request.text);
        trace_requests_begin(&run->requests, &request);
        return;
    }
    if (sent && of->event_id == HTTP_FAILED)
        snprintf(how, sizeof how, ": failed");
    else if (sent && of->event_id == HTTP_STOP && event_schema_field(of->schema, "statusCode") >= 0)
        snprintf(how, sizeof how, ": %" PRIu64, number(of, payload, "statusCode"));
    if (sent ? of->event_id == HTTP_STOP || of->event_id == HTTP_FAILED : of->event_id == HOSTING_STOP)
        end_request(run, event, sent, how);
}

/* Whether the event is one of those that requests are made of, or of no interest beside them. */
static bool tell_http(struct trace_run *run, const struct stream_schema *of, struct span payload,
                      const struct queued_event *event)
{
    bool sent = strcmp(of->provider, HTTP_PROVIDER) == 0;
    if (!run->http)
        return false;
    if (sent || strcmp(of->provider, HOSTING_PROVIDER) == 0) {
        tell_request(run, of, payload, event, sent);
        return true;
    }
    return strcmp(of->provider, KESTREL_PROVIDER) == 0 ||
           (!run->tasks && strcmp(of->provider, TASKS_PROVIDER) == 0);
}

static void tell_other(struct trace_run *run, const struct stream_schema *of, struct span payload,
                       const struct queued_event *event)
{
    const char *name = event_schema_name(of->schema);
    trace_ranking_add(&run->tally.other, span_of(name, strlen(name)), 0);
    if (run->values->json)
        return;
    put_time(run, event->time_ns);
    buffer_format(&run->out, "%s ", name);
    event_fields_text(of->schema, payload, &run->out);
    buffer_format(&run->out, " (thread %" PRIu64 ")\n", event->thread_id);
}

static void tell_json(struct trace_run *run, const struct stream_schema *of, struct span payload,
                      const struct queued_event *event)
{
    struct json_writer j;
    json_init(&j, &run->out);
    json_begin_object(&j);
    json_put_double(&j, "time_s", ((double)event->time_ns - (double)run->started_ns) / 1e9);
    json_put_u64(&j, "process", (uint64_t)run->targets.items[0].pid);
    uint32_t tid = trace_threads_tid(run->threads, event->thread_id);
    json_put_known_u64(&j, "thread", tid != 0, tid);
    json_put_string(&j, "comm", trace_threads_name(run->threads, tid));
    json_put_string(&j, "provider", of->provider);
    json_put_string(&j, "event", event_schema_name(of->schema));
    event_fields_json(&j, of->schema, payload, &run->scratch);
    json_put_string(&j, "stack", NULL);
    json_end_object(&j);
    json_finish(&j, NULL);
}

/* Whether the event is one of the runtime's own that is summed up, and gets no line as others do. */
static bool tell_known(struct trace_run *run, const struct stream_schema *of, struct span payload,
                       const struct queued_event *event)
{
    struct gc_watch_one gc;
    if (strcmp(of->provider, RUNTIME_PROVIDER) != 0)
        return false;
    if (gc_watch_take(&run->collections, of->event_id, event->time_ns, payload, &gc))
        tell_collection(run, &gc, event->time_ns);
    switch (of->event_id) {
    case HEAP_STATS:
        tell_heap(run, of, payload, event->time_ns);
        return true;
    case ALLOC_TICK:
        trace_ranking_add(&run->tally.allocated, text_field(run, of, payload, "TypeName"),
                          number(of, payload, "AllocationAmount64"));
        return true;
    case EXCEPTION:
        tell_exception(run, of, payload, event);
        return true;
    default:
        return (of->event_id < 50 || (of->event_id >= 200 && of->event_id < 210)); /* parts of collections */
    }
}

static void print(struct trace_run *run)
{
    struct error err;
    if (run->out.size && !run->refused && !stdout_text(&run->out, &err)) {
        run->refused = true;
        raise(SIGTERM); /* nobody reads on: the end, in order */
    }
    buffer_clear(&run->out);
}

static void take_event(void *user, enum queue_item_kind kind, struct span item)
{
    struct trace_run *run = user;
    struct queued_event event;
    (void)kind;
    memcpy(&event, item.data, sizeof event);
    struct span payload = span_part(item, sizeof event, item.size - sizeof event);
    const struct stream_schema *of = stream_schemas_get(&run->schemas, event.type, event.pointer_size);
    if (strcmp(of->provider, RUNTIME_RUNDOWN_PROVIDER) == 0 ||
        strcmp(of->provider, "Microsoft-DotNETCore-EventPipe") == 0)
        return;
    if (!tell_known(run, of, payload, &event) && !tell_http(run, of, payload, &event))
        tell_other(run, of, payload, &event);
    if (run->values->json)
        tell_json(run, of, payload, &event);
    if (run->out.size > TRACE_LINE_BYTES)
        print(run);
}

/* Events of several threads come in no order: they wait until none can be older. */
static void on_event(void *user, const struct nettrace_event *e, uint32_t pointer_size)
{
    /* when there is no room: those that nearly always are in order, then all */
    static const uint64_t lags_ns[] = { TRACE_LAG_NS / 2, 0 };
    struct trace_run *run = user;
    struct queued_event event = {
        .time_ns = e->time_ns - (uint64_t)run->clock_offset_ns,
        .thread_id = e->thread_id,
        .type = e->type,
        .pointer_size = pointer_size,
    };
    if (e->activity.size == sizeof event.activity)
        memcpy(event.activity, e->activity.data, sizeof event.activity);
    for (unsigned attempt = 0; attempt <= ARRAY_LEN(lags_ns); attempt++) {
        buffer_clear(&run->scratch); /* what is taken from the queue uses it, too */
        buffer_append(&run->scratch, &event, sizeof event);
        buffer_append(&run->scratch, e->payload.data, e->payload.size);
        if (record_queue_add(&run->queue, event.time_ns, QUEUE_EVENT, buffer_span(&run->scratch)) ||
            attempt == ARRAY_LEN(lags_ns))
            return;
        record_queue_release(&run->queue, clock_monotonic_ns() - lags_ns[attempt], take_event, run);
    }
}

static void on_look(void *user, uint64_t now_ns)
{
    struct trace_run *run = user;
    record_queue_release(&run->queue, now_ns - TRACE_LAG_NS, take_event, run);
    uint64_t passed_ns = now_ns - run->told_ns;
    if (run->values->interval_ns && passed_ns >= run->values->interval_ns && run->alloc &&
        !run->values->json) {
        run->told_ns = now_ns;
        put_time(run, now_ns);
        trace_tally_allocating(&run->tally, &run->seen_bytes, passed_ns, &run->out);
    }
    print(run);
}

/* The last ones, while the reader and its types are still there. */
static void finish(void *user)
{
    struct trace_run *run = user;
    record_queue_release(&run->queue, UINT64_MAX, take_event, run);
    print(run);
}

static void note(void *user, const char *text)
{
    (void)user;
    message_warning("%s", text);
}

/* `heap` and `exc` are what dntrace called them. */
static bool add_topic(struct trace_run *run, const char *word)
{
    const char *name = strcmp(word, "heap") == 0 ? "gc" : strcmp(word, "exc") == 0 ? "exceptions" : word;
    run->gc |= strcmp(word, "gc") == 0;
    run->heap |= strcmp(word, "heap") == 0;
    run->alloc |= strcmp(word, "alloc") == 0;
    run->exceptions |= strcmp(name, "exceptions") == 0;
    run->http |= strcmp(word, "http") == 0;
    run->tasks |= strcmp(word, "tasks") == 0;
    return event_topics_add(&run->request.providers, name, strlen(name));
}

static bool read_topics(struct trace_run *run, const struct verb_call *call, struct error *err)
{
    static const char *const usual[] = { "gc", "heap", "alloc", "exceptions" };
    const char *const *words = call->arg_count ? call->args : usual;
    size_t count = call->arg_count ? call->arg_count : ARRAY_LEN(usual);
    for (size_t i = 0; i < count; i++)
        if (!add_topic(run, words[i])) {
            error_set(err, ERROR_USAGE, "there is nothing called '%s' to be traced", words[i]);
            return error_hint(
                err, "gc, heap, alloc, exceptions, http, tasks, locks, threadpool, jit, alloc-sampled");
        }
    if (event_providers_clash(&run->request.providers))
        return error_set(err, ERROR_USAGE,
                         "alloc and alloc-sampled exclude each other: the runtime sends only one");
    run->request.buffer_mb = TRACE_BUFFER_MB;
    return true;
}

static bool watch(struct trace_run *run, struct record_stats *stats, struct error *err)
{
    const struct target *t = &run->targets.items[0];
    run->clock_offset_ns = time_namespace_offsets(t->pid).monotonic_ns;
    run->threads = trace_threads_new(t->pid, (uint32_t)t->ns_pid);
    run->started_ns = run->told_ns = clock_monotonic_ns();
    struct stream_recording_options options = {
        .peer = { t->pid, t->start_ticks, RUNTIME_SOCKET_CONNECT_MS, RUNTIME_SOCKET_REPLY_MS },
        .request = &run->request,
        .choose = true,
        .out_fd = -1,
        .event = on_event,
        .duration_ns = run->values->duration_ns,
        .stop = run->stopped,
        .stop_fd = isatty(STDIN_FILENO) ? STDIN_FILENO : -1,
        .looked = on_look,
        .drained = finish,
        .note = note,
        .user = run,
    };
    return stream_recording_run(&options, stats, err);
}

static void put_requests(struct trace_run *run)
{
    const struct trace_requests *r = &run->requests;
    if (!run->http)
        return;
    buffer_format(&run->out, "requests    %s", r->ended ? units_count(r->ended).text : "none");
    if (r->ended)
        buffer_format(&run->out, ", mean %s, longest %s", units_duration(r->total_ns / r->ended).text,
                      units_duration(r->longest_ns).text);
    if (r->count)
        buffer_format(&run->out, "; %zu still run", r->count);
    buffer_u8(&run->out, '\n');
}

static bool tell_end(struct trace_run *run, const struct record_stats *stats, struct error *err)
{
    struct json_writer j;
    if (run->refused)
        return true;
    run->tally.lost = stats->events_lost;
    if (run->values->json) {
        json_init(&j, &run->out);
        trace_tally_json(&run->tally, stats->duration_ns, &j);
        json_finish(&j, NULL);
    } else {
        buffer_string(&run->out, "\n");
        trace_tally_text(&run->tally, stats->duration_ns, &run->out);
        put_requests(run);
    }
    return stdout_text(&run->out, err);
}

static bool trace_run(struct verb_call *call, struct error *err)
{
    struct trace_run run = { .values = call->values };
    struct record_stats stats;
    struct target_query query = target_options_query(&run.values->target);
    query.one = true;
    stream_schemas_init(&run.schemas);
    record_queue_init(&run.queue, TRACE_QUEUE_BYTES);
    trace_tally_init(&run.tally);
    buffer_init(&run.out, OUTPUT_BYTES_MAX);
    buffer_init(&run.scratch, 2 * TRACE_LINE_BYTES);
    run.stopped = stop_signal_catch();
    bool ok = read_topics(&run, call, err) && target_select(&query, &run.targets, err) &&
              watch(&run, &stats, err) && tell_end(&run, &stats, err);
    stream_schemas_done(&run.schemas);
    record_queue_done(&run.queue);
    trace_tally_done(&run.tally);
    trace_requests_done(&run.requests);
    trace_threads_free(run.threads);
    buffer_done(&run.out);
    buffer_done(&run.scratch);
    event_request_done(&run.request);
    target_list_done(&run.targets);
    return ok;
}

static const struct option_spec trace_options[] = {
    { "duration", 'd', OPTION_DURATION, offsetof(struct trace_values, duration_ns),
      "stop after this time; else Ctrl-C, SIGTERM or Enter ends it", NULL, NULL },
    { "interval", 'i', OPTION_DURATION, offsetof(struct trace_values, interval_ns),
      "how often what is allocated is summed up (5s)", NULL, NULL },
    { "json", 0, OPTION_FLAG, offsetof(struct trace_values, json),
      "a line of JSON for each event, and one for the summary", NULL, NULL },
    { NULL, 0, OPTION_GROUP, offsetof(struct trace_values, target), NULL, NULL, target_option_specs },
    { 0 },
};

const struct verb verb_trace = {
    .name = "trace",
    .args = "[gc|heap|alloc|exceptions|http|...]...",
    .summary = "show what a .NET runtime does, as it does it",
    .details =
        "  A line for each collection, the heap after it, each exception, request, ...; what is allocated "
        "is\n"
        "  summed up now and then, and everything at the end. Without a word: gc heap alloc exceptions.",
    .options = trace_options,
    .defaults = &(const struct trace_values){ .interval_ns = UINT64_C(5000000000) },
    .values_size = sizeof(struct trace_values),
    .args_max = TRACE_TOPICS_MAX,
    .run = trace_run,
};
