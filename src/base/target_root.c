#include "base/target_root.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory_thread.h"
#include "base/own.h"

enum { RACE_RETRIES = 32 };

bool target_root_open(pid_t pid, int *out_root_fd, struct error *err)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/root", (int)memory_thread_of(pid));
    AUTO_FD int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        int e = errno;
        if (e == ENOENT || e == ESRCH)
            return error_set(err, ERROR_TARGET, "there is no process %d", (int)pid);
        error_system(err, e, "cannot look into the root directory of process %d", (int)pid);
        if (e == EACCES || e == EPERM)
            error_hint(err, "run as the user of that process, or with CAP_SYS_PTRACE (sudo)");
        return false;
    }
    *out_root_fd = take_fd(&fd);
    return true;
}

static const char *kind_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "a regular file";
    case S_IFDIR:
        return "a directory";
    case S_IFSOCK:
        return "a socket";
    case S_IFIFO:
        return "a FIFO";
    case S_IFLNK:
        return "a symbolic link";
    default:
        return "a device";
    }
}

static bool check_rules(const struct stat *st, const char *path, const struct target_file_rules *rules,
                        struct error *err)
{
    static const struct {
        mode_t mode;
        const char *name;
    } wanted[] = {
        [TARGET_FILE_REGULAR] = { S_IFREG, "a regular file" },
        [TARGET_FILE_SOCKET] = { S_IFSOCK, "a socket" },
        [TARGET_FILE_DIRECTORY] = { S_IFDIR, "a directory" },
    };
    if ((st->st_mode & S_IFMT) != wanted[rules->kind].mode)
        return error_set(err, ERROR_INPUT, "'%s' of the target is %s, not %s", path, kind_name(st->st_mode),
                         wanted[rules->kind].name);
    if (rules->size_max && (uint64_t)st->st_size > rules->size_max)
        return error_set(err, ERROR_INPUT,
                         "'%s' of the target has %" PRIu64 " bytes, more than the limit of %" PRIu64, path,
                         (uint64_t)st->st_size, rules->size_max);
    if (rules->owner_checked && st->st_uid != rules->owner && st->st_uid != 0)
        return error_set(err, ERROR_INPUT, "'%s' of the target belongs to uid %u, not to uid %u", path,
                         st->st_uid, rules->owner);
    if (rules->owner_checked && st->st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, ERROR_INPUT, "others than its owner may write to '%s' of the target", path);
    if (rules->own_links_only && st->st_nlink > 1)
        return error_set(err, ERROR_INPUT, "'%s' of the target has %ju hard links", path,
                         (uintmax_t)st->st_nlink);
    return true;
}

/* From the handle to something that can be read, without going through the path again. */
static bool reopen(int handle, const char *path, const struct target_file_rules *rules, int *out_fd,
                   struct error *err)
{
    struct stat st;
    if (fstat(handle, &st) < 0)
        return error_system(err, errno, "cannot stat '%s' of the target", path);
    if (!check_rules(&st, path, rules, err))
        return false;
    if (rules->kind == TARGET_FILE_SOCKET) {
        int copy = fcntl(handle, F_DUPFD_CLOEXEC, 0);
        if (copy < 0)
            return error_system(err, errno, "cannot keep '%s' of the target open", path);
        *out_fd = copy;
        return true;
    }
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    int fd = open(link, flags | (rules->kind == TARGET_FILE_DIRECTORY ? O_DIRECTORY : 0));
    if (fd < 0)
        return error_system(err, errno, "cannot read '%s' of the target", path);
    *out_fd = fd;
    return true;
}

/* EAGAIN means that something was renamed while a `..` was resolved: try again, but not for ever. */
static int resolve(int root_fd, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    int fd = -1;
    for (int i = 0; i < RACE_RETRIES; i++) {
        fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd;
}

static bool open_in_root(int root_fd, const char *path, struct target_file_rules rules, int *out_fd,
                         struct error *err)
{
    AUTO_FD int handle = resolve(root_fd, path);
    if (handle < 0) {
        int e = errno;
        if (e == ENOSYS || e == EPERM) /* so container engines of 2020 answer for calls they do not know */
            return target_root_walk_path(root_fd, path, rules, out_fd, err);
        return error_system(err, e, "cannot open '%s' of the target", path);
    }
    return reopen(handle, path, &rules, out_fd, err);
}

/*
 * What of a path of /proc/PID/maps lies below the root: these begin at the root of the mount namespace, in
 * which the root of a process after a chroot is a folder. NULL when it does not begin with that.
 */
static const char *path_below(int root_fd, const char *path)
{
    char link[32], root[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", root_fd);
    ssize_t size = readlink(link, root, sizeof root);
    if (size <= 1 || strncmp(path, root, (size_t)size) != 0 || path[size] != '/')
        return NULL;
    return path + size;
}

bool target_root_open_path(int root_fd, const char *path, struct target_file_rules rules, int *out_fd,
                           struct error *err)
{
    if (open_in_root(root_fd, path, rules, out_fd, err))
        return true;
    const char *below = path_below(root_fd, path);
    return below && open_in_root(root_fd, below, rules, out_fd, err);
}

bool target_root_open_link(pid_t pid, const char *link, struct target_file_rules rules, int *out_fd,
                           struct error *err)
{
    char path[80];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)memory_thread_of(pid), link);
    AUTO_FD int handle = open(path, O_PATH | O_CLOEXEC);
    if (handle < 0)
        return error_system(err, errno, "cannot open '%s'", path);
    return reopen(handle, path, &rules, out_fd, err);
}

/* The next component of *path, which moves behind it and the slashes that follow. */
static size_t next_component(const char **path, const char **out)
{
    *path += strspn(*path, "/");
    *out = *path;
    size_t size = strcspn(*path, "/");
    *path += size;
    *path += strspn(*path, "/");
    return size;
}

bool target_root_walk_path(int root_fd, const char *path, struct target_file_rules rules, int *out_fd,
                           struct error *err)
{
    AUTO_FD int here = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    if (here < 0)
        return error_system(err, errno, "cannot use the target's root directory");
    const char *rest = path, *start;
    for (size_t size; (size = next_component(&rest, &start)) != 0;) {
        char name[256];
        if (size >= sizeof name)
            return error_system(err, ENAMETOOLONG, "cannot open '%s' of the target", path);
        memcpy(name, start, size);
        name[size] = 0;
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0)
            return error_set(err, ERROR_INPUT, "'%s' of the target has a '..', refused without openat2",
                             path);
        int next = openat(here, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return error_system(err, errno, "cannot open '%s' of the target", path);
        close(here);
        here = next;
        struct stat st;
        if (fstat(here, &st) == 0 && S_ISLNK(st.st_mode))
            return error_set(
                err, ERROR_INPUT,
                "'%s' of the target goes through a symbolic link, refused without openat2 (Linux 5.6)", path);
    }
    return reopen(here, path, &rules, out_fd, err);
}
