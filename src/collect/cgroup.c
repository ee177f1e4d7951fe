#include "collect/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/own.h"

/* Where version 2 is mounted; a hybrid system has it beside version 1. */
static bool cgroup_mount(char *out, size_t out_size)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    struct mntent entry;
    char text[PATH_MAX];
    bool found = false;
    while (mounts && !found && getmntent_r(mounts, &entry, text, sizeof text))
        if (strcmp(entry.mnt_type, "cgroup2") == 0)
            found = snprintf(out, out_size, "%s", entry.mnt_dir) < (int)out_size;
    if (mounts)
        endmntent(mounts);
    return found;
}

/* -1 when it is not a folder of version 2. */
static int cgroup_open_folder(const char *path)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs fs;
    if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
        return -1;
    return take_fd(&fd);
}

bool cgroup_open(const char *path, int *out_fd, struct error *err)
{
    int fd = cgroup_open_folder(path);
    char mount[PATH_MAX / 2], whole[PATH_MAX];
    if (fd < 0) {
        if (!cgroup_mount(mount, sizeof mount))
            return error_set(err, ERROR_UNSUPPORTED, "this machine has no version 2 control groups");
        int size = snprintf(whole, sizeof whole, "%s/%s", mount, path[0] == '/' ? path + 1 : path);
        if (size > 0 && (size_t)size < sizeof whole)
            fd = cgroup_open_folder(whole);
    }
    if (fd < 0) {
        error_set(err, ERROR_TARGET, "there is no control group '%s'", path);
        return error_hint(err, "its path is in the 0:: line of /proc/PID/cgroup of a process in it");
    }
    *out_fd = fd;
    return true;
}
