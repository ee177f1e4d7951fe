/*
 * launch: a command that waits for us before it runs.
 */
#ifndef CLRPERF_CLI_LAUNCH_H
#define CLRPERF_CLI_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct launch {
    pid_t pid;
    int release_fd; /* a byte written here lets it go on to its exec */
    int failure_fd; /* gives errno when the exec failed; nothing when it worked */
    int killed_by;  /* once it has ended: the signal that killed it, or 0 */
};

struct launch_options {
    const char *diagnostic_port; /* that .NET runtimes in it call before they begin, or NULL */
    bool silent;                 /* without our stdio */
    bool apart;                  /* what it prints goes to our stderr: stdout is for what we say */
};

/* Forks; the child keeps our stdio, environment and folder. `command` ends with NULL; `options` may be NULL.
 */
bool launch_start(const char *const *command, const struct launch_options *options, struct launch *out,
                  struct error *err);
/* After it was released: whether the command could be started at all. */
bool launch_started(struct launch *l, const char *name, struct error *err);
/*
 * Waits for its end. Its exit code, or 128 plus the signal that killed it. `stopped_by` is set by our signal
 * handler: a SIGTERM, which reaches us alone, is handed on; SIGINT of a terminal reaches the command by
 * itself.
 */
int launch_wait(struct launch *l, const volatile sig_atomic_t *stopped_by);
/* After its end: says on stderr what of a runtime's events a signal that killed it took along, if one did. */
void launch_warn_killed(const struct launch *l, const char *name);
/* Kills a command that was never released. */
void launch_abandon(struct launch *l);

#endif
