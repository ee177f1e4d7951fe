#include "collect/event_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/diagnostics_ipc.h"
#include "collect/cgroup.h"
#include "collect/runtime_socket.h"

enum {
    STOP_CONNECT_MS = 200, /* whoever stops has other things to stop, too */
    PORT_BYTES = 128,      /* of a socket's path, and how it is called */
};

bool event_peer_ask(const struct event_peer *peer, const struct buffer *question, struct buffer *answer,
                    int *out_fd, uint32_t *out_result, struct error *err)
{
    AUTO_FD int fd = -1;
    bool is_error;
    *out_result = IPC_OK;
    const struct runtime_socket_wait connect = { peer->connect_timeout_ms, peer->given_up },
                                     reply = { peer->reply_timeout_ms, peer->given_up };
    if (!runtime_socket_connect(peer->pid, peer->start_ticks, connect, &fd, err) ||
        !runtime_socket_send(fd, buffer_span(question), err) ||
        !runtime_socket_receive(fd, reply, answer, &is_error, err))
        return false;
    if (is_error) {
        *out_result = ipc_read_result(buffer_span(answer));
        return error_set(err, ERROR_UNSUPPORTED, "the .NET runtime answered with error %#" PRIx32 " (%s)",
                         *out_result, ipc_result_name(*out_result));
    }
    if (out_fd)
        *out_fd = take_fd(&fd);
    return true;
}

static void ask_in_passing(const struct event_peer *peer, const struct buffer *request)
{
    struct buffer answer;
    uint32_t result;
    buffer_init(&answer, IPC_MESSAGE_MAX);
    event_peer_ask(peer, request, &answer, NULL, &result, NULL);
    buffer_done(&answer);
}

void event_peer_resume(const struct event_peer *peer)
{
    struct buffer request;
    buffer_init(&request, IPC_MESSAGE_MAX);
    ipc_append_plain(&request, IPC_RESUME_RUNTIME);
    ask_in_passing(peer, &request);
    buffer_done(&request);
}

void event_peer_hand_down_port(const struct event_peer *peer, const char *path)
{
    char port[PORT_BYTES] = "";
    struct buffer request;
    if (path)
        snprintf(port, sizeof port, "%s,nosuspend", path);
    buffer_init(&request, IPC_MESSAGE_MAX);
    ipc_append_set_environment(&request, "DOTNET_DiagnosticPorts", port);
    ask_in_passing(peer, &request);
    buffer_done(&request);
}

static bool ask_in_one_way(const struct event_peer *peer, enum ipc_command command,
                           const struct ipc_session_request *request, struct event_stream *out,
                           bool *out_unknown, struct error *err)
{
    struct buffer message, answer;
    struct event_stream stream = EVENT_STREAM_NONE;
    uint32_t result = IPC_OK;
    buffer_init(&message, IPC_MESSAGE_MAX);
    buffer_init(&answer, IPC_MESSAGE_MAX);
    bool ok = ipc_append_collect(&message, command, request, err) &&
              event_peer_ask(peer, &message, &answer, &stream.fd, &result, err);
    if (ok && !ipc_read_session_id(buffer_span(&answer), &stream.id, err)) {
        event_stream_end(&stream);
        ok = false;
    }
    *out_unknown = result == (uint32_t)IPC_UNKNOWN_COMMAND;
    if (ok)
        *out = stream;
    buffer_done(&message);
    buffer_done(&answer);
    return ok;
}

bool event_stream_open(const struct event_peer *peer, const struct event_request *request, bool choose,
                       struct event_stream *out, bool *out_unknown, struct error *err)
{
    AUTO_FREE struct ipc_provider *providers = mem_alloc(request->providers.count + 1, sizeof *providers);
    struct ipc_session_request ipc = event_request_ipc(request, choose, providers);
    if (request->buffer_is_usual)
        ipc.buffer_mb = cgroup_buffer_mb(peer->pid, ipc.buffer_mb);
    bool ok = false;
    *out_unknown = true;
    enum ipc_command command = choose ? IPC_COLLECT_TRACING5 : ipc_best_collect(&ipc);
    for (; command && !ok && *out_unknown; command = choose ? 0 : ipc_older_collect(command, &ipc))
        ok = ask_in_one_way(peer, command, &ipc, out, out_unknown, err);
    return ok;
}

ssize_t event_stream_read(struct event_stream *stream, void *into, size_t size, struct error *err)
{
    for (;;) {
        ssize_t got = stream->fd >= 0 ? recv(stream->fd, into, size, MSG_DONTWAIT) : 0;
        if (got > 0 || (got < 0 && errno == EAGAIN))
            return got > 0 ? got : 0;
        if (got < 0 && errno == EINTR)
            continue;
        int e = got < 0 ? errno : 0;
        event_stream_end(stream);
        if (!e)
            return 0;
        error_system(err, e, "the event stream broke off");
        return -1;
    }
}

bool event_stream_stop(const struct event_peer *peer, struct event_stream *stream, struct error *err)
{
    if (stream->fd < 0 || stream->stop_fd >= 0)
        return true;
    struct buffer request;
    buffer_init(&request, IPC_MESSAGE_MAX);
    ipc_append_stop(&request, stream->id);
    const struct runtime_socket_wait wait = { STOP_CONNECT_MS, NULL };
    bool ok = runtime_socket_connect(peer->pid, peer->start_ticks, wait, &stream->stop_fd, err) &&
              runtime_socket_send(stream->stop_fd, buffer_span(&request), err);
    buffer_done(&request);
    if (!ok && stream->stop_fd >= 0) {
        close(stream->stop_fd);
        stream->stop_fd = -1;
    }
    return ok;
}

void event_stream_end(struct event_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

void event_stream_close(struct event_stream *stream)
{
    event_stream_end(stream);
    if (stream->stop_fd >= 0)
        close(stream->stop_fd);
    stream->stop_fd = -1;
}
