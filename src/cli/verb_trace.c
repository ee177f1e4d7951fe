#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/time_queue.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/stop_signal.h"
#include "cli/target_options.h"
#include "cli/trace_lines.h"
#include "cli/verb.h"
#include "clr/event_profiles.h"
#include "collect/queue_item.h"
#include "collect/runtime_socket.h"
#include "collect/stream_recording.h"
#include "collect/target_select.h"
#include "collect/time_namespace.h"

enum {
    TRACE_BUFFER_MB = 64,
    TRACE_QUEUE_BYTES = 3 << 20, /* of events that wait for those of their time */
    TRACE_LINE_BYTES = 1 << 16,
    TRACE_TOPICS_MAX = 16,
};

#define TRACE_LAG_NS UINT64_C(300000000) /* runtimes hand over what they have every 100 ms or so */

struct trace_values {
    struct target_options target;
    uint64_t duration_ns, interval_ns;
    bool json;
};

struct trace_run {
    const struct trace_values *values;
    struct event_request request;
    struct trace_lines lines;
    struct target_list targets;
    int64_t clock_offset_ns;
    struct throw_site_target thrown_in;
    struct stream_schemas schemas;
    struct time_queue queue;
    struct buffer item; /* on its way into the queue */
    uint64_t told_ns, seen_bytes;
    bool refused; /* what we print is not taken: nobody reads on, or the disk is full */
    struct error refusal;
    const volatile sig_atomic_t *stopped;
};

/* What the queue carries, with the payload behind it. */
struct queued_event {
    uint64_t time_ns, thread_id;
    const struct nettrace_type *type;
    uint32_t pointer_size;
    uint8_t activity[16];
    uint32_t stack_count;
    uint64_t stack[THROW_FRAMES]; /* the first frames */
};

static void print(struct trace_run *run)
{
    if (run->lines.out.size && !run->refused && !stdout_text(&run->lines.out, &run->refusal)) {
        run->refused = true;
        raise(SIGTERM); /* nobody reads on: the end, in order */
    }
    buffer_clear(&run->lines.out);
}

static void take_event(void *user, const struct time_item *queued, struct span item)
{
    struct trace_run *run = user;
    struct queued_event event;
    (void)queued;
    memcpy(&event, item.data, sizeof event);
    struct span payload = span_part(item, sizeof event, item.size - sizeof event);
    const struct stream_schema *of = stream_schemas_get(&run->schemas, event.type, event.pointer_size);
    /* a runtime that is older, or was asked for several topics, sends all that come with them */
    if (!event_providers_choose(&run->request.providers, of->provider, of->event_id))
        return;
    struct trace_line_event line = { .time_ns = event.time_ns, .thread_id = event.thread_id };
    memcpy(line.activity, event.activity, sizeof line.activity);
    memcpy(line.stack, event.stack, sizeof line.stack);
    line.stack_count = event.stack_count;
    trace_lines_event(&run->lines, of, payload, &line);
    if (run->lines.out.size > TRACE_LINE_BYTES)
        print(run);
}

static void take_frames(struct queued_event *event, struct span stack)
{
    size_t width = event->pointer_size;
    for (; event->stack_count < THROW_FRAMES && stack.size / width > event->stack_count;
         event->stack_count++) {
        const uint8_t *frame = stack.data + width * event->stack_count;
        event->stack[event->stack_count] = width == 8 ? load_u64le(frame) : load_u32le(frame);
    }
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
    take_frames(&event, e->stack);
    for (unsigned attempt = 0; attempt <= ARRAY_LEN(lags_ns); attempt++) {
        buffer_clear(&run->item);
        buffer_append(&run->item, &event, sizeof event);
        buffer_append(&run->item, e->payload.data, e->payload.size);
        if (time_queue_add(&run->queue, event.time_ns, QUEUE_EVENT, buffer_span(&run->item)) ||
            attempt == ARRAY_LEN(lags_ns))
            return;
        time_queue_release(&run->queue, clock_monotonic_ns() - lags_ns[attempt], take_event, run);
    }
}

static void on_look(void *user, uint64_t now_ns)
{
    struct trace_run *run = user;
    time_queue_release(&run->queue, now_ns - TRACE_LAG_NS, take_event, run);
    uint64_t passed_ns = now_ns - run->told_ns;
    if (run->values->interval_ns && passed_ns >= run->values->interval_ns) {
        run->told_ns = now_ns;
        trace_lines_allocating(&run->lines, now_ns, &run->seen_bytes, passed_ns);
    }
    print(run);
}

/* The last ones, while the reader and its types are still there. */
static void finish(void *user)
{
    struct trace_run *run = user;
    time_queue_release(&run->queue, UINT64_MAX, take_event, run);
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
    struct trace_wants *wants = &run->lines.wants;
    const char *name = strcmp(word, "heap") == 0 ? "gc" : strcmp(word, "exc") == 0 ? "exceptions" : word;
    wants->gc |= strcmp(word, "gc") == 0;
    wants->heap |= strcmp(word, "heap") == 0;
    wants->alloc |= strcmp(word, "alloc") == 0;
    wants->exceptions |= strcmp(name, "exceptions") == 0;
    wants->http |= strcmp(word, "http") == 0;
    wants->tasks |= strcmp(word, "tasks") == 0;
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
    run->request.stacks = run->lines.wants.exceptions; /* they tell throws from awaits */
    return true;
}

static bool watch(struct trace_run *run, struct record_stats *stats, struct error *err)
{
    const struct target *t = &run->targets.items[0];
    run->clock_offset_ns = time_namespace_offsets(t->pid).monotonic_ns;
    run->lines.pid = (uint64_t)t->pid;
    run->lines.threads = trace_threads_new(t->pid, (uint32_t)t->ns_pid);
    run->thrown_in = (struct throw_site_target){ .target = t, .note = note };
    run->lines.sites = throw_sites_new(throw_sites_ask_target, &run->thrown_in);
    run->lines.started_ns = run->told_ns = clock_monotonic_ns();
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

static bool tell_end(struct trace_run *run, const struct record_stats *stats, struct error *err)
{
    if (run->refused) {
        *err = run->refusal;
        return run->refusal.os_error == EPIPE;
    }
    trace_lines_end(&run->lines, stats->duration_ns, stats->events_lost);
    return stdout_text(&run->lines.out, err);
}

static bool trace_run(struct verb_call *call, struct error *err)
{
    struct trace_run run = { .values = call->values };
    struct record_stats stats;
    struct target_query query = target_options_query(&run.values->target);
    query.one = true;
    stream_schemas_init(&run.schemas);
    time_queue_init(&run.queue, TRACE_QUEUE_BYTES);
    trace_lines_init(&run.lines);
    run.lines.json = run.values->json;
    buffer_init(&run.item, 2 * TRACE_LINE_BYTES);
    run.stopped = stop_signal_catch();
    bool ok = read_topics(&run, call, err) && target_select_able(&query, TARGET_EVENTS, &run.targets, err) &&
              watch(&run, &stats, err) && tell_end(&run, &stats, err);
    stream_schemas_done(&run.schemas);
    time_queue_done(&run.queue);
    trace_lines_done(&run.lines);
    buffer_done(&run.item);
    event_request_done(&run.request);
    target_list_done(&run.targets);
    return ok;
}

static const struct option_spec trace_options[] = {
    { "duration", 'd', OPTION_TIME_LIMIT, offsetof(struct trace_values, duration_ns),
      "stop after this time; else Ctrl-C, SIGTERM or Enter ends it", NULL, NULL },
    { "interval", 'i', OPTION_DURATION, offsetof(struct trace_values, interval_ns),
      "how often what is allocated is summed up (5s)", NULL, NULL },
    { "json", 0, OPTION_FLAG, offsetof(struct trace_values, json),
      "a line of JSON for each event, and one for the summary", NULL, NULL },
    { NULL, 0, OPTION_GROUP, offsetof(struct trace_values, target), NULL, NULL, one_target_option_specs },
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
