#include "base/replaced_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_TRIES = 16 };

static bool is_name(const char *name)
{
    return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void choose_temporary(struct replaced_file *file, unsigned try)
{
    uint64_t random = try;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = ((uint64_t)getpid() << 8) + try;
    snprintf(file->temporary, sizeof file->temporary, ".clrperf-%016" PRIx64, random);
}

static int create_named(struct replaced_file *file)
{
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        choose_temporary(file, i);
        int fd = openat(file->directory_fd, file->temporary,
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

bool replaced_file_open(int directory_fd, const char *name, struct replaced_file *out, struct error *err)
{
    struct replaced_file file = { .fd = -1, .directory_fd = directory_fd };
    if (!is_name(name) || strlen(name) >= sizeof file.name)
        return error_set(err, ERROR_USAGE, "'%s' is no name of a file", name);
    memcpy(file.name, name, strlen(name) + 1);
    file.fd = openat(directory_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (file.fd < 0) /* a file system that has no files without a name, or a directory that is not for us */
        file.fd = create_named(&file);
    if (file.fd < 0)
        return error_system(err, errno, "cannot create a file beside '%s'", name);
    *out = file;
    return true;
}

/* A file that has no name yet gets its temporary one: rename() needs it. */
static bool give_name(struct replaced_file *file)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    for (unsigned i = 0; !file->temporary[0] && i < NAME_TRIES; i++) {
        choose_temporary(file, i);
        if (linkat(AT_FDCWD, path, file->directory_fd, file->temporary, AT_SYMLINK_FOLLOW) == 0)
            return true;
        file->temporary[0] = 0;
        if (errno != EEXIST)
            return false;
    }
    return file->temporary[0];
}

/* In a directory where others may rename: the name leads to what we wrote. */
static bool is_in_place(const struct replaced_file *file)
{
    struct stat ours, there;
    return fstat(file->fd, &ours) == 0 &&
           fstatat(file->directory_fd, file->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

bool replaced_file_commit(struct replaced_file *file, struct error *err)
{
    if (!give_name(file) ||
        renameat(file->directory_fd, file->temporary, file->directory_fd, file->name) < 0) {
        error_system(err, errno, "cannot replace '%s'", file->name);
        if (err && err->kind == ERROR_PERMISSION)
            error_hint(err, "it belongs to another user: remove it as that user, or choose a file with -o");
        replaced_file_abandon(file);
        return false;
    }
    bool in_place = is_in_place(file);
    close(file->fd);
    file->fd = -1;
    return in_place ||
           error_set(err, ERROR_SYSTEM, "somebody else replaced '%s' at the same time", file->name);
}

void replaced_file_abandon(struct replaced_file *file)
{
    if (file->fd < 0)
        return;
    if (file->temporary[0])
        unlinkat(file->directory_fd, file->temporary, 0);
    close(file->fd);
    file->fd = -1;
}
