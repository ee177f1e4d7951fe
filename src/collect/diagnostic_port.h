/*
 * diagnostic_port: a socket of ours that .NET runtimes call when they start, and wait for an answer.
 *
 * DOTNET_DiagnosticPorts in a program's environment names it. Whoever calls is suspended before its first
 * instruction until it is resumed over the connection it made; its own socket answers meanwhile. Specified in
 * dotnet/diagnostics, documentation/design-docs/ipc-protocol.md ("advertise").
 */
#ifndef CLRPERF_COLLECT_DIAGNOSTIC_PORT_H
#define CLRPERF_COLLECT_DIAGNOSTIC_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct diagnostic_port;

/* A runtime that waits. */
struct diagnostic_caller {
    pid_t pid;            /* as the kernel says */
    uint64_t start_ticks; /* field 22 of its /proc/PID/stat */
    int fd;
    uint8_t cookie[16]; /* its name for itself, for as long as it runs */
};

/* `path`: where to listen; NULL: in a folder of our own, gone at the end. Fails with ERROR_SYSTEM. */
bool diagnostic_port_open(const char *path, struct diagnostic_port **out, struct error *err);
/* Valid as long as the port. */
const char *diagnostic_port_path(const struct diagnostic_port *p);
/* Readable when somebody calls, or has said who it is. */
int diagnostic_port_fd(const struct diagnostic_port *p);
/*
 * Takes one who calls, without waiting for any; false when there is none. Who connects and does not advertise
 * within seconds, or is none that we can see, is dropped.
 */
bool diagnostic_port_take(struct diagnostic_port *p, struct diagnostic_caller *out);
/*
 * Lets a caller go on. It calls again for the next command; such connections are kept, as a runtime that is
 * turned away would try for ever.
 */
bool diagnostic_port_resume(struct diagnostic_port *p, const struct diagnostic_caller *caller,
                            struct error *err);
/* Does not let it go on; the connection is kept. */
void diagnostic_port_keep(struct diagnostic_port *p, const struct diagnostic_caller *caller);
/* From now on everybody who calls is let go at once, by a thread, until the port is closed. */
void diagnostic_port_let_all_go(struct diagnostic_port *p);
/* NULL is fine. */
void diagnostic_port_close(struct diagnostic_port *p);

#endif
