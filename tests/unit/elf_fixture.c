#include "elf_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/own.h"

int elf_fixture_open(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/elf/%s", GOLDEN_DIR, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

struct buffer elf_fixture_load(const char *name)
{
    AUTO_FD int fd = elf_fixture_open(name);
    struct source file;
    struct error err;
    struct buffer bytes;
    buffer_init(&bytes, 1 << 20);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, &err) ||
        !source_load(&file, 0, file.size, &bytes, &err))
        fail_msg("cannot read the fixture '%s'", name);
    return bytes;
}

int elf_fixture_file(const void *bytes, size_t size)
{
    int fd = memfd_create("fixture", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, 0), size);
    return fd;
}
