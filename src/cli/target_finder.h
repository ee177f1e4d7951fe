/*
 * target_finder: the files and the memory of a target, for the symbolizer.
 */
#ifndef CLRPERF_CLI_TARGET_FINDER_H
#define CLRPERF_CLI_TARGET_FINDER_H

#include "collect/core_target.h"
#include "collect/target_files.h"
#include "symbolize/symbolizer.h"

/* Of processes that run, or did while they were watched. `files` is borrowed. */
struct file_finder target_finder_live(const struct target_files *files);
/* Of a core dump, which is borrowed. */
struct file_finder target_finder_core(struct core_target *core);
/*
 * A file of this machine, also one inside a program (see read/bundled_file), or -1; the caller closes it. The
 * path is a stranger's: judged before it is opened, as opening a device can do things.
 */
int target_finder_open_here(const char *path);

#endif
