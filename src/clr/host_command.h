/*
 * host_command: what a command line of `dotnet` runs.
 *
 * The rules are the muxer's: host options, then `exec`, then the path of a .dll or .exe; anything else
 * is a command of the SDK.
 */
#ifndef CLRPERF_CLR_HOST_COMMAND_H
#define CLRPERF_CLR_HOST_COMMAND_H

#include <stdbool.h>

#include "base/cursor.h"

struct host_command {
    struct span assembly_path; /* of the application; empty for an SDK command */
    bool sdk_command;          /* `dotnet build`, `dotnet run`, ... */
};

/* `cmdline` is the content of /proc/PID/cmdline; its first argument is the host itself. */
struct host_command host_command_read(struct span cmdline);
/* Does the path lie in an installed SDK (.../sdk/10.0.401/...)? Compilers and build servers do. */
bool host_path_in_sdk(struct span path);

#endif
