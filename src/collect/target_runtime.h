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
 * `cmdline` and `exe` (path of the executable, "" when unknown) are what /proc says; `root_fd` is the
 * target's root or -1; `scratch` is overwritten.
 */
void target_find_runtime(struct target *t, struct span cmdline, const char *exe, int root_fd,
                         struct buffer *scratch);
/*
 * Has one of its first `threads_max` threads a name that the runtime gives (".NET SigHandler")? Anybody
 * may read those; runtimes before 6 give none.
 */
bool target_has_runtime_thread(pid_t pid, unsigned threads_max);

#endif
