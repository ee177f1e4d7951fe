/*
 * golden_file: the content of a file below tests/golden.
 */
#ifndef CLRPERF_TESTS_GOLDEN_FILE_H
#define CLRPERF_TESTS_GOLDEN_FILE_H

#include <fcntl.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/source.h"

enum { GOLDEN_FILE_BYTES_MAX = 1 << 20 };

/* The caller ends with buffer_done(). Fails the test when it cannot be read. */
static inline struct buffer golden_file_load(const char *name)
{
    AUTO_FREE char *path = mem_format("%s/%s", GOLDEN_DIR, name);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct source file;
    struct buffer bytes;
    buffer_init(&bytes, GOLDEN_FILE_BYTES_MAX);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) ||
        !source_load(&file, 0, file.size, &bytes, NULL))
        fail_msg("cannot read '%s'", path);
    return bytes;
}

#endif
