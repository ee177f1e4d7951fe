#include "cli/file_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"

bool file_tree_open(const char *path, int *out_root_fd, struct error *err)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return error_system(err, errno, "cannot make the directory '%s'", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_system(err, errno, "cannot open the directory '%s'", path);
    *out_root_fd = fd;
    return true;
}

/* One step down, into a directory that may have to be made. */
static bool step(int *directory_fd, const char *name, const char *path, struct error *err)
{
    if (mkdirat(*directory_fd, name, 0755) < 0 && errno != EEXIST)
        return error_system(err, errno, "cannot make a directory for '%s'", path);
    int next = openat(*directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return error_system(err, errno, "cannot open the directory for '%s'", path);
    close(*directory_fd);
    *directory_fd = next;
    return true;
}

bool file_tree_place(int root_fd, const char *path, int *out_directory_fd, const char **out_name,
                     struct error *err)
{
    AUTO_FD int here = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    if (here < 0)
        return error_system(err, errno, "cannot keep the directory open");
    const char *rest = path;
    for (const char *slash; (slash = strchr(rest, '/')); rest = slash + 1) {
        char name[256];
        size_t size = (size_t)(slash - rest);
        if (size == 0)
            continue;
        if (size >= sizeof name)
            return error_set(err, ERROR_INPUT, "a part of '%s' is too long for a name", path);
        memcpy(name, rest, size);
        name[size] = 0;
        if (strcmp(name, "..") == 0)
            return error_set(err, ERROR_INPUT, "'%s' leads out of its directory", path);
        if (!step(&here, name, path, err))
            return false;
    }
    *out_directory_fd = take_fd(&here);
    *out_name = rest;
    return true;
}
