#include "collect/runtime_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/diagnostics_ipc.h"
#include "clr/runtime_events.h"
#include "collect/cgroup.h"
#include "collect/runtime_socket.h"
#include "collect/time_namespace.h"
#include "read/nettrace.h"

enum {
    RECEIVE_BYTES = 256 << 10,
    DRAIN_BYTES_MAX = 8 << 20, /* per call, so that other sources get their turn */
    TEXT_MAX = 1 << 20,        /* of one name */
    /*
     * The session's buffer is the target's memory, taken as events wait to be read: about 250 bytes a
     * method, so 16 MB hold 60 000 methods that we have not yet fetched. Where its control group has little
     * left: 5 % of that, but 4 MB.
     */
    BUFFER_MB = 16,
    BUFFER_MIN_MB = 4, /* also of a stream of collections, which takes 1 KB for each */
    BUFFER_PART = 20,
    STOP_CONNECT_MS = 200, /* whoever stops has other things to stop, too */
};

/* What the runtime calls a session: it sends what one request asked for. */
struct stream {
    uint64_t id;
    int fd;      /* or -1 */
    int stop_fd; /* the connection that asked for the end, kept until close, or -1 */
    struct nettrace_reader *reader;
};

struct runtime_session {
    pid_t pid;
    uint64_t start_ticks;
    struct runtime_session_options options;
    struct stream streams[RUNTIME_SESSION_STREAMS]; /* of methods first */
    size_t stream_count;
    bool complete, tells_collections;
    int64_t clock_offset_ns; /* of the target's CLOCK_MONOTONIC to ours */
    struct ipc_process_info info;
    const struct runtime_sink *sink; /* during a drain */
    struct buffer text;
    struct runtime_session_counts counts;
    uint8_t *received; /* RECEIVE_BYTES */
};

/* What an event type is, kept in its mark: looked up once, not for every event. */
enum { MARK_VERBOSE = 0x100 };

static bool on_type(void *user, struct nettrace_type *type, struct error *err)
{
    (void)user;
    (void)err;
    type->mark = runtime_event_kind(type->provider, type->event_id);
    if (runtime_event_is_verbose(type->provider, type->event_id))
        type->mark |= MARK_VERBOSE;
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

static enum code_tier tier_of(const struct runtime_method_event *m)
{
    if (m->flags & RUNTIME_METHOD_HELPER)
        return TIER_NONE;
    if (!(m->flags & RUNTIME_METHOD_JITTED))
        return TIER_R2R;
    switch (runtime_method_tier(m)) {
    case RUNTIME_TIER_MINOPTS: /* no optimization, as tier 0, but for good */
    case RUNTIME_TIER_QUICK:
        return TIER_0;
    case RUNTIME_TIER_QUICK_INSTRUMENTED:
    case RUNTIME_TIER_1_INSTRUMENTED: /* of precompiled code: on its way to tier 1 as well */
        return TIER_0_INSTRUMENTED;
    case RUNTIME_TIER_1:
        return TIER_1;
    case RUNTIME_TIER_1_OSR:
        return TIER_OSR;
    case RUNTIME_TIER_OPTIMIZED:
        return TIER_OPTIMIZED;
    case RUNTIME_TIER_UNKNOWN:
        break;
    }
    return TIER_NONE;
}

static void tell_method(struct runtime_session *s, const struct nettrace_event *event)
{
    struct runtime_method_event m;
    bool verbose = event->type->mark & MARK_VERBOSE;
    if (!runtime_method_event_read(event->payload, event->type->version, verbose, &m, NULL)) {
        s->counts.skipped++;
        return;
    }
    enum runtime_method_change change = change_of((enum runtime_event_kind)(event->type->mark & 0xff));
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
        .tier = (uint8_t)tier_of(&m),
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
        .change = change_of((enum runtime_event_kind)(event->type->mark & 0xff)),
        .time_ns = event->time_ns - (uint64_t)s->clock_offset_ns,
        .module_id = m.module_id,
        .path = buffer_span(&s->text),
    };
    s->sink->module(s->sink->user, &module);
}

static void tell_event(struct runtime_session *s, const struct nettrace_event *event)
{
    if (!s->sink->event || !s->options.collections)
        return;
    buffer_clear(&s->text);
    utf16_append_utf8(&s->text, event->type->provider);
    const struct runtime_event told = {
        .time_ns = event->time_ns - (uint64_t)s->clock_offset_ns,
        .thread_id = event->thread_id,
        .provider = buffer_span(&s->text),
        .event_id = event->type->event_id,
        .version = event->type->version,
        .payload = event->payload,
    };
    s->sink->event(s->sink->user, &told);
}

static bool on_event(void *user, const struct nettrace_event *event, struct error *err)
{
    (void)err;
    struct runtime_session *s = user;
    switch ((enum runtime_event_kind)(event->type->mark & 0xff)) {
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
    case RUNTIME_EVENT_GC_START:
    case RUNTIME_EVENT_GC_END:
    case RUNTIME_EVENT_SUSPEND_BEGIN:
    case RUNTIME_EVENT_SUSPEND_END:
    case RUNTIME_EVENT_RESTART_BEGIN:
    case RUNTIME_EVENT_RESTART_END:
        tell_event(s, event);
        break;
    case RUNTIME_EVENT_OTHER:
        break;
    }
    return true;
}

/*
 * Connects, sends `request` and reads the answer. *out_result is IPC_OK, or the error the runtime answered
 * with; then err is filled and the return value false. The connection stays open only when out_fd is given.
 */
static bool ask(struct runtime_session *s, const struct buffer *request, struct buffer *answer, int *out_fd,
                uint32_t *out_result, struct error *err)
{
    AUTO_FD int fd = -1;
    bool is_error;
    *out_result = IPC_OK;
    if (!runtime_socket_connect(s->pid, s->start_ticks, s->options.connect_timeout_ms, &fd, err) ||
        !runtime_socket_send(fd, buffer_span(request), err) ||
        !runtime_socket_receive(fd, s->options.reply_timeout_ms, answer, &is_error, err))
        return false;
    if (is_error) {
        *out_result = ipc_read_result(buffer_span(answer));
        return error_set(err, ERROR_TARGET, "the .NET runtime answered with error %#" PRIx32 " (%s)",
                         *out_result, ipc_result_name(*out_result));
    }
    if (out_fd)
        *out_fd = take_fd(&fd);
    return true;
}

/* Runtimes before .NET 5 know no such question: then nothing is known, which is no failure. */
static bool ask_info(struct runtime_session *s, struct error *err)
{
    static const enum ipc_command questions[] = { IPC_PROCESS_INFO3, IPC_PROCESS_INFO2, IPC_PROCESS_INFO };
    struct buffer request, answer;
    buffer_init(&request, IPC_MESSAGE_MAX);
    buffer_init(&answer, IPC_MESSAGE_MAX);
    bool ok = false;
    uint32_t result = IPC_OK;
    for (size_t i = 0; i < ARRAY_LEN(questions) && !ok; i++) {
        buffer_clear(&request);
        ipc_append_plain(&request, questions[i]);
        ok = ask(s, &request, &answer, NULL, &result, err) &&
             ipc_read_process_info(buffer_span(&answer), questions[i], &s->info, err);
        if (!ok && result != (uint32_t)IPC_UNKNOWN_COMMAND)
            break;
    }
    buffer_done(&request);
    buffer_done(&answer);
    return ok || result == (uint32_t)IPC_UNKNOWN_COMMAND;
}

/*
 * Opens a stream in one way. *out_unknown: the runtime is too old for it. The stream is counted when it is
 * there.
 */
static bool ask_stream(struct runtime_session *s, enum ipc_command command,
                       const struct ipc_session_request *request, bool *out_unknown, struct error *err)
{
    struct buffer message, answer;
    buffer_init(&message, IPC_MESSAGE_MAX);
    buffer_init(&answer, IPC_MESSAGE_MAX);
    struct stream *stream = &s->streams[s->stream_count];
    uint32_t result = IPC_OK;
    bool ok = ipc_append_collect(&message, command, request, err) &&
              ask(s, &message, &answer, &stream->fd, &result, err) &&
              ipc_read_session_id(buffer_span(&answer), &stream->id, err);
    *out_unknown = result == (uint32_t)IPC_UNKNOWN_COMMAND;
    s->stream_count += ok;
    buffer_done(&message);
    buffer_done(&answer);
    return ok;
}

/* Opens the stream of methods in the newest way the runtime understands; and of collections where events can
 * be chosen. */
static bool ask_methods(struct runtime_session *s, struct error *err)
{
    /* .NET 10 leaves out the rest of the keywords' events, many more and larger than what we want. */
    static const uint32_t wanted[] = { 141, 142, 143, 144, 152, 153, 1, 2, 3, 7, 8, 9 };
    enum { WANTED_COLLECTIONS = 6 };
    const uint64_t methods = RUNTIME_KEYWORD_JIT | RUNTIME_KEYWORD_LOADER | RUNTIME_KEYWORD_END_ENUMERATION;
    struct ipc_provider provider = {
        .name = RUNTIME_PROVIDER,
        .keywords = methods | (s->options.collections ? RUNTIME_KEYWORD_GC : 0),
        .level = 5, /* below, the runtime tells of no method at all */
        .filter = IPC_FILTER_ALLOW,
        .event_ids = wanted,
        .event_id_count = ARRAY_LEN(wanted) - (s->options.collections ? 0 : WANTED_COLLECTIONS),
    };
    const struct ipc_session_request request = {
        .buffer_mb = s->options.buffer_mb,
        .stacks = false,
        .rundown_keywords = s->options.no_list ? 0 : RUNTIME_KEYWORD_JIT | RUNTIME_KEYWORD_LOADER,
        .providers = &provider,
        .provider_count = 1,
    };
    bool unknown = true, ok = false;
    enum ipc_command command = ipc_best_collect(&request);
    for (; command && !ok && unknown; command = ipc_older_collect(command, &request)) {
        ok = ask_stream(s, command, &request, &unknown, err);
        s->tells_collections = ok && provider.keywords & RUNTIME_KEYWORD_GC;
        provider.keywords = methods; /* older ways cannot choose */
    }
    return ok;
}

/* Without it samples can still be named: that it is not to be had is no failure. */
static void ask_collections(struct runtime_session *s)
{
    static const struct ipc_provider provider = { .name = RUNTIME_PROVIDER,
                                                  .keywords = RUNTIME_KEYWORD_GC,
                                                  .level = 4 };
    const struct ipc_session_request request = { .buffer_mb = BUFFER_MIN_MB,
                                                 .providers = &provider,
                                                 .provider_count = 1 };
    bool unknown;
    s->tells_collections = ask_stream(s, IPC_COLLECT_TRACING3, &request, &unknown, NULL) ||
                           (unknown && ask_stream(s, IPC_COLLECT_TRACING2, &request, &unknown, NULL));
}

static void set_options(struct runtime_session *s, const struct runtime_session_options *options)
{
    s->options = *options;
    if (s->options.buffer_mb == 0)
        s->options.buffer_mb = BUFFER_MB;
    uint64_t left_bytes;
    if (cgroup_memory_left(s->pid, &left_bytes)) {
        uint64_t part_mb = (left_bytes / BUFFER_PART) >> 20;
        if (part_mb < BUFFER_MIN_MB)
            part_mb = BUFFER_MIN_MB;
        if (s->options.buffer_mb > part_mb)
            s->options.buffer_mb = (uint32_t)part_mb;
    }
    if (s->options.connect_timeout_ms == 0)
        s->options.connect_timeout_ms = RUNTIME_SOCKET_CONNECT_MS;
    if (s->options.reply_timeout_ms == 0)
        s->options.reply_timeout_ms = RUNTIME_SOCKET_REPLY_MS;
}

bool runtime_session_start(pid_t pid, uint64_t start_ticks, const struct runtime_session_options *options,
                           struct runtime_session **out, struct error *err)
{
    struct runtime_session *s = mem_alloc(1, sizeof *s);
    s->pid = pid;
    s->start_ticks = start_ticks;
    set_options(s, options);
    buffer_init(&s->text, TEXT_MAX);
    s->received = mem_alloc(RECEIVE_BYTES, 1);
    s->clock_offset_ns = time_namespace_offsets(pid).monotonic_ns;
    const struct nettrace_sink sink = { .user = s, .on_type = on_type, .on_event = on_event };
    for (size_t i = 0; i < RUNTIME_SESSION_STREAMS; i++)
        s->streams[i] = (struct stream){ .fd = -1, .stop_fd = -1, .reader = nettrace_reader_new(&sink) };
    if (!ask_info(s, err) || !ask_methods(s, err)) {
        runtime_session_close(s);
        return false;
    }
    if (s->options.collections && !s->tells_collections)
        ask_collections(s);
    *out = s;
    return true;
}

void runtime_session_close(struct runtime_session *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < RUNTIME_SESSION_STREAMS; i++) {
        if (s->streams[i].fd >= 0)
            close(s->streams[i].fd);
        if (s->streams[i].stop_fd >= 0)
            close(s->streams[i].stop_fd);
        nettrace_reader_free(s->streams[i].reader);
    }
    ipc_process_info_done(&s->info);
    buffer_done(&s->text);
    free(s->received);
    free(s);
}

size_t runtime_session_polls(const struct runtime_session *s, struct pollfd out[RUNTIME_SESSION_STREAMS])
{
    size_t count = 0;
    for (size_t i = 0; i < s->stream_count; i++)
        if (s->streams[i].fd >= 0)
            out[count++] = (struct pollfd){ .fd = s->streams[i].fd, .events = POLLIN };
    return count;
}

static void end(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

static bool drain(struct runtime_session *s, struct stream *stream, struct error *err)
{
    for (size_t done = 0; stream->fd >= 0 && done < DRAIN_BYTES_MAX;) {
        ssize_t got = recv(stream->fd, s->received, RECEIVE_BYTES, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return true;
        if (got < 0) {
            int e = errno;
            end(stream);
            return error_system(err, e, "the event stream of process %d broke off", (int)s->pid);
        }
        if (got == 0) {
            end(stream);
            return true;
        }
        done += (size_t)got;
        if (!nettrace_reader_feed(stream->reader, span_of(s->received, (size_t)got), err)) {
            end(stream);
            return error_context(err, "process %d", (int)s->pid);
        }
        if (nettrace_reader_ended(stream->reader))
            end(stream);
    }
    return true;
}

bool runtime_session_drain(struct runtime_session *s, const struct runtime_sink *sink, struct error *err)
{
    s->sink = sink;
    for (size_t i = 0; i < s->stream_count; i++)
        if (!drain(s, &s->streams[i], err)) {
            for (size_t other = 0; other < s->stream_count; other++)
                end(&s->streams[other]);
            return false;
        }
    return true;
}

static bool stop(const struct runtime_session *s, struct stream *stream, struct error *err)
{
    if (stream->fd < 0 || stream->stop_fd >= 0)
        return true;
    struct buffer request;
    buffer_init(&request, IPC_MESSAGE_MAX);
    ipc_append_stop(&request, stream->id);
    bool ok = runtime_socket_connect(s->pid, s->start_ticks, STOP_CONNECT_MS, &stream->stop_fd, err) &&
              runtime_socket_send(stream->stop_fd, buffer_span(&request), err);
    buffer_done(&request);
    if (!ok && stream->stop_fd >= 0) {
        close(stream->stop_fd);
        stream->stop_fd = -1;
    }
    return ok;
}

bool runtime_session_stop(struct runtime_session *s, struct error *err)
{
    for (size_t i = 0; i < s->stream_count; i++)
        if (!stop(s, &s->streams[i], err))
            return false;
    return true;
}

bool runtime_session_ended(const struct runtime_session *s)
{
    for (size_t i = 0; i < s->stream_count; i++)
        if (s->streams[i].fd >= 0)
            return false;
    return true;
}

bool runtime_session_lists(const struct runtime_session *s)
{
    return !s->options.no_list;
}

bool runtime_session_tells_collections(const struct runtime_session *s)
{
    return s->tells_collections;
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

uint64_t runtime_session_lost(const struct runtime_session *s)
{
    return runtime_session_counts(s).lost;
}
