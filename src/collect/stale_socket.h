/*
 * stale_socket: a diagnostics socket whose process is gone.
 *
 * A runtime that crashes leaves its socket behind. The name holds pid and start time, so that it is
 * told from the socket of a later process with the same pid.
 */
#ifndef CLRPERF_COLLECT_STALE_SOCKET_H
#define CLRPERF_COLLECT_STALE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct stale_socket {
    char *path; /* owned */
    pid_t pid;  /* as its process saw itself */
    uint64_t start_ticks;
    uid_t owner;
    uint64_t modified_ns; /* CLOCK_REALTIME */
    bool pid_reused;      /* another process has that pid now */
};

struct stale_socket_list {
    struct stale_socket *items;
    size_t count, capacity;
};

/*
 * Looks into `folder` of our own root. A socket shared by a container counts as alive when any process
 * started at that tick, or one that could not tell, and has that pid in its own namespace.
 */
bool stale_socket_list_read(const char *folder, struct stale_socket_list *out, struct error *err);
void stale_socket_list_done(struct stale_socket_list *list);

#endif
