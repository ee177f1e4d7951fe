/*
 * record_port: runtimes that wait at their start until a recording watches them.
 */
#ifndef CLRPERF_CLI_RECORD_PORT_H
#define CLRPERF_CLI_RECORD_PORT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "cli/launch.h"
#include "cli/record_values.h"
#include "collect/diagnostic_port.h"

/* Listens where --diagnostic-port says, or, for a command, where only it knows. *out: NULL when neither. */
bool record_port_open(const struct record_values *v, bool for_command, struct diagnostic_port **out,
                      struct error *err);
/* How a command is started then. Borrows from `port`, which may be NULL. */
struct launch_options record_port_launch(const struct record_values *v, const struct diagnostic_port *port);
/*
 * The process that --diagnostic-port means: who calls first, or who serves that socket. caller->pid is 0 of
 * one that did not call. Fails when it is stopped by a signal before.
 */
bool record_port_target(const struct record_values *v, struct diagnostic_port *port,
                        const volatile sig_atomic_t *stopped, struct diagnostic_caller *caller, pid_t *out,
                        struct error *err);
/* Waits for a caller until `child` ends (0: no child) or a signal comes. */
bool record_port_wait(struct diagnostic_port *port, pid_t child, const volatile sig_atomic_t *stopped,
                      struct diagnostic_caller *out, struct error *err);
/* Lets it go on, unless that is not wanted; it no longer hands the port down to processes it starts. */
bool record_port_resume(const struct record_values *v, struct diagnostic_port *port,
                        const struct diagnostic_caller *caller, struct error *err);

#endif
