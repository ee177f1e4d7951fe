/*
 * cgroup: the folder by which the kernel knows a control group.
 */
#ifndef CLRPERF_COLLECT_CGROUP_H
#define CLRPERF_COLLECT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cursor.h"
#include "base/error.h"

/*
 * Opens the version 2 folder of a control group: `path` is below the hierarchy's root
 * ("/system.slice/app.service"), or the folder itself. The caller closes *out_fd. ERROR_TARGET when there is
 * none, ERROR_UNSUPPORTED when version 2 is not mounted.
 */
bool cgroup_open(const char *path, int *out_fd, struct error *err);

/*
 * Bytes that a process may still take before the nearest of the limits above it is met; false when there is
 * none, or none that version 2 knows of.
 */
bool cgroup_memory_left(pid_t pid, uint64_t *out_bytes);
/*
 * How many MB of a process's memory events may wait in, of `wanted_mb`: where its control group has little
 * left 5 % of that, but 4 MB.
 */
uint32_t cgroup_buffer_mb(pid_t pid, uint32_t wanted_mb);
/* The same for the group at `path` of the hierarchy mounted at `mount`, on its own for tests. */
bool cgroup_memory_left_at(const char *mount, struct span path, uint64_t *out_bytes);

#endif
