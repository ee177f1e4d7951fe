#include "collect/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/proc_file.h"
#include "read/procfs.h"

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

static bool memory_number(const char *folder, const char *name, int64_t *out)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
           proc_file_number(path, out) && *out >= 0;
}

/* Cached files that the kernel gives up first: taken, but free for whoever needs memory. */
static uint64_t memory_reclaimable(const char *folder)
{
    static const char key[] = "\ninactive_file ";
    char path[PATH_MAX];
    struct buffer text;
    buffer_init(&text, 1 << 16);
    uint64_t bytes = 0;
    if (snprintf(path, sizeof path, "%s/memory.stat", folder) < (int)sizeof path &&
        proc_file_read_path(path, &text, NULL)) {
        buffer_u8(&text, 0);
        const char *line = text.failed ? NULL : strstr((const char *)text.data, key);
        bytes = line ? strtoull(line + sizeof key - 1, NULL, 10) : 0;
    }
    buffer_done(&text);
    return bytes;
}

bool cgroup_memory_left_at(const char *mount, struct span path, uint64_t *out_bytes)
{
    char folder[PATH_MAX];
    size_t top = strlen(mount);
    int size = snprintf(folder, sizeof folder, "%s%.*s", mount, (int)path.size, (const char *)path.data);
    if (path.size == 0 || path.size >= PATH_MAX || size < 0 || (size_t)size >= sizeof folder)
        return false;
    bool limited = false;
    for (char *end = folder + size; end; end = strrchr(folder + top, '/')) {
        int64_t most, taken;
        *end = 0;
        if (!memory_number(folder, "memory.max", &most) || /* "max": no limit */
            !memory_number(folder, "memory.current", &taken))
            continue;
        uint64_t kept = (uint64_t)taken, cached = memory_reclaimable(folder);
        kept -= cached < kept ? cached : kept;
        uint64_t left = (uint64_t)most > kept ? (uint64_t)most - kept : 0;
        *out_bytes = limited && *out_bytes < left ? *out_bytes : left;
        limited = true;
    }
    return limited;
}

bool cgroup_memory_left(pid_t pid, uint64_t *out_bytes)
{
    char mount[PATH_MAX / 2];
    struct buffer text;
    buffer_init(&text, 1 << 16);
    bool limited = cgroup_mount(mount, sizeof mount) && proc_file_read(pid, "cgroup", &text, NULL) &&
                   cgroup_memory_left_at(mount, procfs_cgroup_path(buffer_span(&text)), out_bytes);
    buffer_done(&text);
    return limited;
}

uint32_t cgroup_buffer_mb(pid_t pid, uint32_t wanted_mb)
{
    enum { LEAST_MB = 4, PART = 20 };
    uint64_t left_bytes;
    if (!cgroup_memory_left(pid, &left_bytes))
        return wanted_mb;
    uint64_t part_mb = (left_bytes / PART) >> 20;
    if (part_mb < LEAST_MB)
        part_mb = LEAST_MB;
    return wanted_mb > part_mb ? (uint32_t)part_mb : wanted_mb;
}
