/*
 * verb_trace: `clrperf trace`, a line for each thing that a running .NET runtime tells of.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "cli/message.h"
#include "cli/standard_output.h"
#include "cli/stop_signal.h"
#include "cli/target_options.h"
#include "cli/trace_view.h"
#include "cli/verb.h"
#include "clr/event_profiles.h"
#include "collect/runtime_log.h"
#include "collect/runtime_session.h"
#include "collect/thread_ids.h"

enum {
    POLL_MS = 100,
    LATE_NS = 100000000, /* by so much the runtime may be late with what a thread of it said */
    QUEUE_BYTES_MAX = 64 << 20,
    BUFFER_MB = 16, /* of the target's memory: what comes is read at once */
    END_NS = 1000000000,
};

#define TRACE_INTERVAL_NS UINT64_C(1000000000)

struct trace_values {
    struct target_options target;
    uint64_t duration_ns, interval_ns;
    bool json;
};

struct trace_run {
    const struct trace_values *values;
    struct target_list targets;
    struct event_providers providers;
    struct runtime_session *session;
    struct thread_ids *threads;
    struct record_queue queue;
    struct trace_view view;
    struct buffer out;
    struct json_writer json;
    uint32_t process;
};

/* What can be asked for, and the topic of `record -e` that has it. */
static const struct {
    const char *name, *also, *topic, *summary;
} words[TRACE_TOPICS] = {
    [TRACE_GC] = { "gc", NULL, "gc", "each collection: generation, pause, reason" },
    [TRACE_HEAP] = { "heap", NULL, "gc", "sizes of the generations after each" },
    [TRACE_ALLOC] = { "alloc", NULL, "alloc", "what types take most, each interval" },
    [TRACE_EXCEPTIONS] = { "exceptions", "exc", "exceptions", "each exception that is thrown" },
    [TRACE_HTTP] = { "http", NULL, "http", "each request served or sent, and how long it took" },
};

static void trace_words(struct buffer *out)
{
    buffer_string(out, "what to tell of (gc exceptions):\n");
    for (size_t i = 0; i < TRACE_TOPICS; i++)
        buffer_format(out, "  %-11s %s\n", words[i].name, words[i].summary);
}

static bool add_word(struct trace_run *run, bool topics[TRACE_TOPICS], const char *word, struct error *err)
{
    for (size_t i = 0; i < TRACE_TOPICS; i++)
        if (strcmp(word, words[i].name) == 0 || (words[i].also && strcmp(word, words[i].also) == 0)) {
            topics[i] = true;
            event_topics_add(&run->providers, words[i].topic, strlen(words[i].topic));
            return true;
        }
    error_set(err, ERROR_USAGE, "trace cannot tell of '%s'", word);
    return error_hint(err, "one or more of: gc, heap, alloc, exceptions, http");
}

static bool choose(struct trace_run *run, const struct verb_call *call, bool topics[TRACE_TOPICS],
                   struct error *err)
{
    static const char *const usual[] = { "gc", "exceptions" };
    const char *const *chosen = call->arg_count ? call->args : usual;
    size_t count = call->arg_count ? call->arg_count : ARRAY_LEN(usual);
    for (size_t i = 0; i < count; i++)
        if (!add_word(run, topics, chosen[i], err))
            return false;
    return true;
}

static bool open_target(struct trace_run *run, struct error *err)
{
    struct target_query query = target_options_query(&run->values->target);
    query.one = true;
    if (!target_select_able(&query, TARGET_EVENTS, &run->targets, err))
        return false;
    const struct target *target = &run->targets.items[0];
    struct runtime_session_options options = {
        .buffer_mb = BUFFER_MB,
        .no_methods = true,
        .topics = &run->providers,
    };
    if (!runtime_session_start(target->pid, target->start_ticks, &options, &run->session, err))
        return false;
    run->threads = thread_ids_new(target->pid, (uint32_t)target->ns_pid);
    run->process = trace_builder_process_start(&run->view.b, (uint32_t)target->pid, clock_monotonic_ns());
    runtime_log_begin(&run->view.b, run->process, runtime_session_told(run->session));
    return true;
}

/* Where it was told is of no use in a line. */
static void take_event(void *user, const struct runtime_event *event)
{
    struct trace_run *run = user;
    struct runtime_event flat = *event;
    flat.stack = (struct span){ 0 };
    runtime_log_add(&run->view.b, run->process, run->threads, &flat, &run->queue);
}

static void show_event(void *user, enum queue_item_kind kind, struct span bytes)
{
    struct trace_run *run = user;
    size_t had = run->view.b.trace.events.count;
    (void)kind;
    runtime_log_apply(&run->view.b, bytes);
    if (run->view.b.trace.events.count > had)
        trace_view_event(&run->view);
}

static bool drain(struct trace_run *run, struct error *err)
{
    struct pollfd polls[RUNTIME_SESSION_STREAMS];
    struct runtime_sink sink = { .user = run, .event = take_event };
    size_t count = runtime_session_polls(run->session, polls);
    poll(polls, count, POLL_MS);
    return runtime_session_drain(run->session, &sink, err);
}

static bool print(struct trace_run *run, uint64_t until_ns, struct error *err)
{
    record_queue_release(&run->queue, until_ns, show_event, run);
    bool ok = run->out.size == 0 || stdout_text(&run->out, err);
    buffer_clear(&run->out);
    return ok;
}

static bool follow(struct trace_run *run, const volatile sig_atomic_t *stopped, struct error *err)
{
    uint64_t duration_ns = run->values->duration_ns;
    while (!*stopped && !runtime_session_ended(run->session)) {
        uint64_t now_ns = clock_monotonic_ns();
        if (duration_ns && now_ns - run->view.start_ns >= duration_ns)
            break;
        if (!drain(run, err))
            return false;
        trace_view_tick(&run->view, now_ns);
        if (!print(run, clock_monotonic_ns() - LATE_NS, err))
            return false;
    }
    return true;
}

/* What the runtime still has, for as long as it takes to send that. */
static bool finish(struct trace_run *run, struct error *err)
{
    uint64_t now_ns = clock_monotonic_ns(), until_ns = now_ns + END_NS;
    bool ended = !runtime_session_stop(run->session, NULL);
    while (!ended && !runtime_session_ended(run->session) && clock_monotonic_ns() < until_ns)
        ended = !drain(run, NULL);
    record_queue_release(&run->queue, UINT64_MAX, show_event, run);
    trace_view_summary(&run->view, now_ns, runtime_session_lost(run->session));
    return stdout_text(&run->out, err);
}

static bool run_it(struct trace_run *run, struct error *err)
{
    const volatile sig_atomic_t *stopped = stop_signal_catch();
    if (!open_target(run, err))
        return false;
    message_note("listening to %s; Ctrl-C ends it", target_label(&run->targets.items[0]));
    run->view.start_ns = run->view.interval_from_ns = clock_monotonic_ns();
    struct error broken = { 0 };
    bool ok = follow(run, stopped, &broken);
    if (!ok) /* the target is gone: what was seen is worth its sums */
        message_warning("%s", broken.what);
    return finish(run, err);
}

static bool trace_run(struct verb_call *call, struct error *err)
{
    struct trace_run run = { .values = call->values };
    bool topics[TRACE_TOPICS] = { false };
    event_providers_init(&run.providers);
    bool ok = choose(&run, call, topics, err);
    if (ok) {
        buffer_init(&run.out, OUTPUT_BYTES_MAX);
        record_queue_init(&run.queue, QUEUE_BYTES_MAX);
        trace_view_init(&run.view, topics, run.values->interval_ns, &run.out);
        json_init(&run.json, &run.out);
        run.view.json = run.values->json ? &run.json : NULL;
        ok = run_it(&run, err);
        runtime_session_close(run.session);
        thread_ids_free(run.threads);
        trace_view_done(&run.view);
        record_queue_done(&run.queue);
        buffer_done(&run.out);
        target_list_done(&run.targets);
    }
    event_providers_done(&run.providers);
    return ok;
}

static const struct option_spec trace_options[] = {
    { "duration", 'd', OPTION_DURATION, offsetof(struct trace_values, duration_ns),
      "stop after this time (10s, 2m); else Ctrl-C or SIGTERM ends it", NULL, NULL },
    { "interval", 'i', OPTION_DURATION, offsetof(struct trace_values, interval_ns),
      "how often to tell what was allocated (1s)", NULL, NULL },
    { "json", 0, OPTION_FLAG, offsetof(struct trace_values, json), "print each event as a line of JSON", NULL,
      NULL },
    { .kind = OPTION_GROUP, .offset = offsetof(struct trace_values, target), .group = target_option_specs },
    { 0 },
};

const struct verb verb_trace = {
    .name = "trace",
    .args = "[WHAT...]",
    .summary = "tell live of collections, allocations, exceptions and requests of a .NET process",
    .words = trace_words,
    .options = trace_options,
    .defaults = &(const struct trace_values){ .interval_ns = TRACE_INTERVAL_NS },
    .values_size = sizeof(struct trace_values),
    .args_max = TRACE_TOPICS,
    .run = trace_run,
};
