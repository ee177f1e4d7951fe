/*
 * runtime_socket: a connection to the diagnostics server inside a .NET process.
 *
 * The server listens on `dotnet-diagnostic-<ns_pid>-<start_ticks>-socket` in the target's temporary
 * folder, looked up in the target's own root. The name is not trusted: the peer must be the target.
 * Every wait has a deadline. One connection carries one request (dotnet/diagnostics,
 * documentation/design-docs/ipc-protocol.md).
 */
#ifndef CLRPERF_COLLECT_RUNTIME_SOCKET_H
#define CLRPERF_COLLECT_RUNTIME_SOCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"

enum { RUNTIME_SOCKET_CONNECT_MS = 2000, RUNTIME_SOCKET_REPLY_MS = 5000 };

/* How long somebody is waited for. */
struct runtime_socket_wait {
    unsigned timeout_ms;
    const atomic_bool *given_up; /* set by another thread when it is no longer worth it; or NULL */
};

/*
 * Connects to the runtime in process `pid`; `start_ticks` is field 22 of its /proc/PID/stat, or 0 to take
 * what is there. As root it connects with the target's user and group, so never to what the target could not
 * reach itself. ERROR_TARGET: no such process, or a socket that another process serves; ERROR_UNSUPPORTED: it
 * has no socket, or does not answer, then with ETIMEDOUT. The fd does not block; the caller closes it.
 */
bool runtime_socket_connect(pid_t pid, uint64_t start_ticks, struct runtime_socket_wait wait, int *out_fd,
                            struct error *err);

/* Sends one request in one piece: a server that gets half of one keeps everybody waiting. */
bool runtime_socket_send(int fd, struct span request, struct error *err);

/*
 * Reads one reply, waiting for it so long altogether, and not a byte more: an event stream may follow.
 * `content` is replaced; *out_is_error tells an error reply (see ipc_read_result()). An error of one that did
 * not come in time has ETIMEDOUT.
 */
bool runtime_socket_receive(int fd, struct runtime_socket_wait wait, struct buffer *content,
                            bool *out_is_error, struct error *err);

#endif
