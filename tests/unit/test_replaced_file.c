#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/replaced_file.h"
#include "temp_folder.h"

struct folder {
    char path[200];
    int fd;
};

static int make_folder(void **state)
{
    static struct folder f;
    assert_true(temp_folder_make(f.path, sizeof f.path));
    f.fd = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f.fd >= 0);
    *state = &f;
    return 0;
}

static size_t count_files(const struct folder *f)
{
    DIR *dir = opendir(f->path);
    size_t count = 0;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(dir);
    return count;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    static const char *const names[] = { "file", "victim" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlinkat(f->fd, names[i], 0);
    unlinkat(f->fd, "folder", AT_REMOVEDIR);
    close(f->fd);
    return rmdir(f->path);
}

static void write_text(const struct folder *f, const char *name, const char *text)
{
    struct replaced_file file;
    struct error err;
    assert_true(replaced_file_open(f->fd, name, &file, &err));
    assert_int_equal(write(file.fd, text, strlen(text)), strlen(text));
    assert_true(replaced_file_commit(&file, &err));
    assert_int_equal(file.fd, -1);
}

static void check_text(const struct folder *f, const char *name, const char *text)
{
    char got[64] = "";
    AUTO_FD int fd = openat(f->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, got, sizeof got - 1) >= 0);
    assert_string_equal(got, text);
}

static void test_replace(void **state)
{
    const struct folder *f = *state;
    struct stat st;
    write_text(f, "file", "old and long");
    AUTO_FD int reader = openat(f->fd, "file", O_RDONLY | O_CLOEXEC);
    write_text(f, "file", "new");
    check_text(f, "file", "new");
    assert_int_equal(fstatat(f->fd, "file", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(count_files(f), 1);
    char got[64] = "";
    assert_int_equal(read(reader, got, sizeof got - 1), 12);
    assert_string_equal(got, "old and long");
}

static void test_abandon(void **state)
{
    const struct folder *f = *state;
    struct replaced_file file;
    struct error err;
    write_text(f, "file", "old");
    assert_true(replaced_file_open(f->fd, "file", &file, &err));
    assert_int_equal(write(file.fd, "half", 4), 4);
    replaced_file_abandon(&file);
    replaced_file_abandon(&file);
    check_text(f, "file", "old");
    assert_int_equal(count_files(f), 1);
}

static void test_link(void **state)
{
    const struct folder *f = *state;
    write_text(f, "victim", "mine");
    assert_int_equal(symlinkat("victim", f->fd, "file"), 0);
    write_text(f, "file", "ours");
    check_text(f, "file", "ours");
    check_text(f, "victim", "mine");
}

/* A writer that is killed leaves nothing where files without a name are to be had. */
static void test_killed(void **state)
{
    const struct folder *f = *state;
    struct replaced_file file;
    AUTO_FD int nameless = openat(f->fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    assert_true(replaced_file_open(f->fd, "file", &file, NULL));
    assert_int_equal(count_files(f), nameless < 0);
    replaced_file_abandon(&file);
    assert_int_equal(count_files(f), 0);
}

/* The place is taken by what cannot be replaced: nothing of ours is left. */
static void test_directory(void **state)
{
    const struct folder *f = *state;
    struct replaced_file file;
    struct error err;
    assert_int_equal(mkdirat(f->fd, "folder", 0700), 0);
    assert_true(replaced_file_open(f->fd, "folder", &file, &err));
    assert_false(replaced_file_commit(&file, &err));
    assert_int_equal(count_files(f), 1);
}

static void test_names(void **state)
{
    const struct folder *f = *state;
    static const char *const bad[] = { "", ".", "..", "a/b", "/etc/passwd" };
    struct replaced_file file;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;
        assert_false(replaced_file_open(f->fd, bad[i], &file, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
    }
    char long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    assert_false(replaced_file_open(f->fd, long_name, &file, NULL));
    assert_int_equal(count_files(f), 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_replace),   IN_FOLDER(test_abandon), IN_FOLDER(test_link),
        IN_FOLDER(test_directory), IN_FOLDER(test_names),   IN_FOLDER(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
