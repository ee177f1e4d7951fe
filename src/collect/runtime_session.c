#include "collect/runtime_session.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/method_code.h"
#include "clr/runtime_events.h"
#include "collect/cgroup.h"
#include "collect/event_stream.h"
#include "collect/proc_file.h"
#include "collect/runtime_socket.h"
#include "collect/time_namespace.h"

enum {
    RECEIVE_BYTES = 256 << 10,
    DRAIN_BYTES_MAX = 8 << 20, /* per call, so that other sources get their turn */
    TEXT_MAX = 1 << 20,        /* of one name */
    /*
     * The session's buffer is the target's memory, taken as events wait to be read: about 250 bytes a
     * method, so 16 MB hold 60 000 methods that we have not yet fetched.
     */
    BUFFER_MB = 16,
    EVENTS_BUFFER_MB = 256, /* of a stream of events somebody wants: as much as dotnet-trace takes */
    BUFFER_MIN_MB = 4,      /* also of a stream of collections, which takes 1 KB for each */
    METHODS_LEVEL = EVENT_LEVEL_VERBOSE, /* below, the runtime tells of no method at all */
    TYPES_MAX = NETTRACE_METADATA_MAX,
};

/* The first one has methods, and whatever else fits. */
enum stream_kind { STREAM_METHODS, STREAM_LIGHT, STREAM_ASKED };

struct stream {
    struct runtime_session *session;
    enum stream_kind kind;
    struct event_stream from;
    struct nettrace_reader *reader;
};

struct runtime_session {
    struct event_peer peer;
    struct runtime_session_options options;
    struct stream streams[RUNTIME_SESSION_STREAMS]; /* of methods first */
    size_t stream_count;
    bool complete, stop_seen;
    int64_t clock_offset_ns; /* of the target's CLOCK_MONOTONIC to ours */
    struct ipc_process_info info;
    const struct runtime_sink *sink; /* during a drain */
    struct buffer text;
    struct runtime_session_counts counts;
    uint8_t *received;             /* RECEIVE_BYTES */
    struct event_providers wanted; /* of the first two streams: their events are told */
    struct event_providers told;   /* of all */
    uint32_t *memos;               /* by type: the receiver's; [0] is unused */
    size_t memo_count, memo_capacity;
};

/* What an event type is, kept in its mark: looked up once, not for every event. Its memo stands above. */
enum { MARK_KIND = 0xff, MARK_VERBOSE = 0x100, MARK_TOLD = 0x200, MARK_MEMO_SHIFT = 32 };

static bool is_wanted(struct runtime_session *s, const struct nettrace_type *type)
{
    buffer_clear(&s->text);
    utf16_append_utf8(&s->text, type->provider);
    buffer_u8(&s->text, 0);
    return !s->text.failed && event_providers_choose(&s->wanted, (const char *)s->text.data, type->event_id);
}

static bool is_told(const struct stream *stream, const struct nettrace_type *type)
{
    if (stream->kind == STREAM_ASKED) /* what the list at its end says, the trace says better */
        return !utf16_equals_ascii(type->provider, RUNTIME_RUNDOWN_PROVIDER);
    return is_wanted(stream->session, type);
}

static uint64_t new_memo(struct runtime_session *s)
{
    if (s->memo_count >= TYPES_MAX * RUNTIME_SESSION_STREAMS)
        return 0;
    s->memos = mem_grow(s->memos, &s->memo_capacity, s->memo_count + 2, sizeof *s->memos);
    s->memos[++s->memo_count] = 0;
    return (uint64_t)s->memo_count << MARK_MEMO_SHIFT;
}

static bool on_type(void *user, struct nettrace_type *type, struct error *err)
{
    struct stream *stream = user;
    (void)err;
    type->mark = 0;
    if (stream->kind == STREAM_METHODS) {
        type->mark = runtime_event_kind(type->provider, type->event_id);
        if (runtime_event_is_verbose(type->provider, type->event_id))
            type->mark |= MARK_VERBOSE;
    }
    uint64_t memo = is_told(stream, type) ? new_memo(stream->session) : 0;
    if (memo)
        type->mark |= MARK_TOLD | memo;
    return true;
}

static enum runtime_method_change change_of(enum runtime_event_kind kind)
{
    switch (kind) {
    case RUNTIME_EVENT_METHOD_UNLOAD:
    case RUNTIME_EVENT_MODULE_UNLOAD:
        return RUNTIME_METHOD_UNLOADED;
    case RUNTIME_EVENT_METHOD_EXISTS:
    case RUNTIME_EVENT_MODULE_EXISTS:
        return RUNTIME_METHOD_EXISTS_AT_END;
    default:
        return RUNTIME_METHOD_LOADED;
    }
}

static void tell_method(struct runtime_session *s, const struct nettrace_event *event)
{
    struct runtime_method_event m;
    bool verbose = event->type->mark & MARK_VERBOSE;
    if (!runtime_method_event_read(event->payload, event->type->version, verbose, &m, NULL)) {
        s->counts.skipped++;
        return;
    }
    enum runtime_method_change change = change_of((enum runtime_event_kind)(event->type->mark & MARK_KIND));
    bool own_code = m.flags & (RUNTIME_METHOD_JITTED | RUNTIME_METHOD_DYNAMIC | RUNTIME_METHOD_HELPER);
    if (!own_code && !s->options.precompiled)
        return;
    buffer_clear(&s->text);
    s->counts.replaced += runtime_method_append_name(&s->text, &m);
    if (s->text.failed || m.size_bytes == 0 || (m.name.size == 0 && change != RUNTIME_METHOD_UNLOADED)) {
        s->counts.skipped++;
        return;
    }
    if (!s->sink->method)
        return;
    const struct runtime_method method = {
        .change = change,
        .time_ns = event->time_ns - (uint64_t)s->clock_offset_ns,
        .addr = m.addr,
        .size_bytes = m.size_bytes,
        .method_id = m.method_id,
        .module_id = m.module_id,
        .rejit_id = m.rejit_id,
        .token = m.token,
        .name = buffer_span(&s->text),
        .tier = (uint8_t)method_code_tier(&m),
        .dynamic = m.flags & RUNTIME_METHOD_DYNAMIC,
        .jitted = m.flags & RUNTIME_METHOD_JITTED,
        .generic = m.flags & RUNTIME_METHOD_GENERIC,
        .cold = runtime_method_is_cold(&m),
    };
    s->sink->method(s->sink->user, &method);
}

static void tell_module(struct runtime_session *s, const struct nettrace_event *event)
{
    struct runtime_module_event m;
    if (!runtime_module_event_read(event->payload, event->type->version, &m, NULL)) {
        s->counts.skipped++;
        return;
    }
    buffer_clear(&s->text);
    s->counts.replaced += utf16_append_utf8(&s->text, m.il_path);
    if (s->text.failed || !s->sink->module)
        return;
    const struct runtime_module module = {
        .change = change_of((enum runtime_event_kind)(event->type->mark & MARK_KIND)),
        .time_ns = event->time_ns - (uint64_t)s->clock_offset_ns,
        .module_id = m.module_id,
        .path = buffer_span(&s->text),
    };
    s->sink->module(s->sink->user, &module);
}

static void tell_event(const struct stream *stream, const struct nettrace_event *event)
{
    struct runtime_session *s = stream->session;
    if (!s->sink->event)
        return;
    const struct nettrace_info *info = nettrace_reader_info(stream->reader);
    const struct runtime_event told = {
        .time_ns = event->time_ns - (uint64_t)s->clock_offset_ns,
        .thread_id = event->thread_id,
        .type = event->type,
        .type_memo = &s->memos[event->type->mark >> MARK_MEMO_SHIFT],
        .pointer_size = info ? info->pointer_size : 8,
        .stack = event->stack,
        .payload = event->payload,
        .activity = event->activity,
        .related_activity = event->related_activity,
    };
    s->counts.told++;
    if (s->options.stopping && !s->stop_seen)
        s->stop_seen = stopping_event_is(s->options.stopping, event->type, told.pointer_size, event->payload);
    s->sink->event(s->sink->user, &told);
}

static bool on_event(void *user, const struct nettrace_event *event, struct error *err)
{
    (void)err;
    struct stream *stream = user;
    struct runtime_session *s = stream->session;
    if (event->type->mark & MARK_TOLD)
        tell_event(stream, event);
    switch ((enum runtime_event_kind)(event->type->mark & MARK_KIND)) {
    case RUNTIME_EVENT_METHOD_LOAD:
    case RUNTIME_EVENT_METHOD_UNLOAD:
    case RUNTIME_EVENT_METHOD_EXISTS:
        tell_method(s, event);
        break;
    case RUNTIME_EVENT_MODULE_LOAD:
    case RUNTIME_EVENT_MODULE_UNLOAD:
    case RUNTIME_EVENT_MODULE_EXISTS:
        tell_module(s, event);
        break;
    case RUNTIME_EVENT_RUNDOWN_DONE:
        s->complete = true;
        break;
    default:
        break;
    }
    return true;
}

/* Runtimes before .NET 5 know no such question: then nothing is known, which is no failure. */
static bool ask_info(struct runtime_session *s, struct error *err)
{
    static const enum ipc_command questions[] = { IPC_PROCESS_INFO3, IPC_PROCESS_INFO2, IPC_PROCESS_INFO };
    struct event_peer peer = s->peer;
    peer.reply_timeout_ms = s->options.first_timeout_ms;
    struct buffer request, answer;
    buffer_init(&request, IPC_MESSAGE_MAX);
    buffer_init(&answer, IPC_MESSAGE_MAX);
    bool ok = false;
    uint32_t result = IPC_OK;
    for (size_t i = 0; i < ARRAY_LEN(questions) && !ok; i++) {
        buffer_clear(&request);
        ipc_append_plain(&request, questions[i]);
        ok = event_peer_ask(&peer, &request, &answer, NULL, &result, err) &&
             ipc_read_process_info(buffer_span(&answer), questions[i], &s->info, err);
        if (!ok && result != (uint32_t)IPC_UNKNOWN_COMMAND)
            break;
    }
    buffer_done(&request);
    buffer_done(&answer);
    return ok || result == (uint32_t)IPC_UNKNOWN_COMMAND;
}

/* What a stream is asked for; the providers are this plan's own. */
static struct event_request plan_of(const struct runtime_session *s)
{
    return (struct event_request){ .buffer_mb = s->options.buffer_mb };
}

static void plan_methods(const struct runtime_session *s, struct event_request *plan)
{
    static uint32_t ids[] = { 141, 142, 143, 144, 152, 153 };
    struct event_provider methods = {
        .name = (char *)RUNTIME_PROVIDER,
        .keywords = RUNTIME_KEYWORD_JIT | RUNTIME_KEYWORD_LOADER | RUNTIME_KEYWORD_END_ENUMERATION,
        .level = METHODS_LEVEL,
        .event_ids = ids,
        .event_id_count = ARRAY_LEN(ids),
    };
    event_providers_add(&plan->providers, &methods, NULL);
    plan->rundown_keywords = s->options.no_list ? 0 : RUNTIME_KEYWORD_JIT | RUNTIME_KEYWORD_LOADER;
}

/* When threads stood still for a collection. */
static void want_collections(struct runtime_session *s)
{
    static uint32_t ids[] = { 1, 2, 3, 7, 8, 9 };
    struct event_provider collections = {
        .name = (char *)RUNTIME_PROVIDER,
        .keywords = RUNTIME_KEYWORD_GC,
        .level = EVENT_LEVEL_INFORMATIONAL,
        .light_keywords = RUNTIME_KEYWORD_GC,
        .light_level = EVENT_LEVEL_INFORMATIONAL,
        .event_ids = ids,
        .event_id_count = ARRAY_LEN(ids),
    };
    event_providers_add(&s->wanted, &collections, NULL);
}

/* The user's own stream tells of collections already: an event is told once. */
static bool asked_tells_collections(const struct event_request *asked)
{
    const struct event_provider *p = asked ? event_providers_find(&asked->providers, RUNTIME_PROVIDER) : NULL;
    return p && p->keywords & RUNTIME_KEYWORD_GC &&
           (p->level == EVENT_LEVEL_ALWAYS || p->level >= EVENT_LEVEL_INFORMATIONAL);
}

static void add_all(struct event_providers *to, const struct event_providers *from)
{
    for (size_t i = 0; i < from->count; i++)
        event_providers_add(to, &from->items[i], NULL);
}

static void want(struct runtime_session *s)
{
    const struct runtime_session_options *o = &s->options;
    if (o->collections && !asked_tells_collections(o->asked))
        want_collections(s);
    if (o->topics)
        add_all(&s->wanted, o->topics);
}

static bool open_stream(struct runtime_session *s, const struct event_request *request, bool choose,
                        enum stream_kind kind, bool *out_unknown, struct error *err)
{
    struct stream *stream = &s->streams[s->stream_count];
    if (!event_stream_open(&s->peer, request, choose, &stream->from, out_unknown, err))
        return false;
    stream->kind = kind;
    s->stream_count++;
    return true;
}

/* Methods and all that is wanted, event by event. */
static bool ask_chosen(struct runtime_session *s, bool *out_unknown, struct error *err)
{
    struct event_request plan = plan_of(s);
    plan.stacks = s->options.topics;
    plan_methods(s, &plan);
    add_all(&plan.providers, &s->wanted);
    bool ok = open_stream(s, &plan, true, STREAM_METHODS, out_unknown, err);
    event_request_done(&plan);
    return ok;
}

/*
 * For a runtime that cannot choose: with the methods, at their level, goes what needs it, and what that
 * brings along anyway; the rest in a stream of its own.
 */
static void split_wanted(const struct runtime_session *s, struct event_request *methods,
                         struct event_request *light)
{
    for (size_t i = 0; i < s->wanted.count; i++) {
        struct event_provider part = s->wanted.items[i];
        uint64_t all = part.keywords, verbose = all & ~part.light_keywords;
        bool talkative = part.level == EVENT_LEVEL_VERBOSE || part.level == EVENT_LEVEL_ALWAYS;
        part.event_id_count = 0;
        part.keywords = part.light_keywords ? verbose : all;
        if (part.keywords || !part.light_keywords)
            event_providers_add(talkative ? &methods->providers : &light->providers, &part, NULL);
        part.keywords = all & part.light_keywords;
        part.level = part.light_level;
        if (part.keywords)
            event_providers_add(&light->providers, &part, NULL);
    }
}

static bool ask_plain(struct runtime_session *s, struct error *err)
{
    struct event_request methods = plan_of(s), light = plan_of(s);
    bool unknown;
    methods.stacks = light.stacks = s->options.topics;
    if (!s->options.topics)
        light.buffer_mb = BUFFER_MIN_MB;
    plan_methods(s, &methods);
    split_wanted(s, &methods, &light);
    bool ok = open_stream(s, &methods, false, STREAM_METHODS, &unknown, err);
    /* without it samples can still be named; but what was asked for must be there */
    if (ok && light.providers.count && !open_stream(s, &light, false, STREAM_LIGHT, &unknown, err)) {
        ok = !s->options.topics;
        event_providers_done(&s->wanted);
    }
    event_request_done(&methods);
    event_request_done(&light);
    return ok;
}

static bool ask_streams(struct runtime_session *s, struct error *err)
{
    bool unknown = false;
    want(s);
    if (!ask_chosen(s, &unknown, err) && (!unknown || !ask_plain(s, err)))
        return false;
    if (s->options.asked && !open_stream(s, s->options.asked, false, STREAM_ASKED, &unknown, err))
        return false;
    add_all(&s->told, &s->wanted);
    if (s->options.asked)
        add_all(&s->told, &s->options.asked->providers);
    return true;
}

static void set_options(struct runtime_session *s, const struct runtime_session_options *options)
{
    s->options = *options;
    if (s->options.buffer_mb == 0)
        s->options.buffer_mb = options->topics ? EVENTS_BUFFER_MB : BUFFER_MB;
    s->options.buffer_mb = cgroup_buffer_mb(s->peer.pid, s->options.buffer_mb);
    if (s->options.connect_timeout_ms == 0)
        s->options.connect_timeout_ms = RUNTIME_SOCKET_CONNECT_MS;
    if (s->options.reply_timeout_ms == 0)
        s->options.reply_timeout_ms = RUNTIME_SOCKET_REPLY_MS;
    if (s->options.first_timeout_ms == 0)
        s->options.first_timeout_ms = s->options.reply_timeout_ms;
    s->peer.connect_timeout_ms = s->options.connect_timeout_ms;
    s->peer.reply_timeout_ms = s->options.reply_timeout_ms;
    s->peer.given_up = s->options.given_up;
}

bool runtime_session_start(pid_t pid, uint64_t start_ticks, const struct runtime_session_options *options,
                           struct runtime_session **out, struct error *err)
{
    if (proc_file_stays_stopped(pid)) { /* it would be waited for in vain */
        error_set(err, ERROR_UNSUPPORTED, "the .NET runtime does not answer: process %d is stopped",
                  (int)pid);
        return error_hint(err, "let it go on with: kill -CONT %d", (int)pid);
    }
    struct runtime_session *s = mem_alloc(1, sizeof *s);
    s->peer = (struct event_peer){ .pid = pid, .start_ticks = start_ticks };
    set_options(s, options);
    buffer_init(&s->text, TEXT_MAX);
    s->received = mem_alloc(RECEIVE_BYTES, 1);
    s->clock_offset_ns = time_namespace_offsets(pid).monotonic_ns;
    for (size_t i = 0; i < RUNTIME_SESSION_STREAMS; i++) {
        struct nettrace_sink sink = { .user = &s->streams[i], .on_type = on_type, .on_event = on_event };
        s->streams[i] =
            (struct stream){ .session = s, .from = EVENT_STREAM_NONE, .reader = nettrace_reader_new(&sink) };
    }
    bool ok = ask_info(s, err) && ask_streams(s, err);
    s->options.topics = NULL;
    s->options.asked = NULL;
    if (!ok) {
        runtime_session_close(s);
        return false;
    }
    *out = s;
    return true;
}

void runtime_session_close(struct runtime_session *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < RUNTIME_SESSION_STREAMS; i++) {
        event_stream_close(&s->streams[i].from);
        nettrace_reader_free(s->streams[i].reader);
    }
    ipc_process_info_done(&s->info);
    event_providers_done(&s->wanted);
    event_providers_done(&s->told);
    buffer_done(&s->text);
    free(s->received);
    free(s->memos);
    free(s);
}

size_t runtime_session_polls(const struct runtime_session *s, struct pollfd out[RUNTIME_SESSION_STREAMS])
{
    size_t count = 0;
    for (size_t i = 0; i < s->stream_count; i++)
        if (s->streams[i].from.fd >= 0)
            out[count++] = (struct pollfd){ .fd = s->streams[i].from.fd, .events = POLLIN };
    return count;
}

static bool drain(struct runtime_session *s, struct stream *stream, struct error *err)
{
    for (size_t done = 0; done < DRAIN_BYTES_MAX;) {
        ssize_t got = event_stream_read(&stream->from, s->received, RECEIVE_BYTES, err);
        if (got < 0)
            return error_context(err, "process %d", (int)s->peer.pid);
        if (got == 0)
            return true;
        done += (size_t)got;
        if (!nettrace_reader_feed(stream->reader, span_of(s->received, (size_t)got), err)) {
            event_stream_end(&stream->from);
            return error_context(err, "process %d", (int)s->peer.pid);
        }
        if (nettrace_reader_ended(stream->reader))
            event_stream_end(&stream->from);
    }
    return true;
}

bool runtime_session_drain(struct runtime_session *s, const struct runtime_sink *sink, struct error *err)
{
    s->sink = sink;
    for (size_t i = 0; i < s->stream_count; i++)
        if (!drain(s, &s->streams[i], err)) {
            for (size_t other = 0; other < s->stream_count; other++)
                event_stream_end(&s->streams[other].from);
            return false;
        }
    return true;
}

bool runtime_session_stop(struct runtime_session *s, struct error *err)
{
    /* the methods last: a stack of the others' last events can be in one that is new */
    for (size_t i = s->stream_count; i-- > 0;)
        if (!event_stream_stop(&s->peer, &s->streams[i].from, err))
            return false;
    return true;
}

bool runtime_session_ended(const struct runtime_session *s)
{
    for (size_t i = 0; i < s->stream_count; i++)
        if (s->streams[i].from.fd >= 0)
            return false;
    return true;
}

bool runtime_session_lists(const struct runtime_session *s)
{
    return !s->options.no_list;
}

const struct event_providers *runtime_session_told(const struct runtime_session *s)
{
    return &s->told;
}

bool runtime_session_stop_seen(const struct runtime_session *s)
{
    return s->stop_seen;
}

bool runtime_session_complete(const struct runtime_session *s)
{
    return s->complete && nettrace_reader_ended(s->streams[0].reader);
}

const char *runtime_session_version(const struct runtime_session *s)
{
    return ipc_process_text(&s->info, s->info.runtime_version);
}

const char *runtime_session_entry_assembly(const struct runtime_session *s)
{
    return ipc_process_text(&s->info, s->info.entry_assembly);
}

const char *runtime_session_command_line(const struct runtime_session *s)
{
    return ipc_process_text(&s->info, s->info.command_line);
}

struct runtime_session_counts runtime_session_counts(const struct runtime_session *s)
{
    struct runtime_session_counts counts = s->counts;
    for (size_t i = 0; i < s->stream_count; i++) {
        const struct nettrace_counts *stream = nettrace_reader_counts(s->streams[i].reader);
        counts.bytes += stream->bytes;
        counts.events += stream->events;
        counts.lost += stream->lost;
        counts.skipped += stream->untyped;
    }
    return counts;
}
