/*
 * cgroup: the folder by which the kernel knows a control group.
 */
#ifndef CLRPERF_COLLECT_CGROUP_H
#define CLRPERF_COLLECT_CGROUP_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Opens the version 2 folder of a control group: `path` is below the hierarchy's root
 * ("/system.slice/app.service"), or the folder itself. The caller closes *out_fd. ERROR_TARGET when there is
 * none, ERROR_UNSUPPORTED when version 2 is not mounted.
 */
bool cgroup_open(const char *path, int *out_fd, struct error *err);

#endif
