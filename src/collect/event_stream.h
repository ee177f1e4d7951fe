/*
 * event_stream: the bytes of one session with a .NET runtime, as it sends them.
 *
 * The runtime is asked in the newest way the request needs, and in older ones where it does not know that. A
 * request goes out in one piece, after it was found harmless (clr/diagnostics_ipc.h).
 */
#ifndef CLRPERF_COLLECT_EVENT_STREAM_H
#define CLRPERF_COLLECT_EVENT_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "clr/event_providers.h"

/* Whom to ask, and how long to wait for it. */
struct event_peer {
    pid_t pid;
    uint64_t start_ticks; /* or 0 */
    unsigned connect_timeout_ms, reply_timeout_ms;
    const atomic_bool *given_up; /* set by another thread when it is no longer worth waiting; or NULL */
};

struct event_stream {
    uint64_t id;
    int fd;      /* does not block; -1: none, or ended */
    int stop_fd; /* the connection that asked for the end, kept until close, or -1 */
};

#define EVENT_STREAM_NONE ((struct event_stream){ .fd = -1, .stop_fd = -1 })

/*
 * Asks a question over a connection of its own. *out_result is IPC_OK, or the error the runtime answered
 * with; then err is filled and the return value false. The connection stays open only when out_fd is given.
 */
bool event_peer_ask(const struct event_peer *peer, const struct buffer *question, struct buffer *answer,
                    int *out_fd, uint32_t *out_result, struct error *err);
/* Lets the runtime go on if it waits at its start; one that does not wait answers the same. */
void event_peer_resume(const struct event_peer *peer);
/*
 * Processes that it starts hear of this diagnostic port, of none when it is NULL, instead of the one that it
 * was started with. They call there and do not wait at their start: nobody may be there any more. A runtime
 * before .NET 6 hands its own on all the same.
 */
void event_peer_hand_down_port(const struct event_peer *peer, const char *path);
/*
 * Opens a stream. `choose`: with the request's choices of events, in the way that has them, or not at all;
 * else without. *out_unknown: the runtime is too old for every way there was to ask.
 */
bool event_stream_open(const struct event_peer *peer, const struct event_request *request, bool choose,
                       struct event_stream *out, bool *out_unknown, struct error *err);
/*
 * Takes what has come, without waiting. 0: nothing now, or the stream ended, which stream->fd then says. -1:
 * the connection broke, the stream has ended.
 */
ssize_t event_stream_read(struct event_stream *stream, void *into, size_t size, struct error *err);
/* Asks the runtime to end, once. Does not wait for it. */
bool event_stream_stop(const struct event_peer *peer, struct event_stream *stream, struct error *err);
/* No more is read. */
void event_stream_end(struct event_stream *stream);
/* Drops all connections, whereupon the runtime ends its side by itself. */
void event_stream_close(struct event_stream *stream);

#endif
