#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/own.h"
#include "symbolize/kept_index.h"
#include "temp_folder.h"

enum { LARGE_BYTES = 2 << 20 };

static const char text[] = "who owns which function";

/* An image of 2 MiB and a folder that is not there yet. */
struct fixture {
    char folder[200], *kept_path, *image_path;
    struct kept_folder kept;
    int fd;
    struct source image;
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){ .fd = -1 };
    assert_true(temp_folder_make(f.folder, sizeof f.folder));
    f.kept_path = mem_format("%s/cache/images", f.folder);
    f.image_path = mem_format("%s/image", f.folder);
    kept_folder_init(&f.kept, f.kept_path);
    f.fd = open(f.image_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(f.fd >= 0 && ftruncate(f.fd, LARGE_BYTES) == 0);
    assert_true(source_over_fd(f.fd, 0, UINT64_MAX, &f.image, NULL));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *command = mem_format("rm -rf '%s'", f->folder);
    close(f->fd);
    free(f->kept_path);
    free(f->image_path);
    kept_folder_done(&f->kept);
    return system(command);
}

static bool is_kept(const struct kept_folder *folder, const struct source *image)
{
    struct buffer bytes;
    kept_index_load(folder, image, &bytes);
    bool kept = span_equals(buffer_span(&bytes), span_of(text, sizeof text));
    assert_true(kept || bytes.size == 0);
    buffer_done(&bytes);
    return kept;
}

static void save(const struct fixture *f, const struct source *image)
{
    kept_index_save(&f->kept, image, span_of(text, sizeof text));
}

/* The path of the one file in the folder; the caller frees. */
static char *only_file(const struct fixture *f)
{
    DIR *dir = opendir(f->kept_path);
    char *path = NULL;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        assert_null(path);
        path = mem_format("%s/%s", f->kept_path, entry->d_name);
    }
    closedir(dir);
    assert_non_null(path);
    return path;
}

static void test_same_state(void **state)
{
    const struct fixture *f = *state;
    struct stat st;
    assert_false(is_kept(&f->kept, &f->image));
    save(f, &f->image);
    assert_true(is_kept(&f->kept, &f->image));
    assert_false(is_kept(NULL, &f->image));
    AUTO_FREE char *path = only_file(f);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_string_equal(path + strlen(path) - 6, ".index");
}

static void test_other_state(void **state)
{
    const struct fixture *f = *state;
    struct source part = source_part(&f->image, 0, LARGE_BYTES), behind;
    save(f, &f->image);
    assert_true(is_kept(&f->kept, &part));
    assert_int_equal(ftruncate(f->fd, 2 * LARGE_BYTES), 0);
    assert_true(source_over_fd(f->fd, 0, UINT64_MAX, &part, NULL));
    assert_false(is_kept(&f->kept, &part)); /* it was written */
    save(f, &part);
    behind = source_part(&part, 16, LARGE_BYTES);
    assert_true(is_kept(&f->kept, &part));
    assert_false(is_kept(&f->kept, &behind)); /* another image in the same file */
}

static void test_not_worth_it(void **state)
{
    const struct fixture *f = *state;
    struct source small = source_part(&f->image, 0, LARGE_BYTES - 1);
    struct source memory = source_over_span(span_of(text, sizeof text));
    struct stat st;
    memory.size = LARGE_BYTES;
    save(f, &small);
    save(f, &memory);
    kept_index_save(NULL, &f->image, span_of(text, sizeof text));
    assert_int_equal(stat(f->kept_path, &st), -1);
}

/* Cut anywhere, or with a bit turned over: there is nothing. */
static void test_damaged(void **state)
{
    const struct fixture *f = *state;
    struct stat st;
    save(f, &f->image);
    AUTO_FREE char *path = only_file(f);
    assert_int_equal(stat(path, &st), 0);
    AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC);
    for (off_t at = 0; at < st.st_size; at++) {
        uint8_t byte, turned;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        turned = byte ^ 0x10;
        assert_int_equal(pwrite(fd, &turned, 1, at), 1);
        assert_false(is_kept(&f->kept, &f->image));
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_true(is_kept(&f->kept, &f->image));
    for (off_t size = st.st_size; size-- > 0;) {
        assert_int_equal(ftruncate(fd, size), 0);
        assert_false(is_kept(&f->kept, &f->image));
    }
}

/* Where others may write nothing is read or kept. */
static void test_not_ours(void **state)
{
    const struct fixture *f = *state;
    save(f, &f->image);
    assert_int_equal(chmod(f->kept_path, 0777), 0);
    assert_false(is_kept(&f->kept, &f->image));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_worth_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_ours, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
