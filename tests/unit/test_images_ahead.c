#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbolize/images_ahead.h"

enum { PROCESS = 3 };

static const char program[] = "/proc/self/exe";

static int open_file(void *user, uint32_t process, const char *path)
{
    (void)user;
    return process == PROCESS ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static const struct file_finder files = { .open = open_file };

/* What was read is handed over once; what nobody takes is closed. */
static void test_taken_once(void **state)
{
    (void)state;
    const char *paths[] = { program, "/nonexistent", "/dev/null", "/proc/self/cmdline", "/proc/self/maps" };
    struct images_ahead ahead = { .files = &files };
    struct image_file file;
    images_ahead_begin(&ahead, PROCESS, paths, 5);
    assert_true(images_ahead_has(&ahead, PROCESS, program));
    assert_false(images_ahead_has(&ahead, PROCESS + 1, program));
    assert_false(images_ahead_has(&ahead, PROCESS, "/proc/self/maps")); /* more than it reads */
    assert_false(images_ahead_has(NULL, PROCESS, program));
    assert_false(images_ahead_take(&ahead, PROCESS + 1, program, &file));
    assert_true(images_ahead_take(&ahead, PROCESS, program, &file));
    assert_non_null(file.native);
    assert_null(file.managed);
    assert_true(strlen(native_image_build_id(file.native)) > 0);
    image_file_close(&file);
    assert_false(images_ahead_take(&ahead, PROCESS, program, &file));
    assert_false(images_ahead_take(&ahead, PROCESS, "/nonexistent", &file));
    assert_true(images_ahead_take(&ahead, PROCESS, "/proc/self/cmdline", &file)); /* neither kind */
    assert_true(!file.native && !file.managed);
    image_file_close(&file);
    images_ahead_done(&ahead);
}

/* Nobody asks: all is given back. */
static void test_not_wanted(void **state)
{
    (void)state;
    const char *paths[] = { program };
    struct images_ahead none = { 0 }, ahead = { .files = &files };
    images_ahead_begin(&ahead, PROCESS, paths, 1);
    images_ahead_done(&ahead);
    images_ahead_done(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_taken_once),
                                        cmocka_unit_test(test_not_wanted) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
