/*
 * target_runtime: finds the .NET runtime inside a process, from outside.
 */
#ifndef CLRPERF_COLLECT_TARGET_RUNTIME_H
#define CLRPERF_COLLECT_TARGET_RUNTIME_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "collect/target.h"

/*
 * Fills runtime, version, image, single_file, entry_assembly, sdk_tool, maps_denied and some_addr.
 * `cmdline` and `exe` (path of the executable, "" when unknown) are what /proc says.
 */
void target_find_runtime(struct target *t, struct span cmdline, const char *exe);
/*
 * Of a process in which that found none: looks for a library that was compiled ahead of time, which holds a
 * runtime of its own, whatever program loaded it. `root_fd`: the target's root or -1.
 */
void target_find_library(struct target *t, int root_fd);
/* Looks into the runtime's file for a version that its path does not tell. `root_fd`: the target's root or
 * -1. */
void target_find_version(struct target *t, int root_fd);
/*
 * Has one of its first `threads_max` threads a name that the runtime gives (".NET SigHandler")? Anybody
 * may read those; runtimes before 6 give none.
 */
bool target_has_runtime_thread(pid_t pid, unsigned threads_max);

#endif
