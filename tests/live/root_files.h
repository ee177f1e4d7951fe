/*
 * root_files: the files of a target for whoever wants a struct module_files; its `user` is a descriptor of
 * the target's root.
 */
#ifndef CLRPERF_TESTS_ROOT_FILES_H
#define CLRPERF_TESTS_ROOT_FILES_H

#include <unistd.h>

#include "base/source.h"
#include "base/target_root.h"

enum { ROOT_FILE_BYTES_MAX = 1 << 30 };

static inline bool root_files_open(void *user, const char *path, struct source *out)
{
    struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR, .size_max = ROOT_FILE_BYTES_MAX };
    int fd;
    if (!target_root_open_path(*(int *)user, path, rules, &fd, NULL))
        return false;
    if (source_over_fd(fd, 0, ROOT_FILE_BYTES_MAX, out, NULL))
        return true;
    close(fd);
    return false;
}

static inline void root_files_close(void *user, struct source *file)
{
    (void)user;
    close(file->fd);
}

#endif
