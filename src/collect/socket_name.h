/*
 * socket_name: the name of the socket on which a .NET runtime's diagnostics server listens.
 *
 * It is `dotnet-diagnostic-PID-KEY-socket`: the pid as the process sees it, and field 22 of the
 * `/proc/PID/stat` that it reads itself when it starts (dotnet/runtime, ds-ipc-pal-socket.c). That file is
 * another process's where a new pid namespace still has the old /proc, and the key is 0 where there is none.
 */
#ifndef CLRPERF_COLLECT_SOCKET_NAME_H
#define CLRPERF_COLLECT_SOCKET_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { SOCKET_KEYS_MAX = 3, SOCKET_NAME_MAX = 80 };

/* The names that a process's socket may have, the likeliest first. */
struct socket_keys {
    uint32_t ns_pid;
    uint64_t keys[SOCKET_KEYS_MAX];
    unsigned count;
};

/* `ns_pid`: the process's own number; `start_ticks`: field 22 of our /proc/PID/stat. */
void socket_keys_of(pid_t pid, uint32_t ns_pid, uint64_t start_ticks, struct socket_keys *out);
/*
 * A handle of the first of them that is a socket in `folder` inside the root, with its path, of which
 * `out_path` has to hold SOCKET_NAME_MAX bytes more than the folder's. Fails as target_root_open_path().
 */
bool socket_keys_open(const struct socket_keys *keys, int root_fd, const char *folder, char *out_path,
                      size_t out_size, int *out_fd, struct error *err);
/* Takes a name apart; false for one that no such socket has. */
bool socket_name_read(const char *name, pid_t *out_pid, uint64_t *out_key);

#endif
