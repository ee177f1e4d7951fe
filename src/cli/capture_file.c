#include "cli/capture_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd_write.h"
#include "base/mem.h"
#include "base/own.h"

/* A file made with sudo belongs to who asked for it. */
static void give_to_invoker(int fd)
{
    const char *uid = secure_getenv("SUDO_UID"), *gid = secure_getenv("SUDO_GID");
    if (geteuid() != 0 || !uid || !gid)
        return;
    if (fchown(fd, (uid_t)strtoul(uid, NULL, 10), (gid_t)strtoul(gid, NULL, 10)) < 0)
        return; /* a file system without owners: it stays root's, mode 0600 */
}

static const char *create_hint(int e)
{
    switch (e) {
    case EEXIST:
        return "choose another name with -o, or overwrite it with --force";
    case ELOOP:
        return "it is a symbolic link; name the file itself";
    case EISDIR:
        return "name a file in that folder with -o";
    case ENOENT:
    case ENOTDIR:
        return "make the folder first, or choose another place with -o";
    case EACCES:
    case EPERM:
    case EROFS:
        return "choose a folder that you may write to with -o";
    case ENOSPC:
    case EDQUOT:
        return "free some space, or choose another place with -o";
    default:
        return "choose another place with -o";
    }
}

static bool not_overwritten(const char *path, const char *why, struct error *err)
{
    error_set(err, ERROR_USAGE, "'%s' %s", path, why);
    return error_hint(err, "choose another name with -o");
}

/* What is there and is no file does not make way with --force either: it is told what it is. */
static bool create_refused(const char *path, int e, struct error *err)
{
    struct stat st;
    /* ENXIO: a pipe with a name that nobody reads, or a socket */
    if ((e == EEXIST || e == ENXIO) && lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
            return not_overwritten(path, "is not a regular file", err);
        e = S_ISDIR(st.st_mode) ? EISDIR : ELOOP;
    }
    error_system(err, e, "cannot create '%s'", path);
    return error_hint(err, "%s", create_hint(e));
}

/* Somebody else's file may be open in their hands: it makes way for one that is ours alone. */
static bool replace_stranger(const char *path, int flags, int *fd, struct error *err)
{
    int own = -1;
    if (unlink(path) < 0 || (own = open(path, flags | O_EXCL, 0600)) < 0)
        return create_refused(path, errno, err);
    close(*fd);
    *fd = own;
    return true;
}

bool capture_file_create(const char *path, bool force, int *out_fd, struct error *err)
{
    int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    AUTO_FD int fd = open(path, flags | (force ? 0 : O_EXCL), 0600);
    if (fd < 0)
        return create_refused(path, errno, err);
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return not_overwritten(path, "is not a regular file", err);
    if (force && st.st_nlink != 1)
        return not_overwritten(path, "has other names (hard links); it is not overwritten", err);
    if (st.st_uid != geteuid() && !replace_stranger(path, flags, &fd, err))
        return false;
    if (force && (fchmod(fd, 0600) < 0 || ftruncate(fd, 0) < 0))
        return create_refused(path, errno, err);
    give_to_invoker(fd);
    *out_fd = take_fd(&fd);
    return true;
}

bool capture_file_will_replace(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

void capture_file_promise(int fd, const char *where)
{
    AUTO_FREE char *text =
        mem_format("This file is written at the end of a recording. If clrperf does not run any more, it was "
                   "killed before that, and what it recorded %s.\n",
                   where);
    (void)fd_write(fd, span_of(text, strlen(text))); /* a full disk is told at the end */
}

bool capture_file_begin(int fd, struct error *err)
{
    if (ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return true;
    return error_system(err, errno, "cannot write it");
}

bool capture_file_unnamed(int *out_fd, struct error *err)
{
    int fd = memfd_create("clrperf", MFD_CLOEXEC);
    if (fd < 0)
        return error_system(err, errno, "cannot make a temporary file");
    *out_fd = fd;
    return true;
}

void capture_file_name(const char *process, uint32_t pid, char *out, size_t out_size)
{
    char name[64];
    size_t size = 0;
    for (; size < sizeof name - 1 && process[size]; size++) {
        unsigned char c = (unsigned char)process[size];
        name[size] = isalnum(c) || c == '.' || c == '-' || c == '_' ? (char)c : '_';
    }
    name[size] = 0;
    time_t now = time(NULL);
    struct tm local;
    char when[32] = "";
    if (localtime_r(&now, &local))
        strftime(when, sizeof when, "%Y%m%d_%H%M%S", &local);
    const char *first = size && name[0] != '.' && name[0] != '-' ? name : "clrperf";
    if (pid)
        snprintf(out, out_size, "%s_%" PRIu32 "_%s.clrperf", first, pid, when);
    else
        snprintf(out, out_size, "%s_%s.clrperf", first, when);
}
