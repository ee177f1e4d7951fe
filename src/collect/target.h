/*
 * target: a process as we know it from outside.
 *
 * A process is a pidfd with a start time, never a mere number: the number may be given to another
 * process. Strings come from the target or from its files and are untrusted.
 */
#ifndef CLRPERF_COLLECT_TARGET_H
#define CLRPERF_COLLECT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "clr/runtime_version.h"

struct target {
    pid_t pid, ns_pid; /* in our pid namespace, in the target's */
    pid_t parent;
    int pidfd;            /* owned */
    uint64_t start_ticks; /* since boot, in USER_HZ: field 22 of stat */
    uint64_t started_ns;  /* CLOCK_REALTIME */
    uint64_t cpu_ns;      /* used so far */
    uint32_t threads;
    uid_t uid;
    gid_t gid;

    char *name;           /* of the executable, or of the main thread when that cannot be read */
    char *command_line;   /* arguments joined by blanks, cut at TARGET_TEXT_MAX */
    char *entry_assembly; /* without .dll; NULL when unknown */
    char *cgroup;         /* path below the cgroup mount, or NULL */
    char *container_id;   /* NULL outside of containers */
    char *container_name; /* NULL when unknown */

    enum runtime_kind runtime;
    struct runtime_version version;
    char *image;        /* the file that holds the runtime, as the target sees it; NULL when unknown */
    bool image_deleted; /* another file may have its name now */
    bool single_file;
    bool sdk_tool; /* `dotnet run`, msbuild, the compiler server: .NET, but rarely what people look for */

    char *socket;         /* of the diagnostics port, as the target sees it; NULL when there is none */
    uid_t socket_owner;   /* when there is one */
    bool diagnostics_off; /* its environment switches the port off */
    bool maps_denied;     /* no right to see its mappings: much of the above is a guess */
    bool silent;          /* it did not let itself be looked at in time: only stat and status are known */
    uint64_t some_addr;   /* the start of a readable mapping, or 0 */

    struct target_probe *look; /* owned; while it is looked at, see target_begin() */
};

enum { TARGET_TEXT_MAX = 32768 };

/*
 * Looks at process `pid`, .NET or not. ERROR_TARGET when there is none. What may not be read stays
 * unknown; that is no failure. The caller ends *out with target_done().
 */
bool target_open(pid_t pid, struct target *out, struct error *err);
/*
 * The same in two steps: after the first, handle, times and user are known, and a child looks at the rest
 * while others work. The second does nothing to what is looked at already. When it fails the caller still
 * ends *t.
 */
bool target_begin(pid_t pid, struct target *out, struct error *err);
bool target_finish(struct target *t, struct error *err);
void target_done(struct target *t);

/* False as soon as the process has ended; what was read about it is then worth nothing. */
bool target_is_alive(const struct target *t);
/* What people call it: the entry assembly, else the name. */
const char *target_label(const struct target *t);
/* The version of its runtime; "Native AOT" or "Mono" where that does not tell it; "" when not known. */
const char *target_runtime_text(const struct target *t);

#endif
