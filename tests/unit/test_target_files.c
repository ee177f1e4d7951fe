/* Files of processes that were gone before anybody looked at them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/target_files.h"
#include "trace/builder.h"

enum { OWN = 1, GONE, OTHER, NOBODY };

struct fixture {
    struct trace_builder b;
    struct target_files files;
    char told[64], silent[64], replaced[64], symbols[64];
};

static void write_file(char *path, int end_bytes)
{
    AUTO_FD int fd = mkstemps(path, end_bytes);
    assert_true(fd >= 0 && write(fd, "x", 1) == 1);
}

static int setup(void **state)
{
    static struct fixture f = { .told = "/tmp/told-XXXXXX",
                                .silent = "/tmp/silent-XXXXXX",
                                .replaced = "/tmp/replaced-XXXXXX",
                                .symbols = "/tmp/symbols-XXXXXX.debug" };
    struct stat st;
    trace_builder_init(&f.b, 16);
    write_file(f.told, 0);
    write_file(f.silent, 0);
    write_file(f.replaced, 0);
    write_file(f.symbols, (int)strlen(".debug"));
    assert_int_equal(stat(f.told, &st), 0);
    trace_builder_image(&f.b, span_of(f.told, strlen(f.told)), IMAGE_ELF, major(st.st_dev), minor(st.st_dev),
                        st.st_ino);
    trace_builder_image(&f.b, span_of(f.replaced, strlen(f.replaced)), IMAGE_ELF, major(st.st_dev),
                        minor(st.st_dev), st.st_ino + 1000000);
    f.files.trace = &f.b.trace;
    target_files_add(&f.files, OWN, (uint32_t)getpid());
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    unlink(f->told);
    unlink(f->silent);
    unlink(f->replaced);
    unlink(f->symbols);
    target_files_done(&f->files);
    trace_builder_done(&f->b);
    return 0;
}

static bool opens(const struct fixture *f, uint32_t process, const char *path)
{
    AUTO_FD int fd = target_files_open(&f->files, process, path);
    return fd >= 0;
}

static void test_own_root(void **state)
{
    struct fixture *f = *state;
    target_files_borrow(&f->files, OWN, OTHER); /* which nobody knows */
    assert_true(target_files_root(&f->files, OWN) >= 0);
    assert_true(opens(f, OWN, f->told) && opens(f, OWN, f->silent) && opens(f, OWN, f->replaced));
}

/* Another one's root leads to what was mapped, and to nothing else. */
static void test_borrowed_root(void **state)
{
    struct fixture *f = *state;
    assert_false(opens(f, GONE, f->told));
    target_files_borrow(&f->files, GONE, OWN);
    assert_int_equal(target_files_root(&f->files, GONE), -1);
    assert_true(opens(f, GONE, f->told));
    assert_false(opens(f, GONE, f->silent));
    assert_false(opens(f, GONE, f->replaced));
    assert_true(opens(f, GONE, f->symbols));
    char deleted[96];
    snprintf(deleted, sizeof deleted, "%s (deleted)", f->told);
    assert_false(opens(f, GONE, deleted));
    assert_int_equal(target_files_open_jit(&f->files, GONE, false, NULL, NULL), -1);
}

/* A jitdump is where the process has it mapped; it must be its own. */
static void test_jitdump_elsewhere(void **state)
{
    struct fixture *f = *state;
    char folder[] = "/tmp/clrperf-dump-XXXXXX", path[96];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, getpid());
    struct error err;
    assert_int_equal(target_files_open_jit(&f->files, OWN, true, path, &err), -1);
    assert_int_not_equal(err.kind, ERROR_INPUT);
    int made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(made >= 0);
    close(made);
    int fd = target_files_open_jit(&f->files, OWN, true, path, NULL);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chmod(path, 0666), 0); /* others could write it */
    assert_int_equal(target_files_open_jit(&f->files, OWN, true, path, &err), -1);
    assert_int_equal(err.kind, ERROR_INPUT);
    unlink(path);
    rmdir(folder);
}

static void test_borrowed_on(void **state)
{
    struct fixture *f = *state;
    target_files_borrow(&f->files, OTHER, GONE);
    assert_true(opens(f, OTHER, f->told));
    target_files_borrow(&f->files, NOBODY + 1, NOBODY);
    assert_false(opens(f, NOBODY + 1, f->told));
    target_files_borrow(&f->files, NOBODY + 1, 0);
    assert_true(opens(f, NOBODY + 1, f->told));
    assert_false(opens(f, NOBODY + 1, f->silent));
    target_files_add(&f->files, OTHER, (uint32_t)getpid()); /* it is there after all */
    assert_true(opens(f, OTHER, f->silent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_root),
        cmocka_unit_test(test_borrowed_root),
        cmocka_unit_test(test_jitdump_elsewhere),
        cmocka_unit_test(test_borrowed_on),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
