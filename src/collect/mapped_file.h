/*
 * mapped_file: a file that a process has mapped, and whose name is gone, or another file's now.
 *
 * So it is of a service that runs on while it is updated. The kernel has links to such files in /proc/PID:
 * "exe", which who may look at the process may follow, and "map_files", which takes CAP_CHECKPOINT_RESTORE.
 */
#ifndef CLRPERF_COLLECT_MAPPED_FILE_H
#define CLRPERF_COLLECT_MAPPED_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/target_root.h"

/*
 * `deleted_path`: as in maps, with PROCFS_DELETED. False when there is no such mapping, or it may not be
 * opened. The caller closes *out_fd, and makes sure that the number was not another process's by then.
 */
bool mapped_file_open(pid_t pid, const char *deleted_path, struct target_file_rules rules, int *out_fd);

#endif
