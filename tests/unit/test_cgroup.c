#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "collect/cgroup.h"
#include "temp_folder.h"

static void put(const char *mount, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", mount, name);
    AUTO_STREAM FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
}

static const struct {
    const char *path;
    bool limited;
    uint64_t left;
} cases[] = {
    { "/a/b", true, 400 }, /* what its parent has left, not what it may have itself */
    { "/a", true, 400 },   { "/a/full", true, 0 },   { "/free", false, 0 },
    { "/", false, 0 },     { "/no/such", false, 0 }, { "", false, 0 },
};

static void test_memory_left(void **state)
{
    (void)state;
    static const char *const folders[] = { "a", "a/b", "a/full", "free" };
    static const char *const files[][2] = {
        { "a/memory.max", "1000\n" },
        { "a/memory.current", "650\n" },
        { "a/memory.stat", "anon 1\ninactive_file 50\nactive_file 3\n" },
        { "a/b/memory.max", "900\n" },
        { "a/b/memory.current", "100\n" },
        { "a/full/memory.max", "100\n" },
        { "a/full/memory.current", "101\n" },
        { "free/memory.max", "max\n" },
        { "free/memory.current", "7\n" },
    };
    char mount[200], path[256];
    assert_true(temp_folder_make(mount, sizeof mount));
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", mount, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        put(mount, files[i][0], files[i][1]);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t left = 0;
        bool limited = cgroup_memory_left_at(mount, span_of(cases[i].path, strlen(cases[i].path)), &left);
        if (limited != cases[i].limited || left != cases[i].left)
            fail_msg("'%s': %d, %llu", cases[i].path, limited, (unsigned long long)left);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", mount, files[i][0]);
        unlink(path);
    }
    for (size_t i = ARRAY_LEN(folders); i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", mount, folders[i]);
        rmdir(path);
    }
    rmdir(mount);
}

/* Never more than is wanted, never less than the least of it and 4 MB. */
static void test_buffer(void **state)
{
    (void)state;
    assert_int_equal(cgroup_buffer_mb(getpid(), 3), 3);
    uint32_t buffer_mb = cgroup_buffer_mb(getpid(), 256);
    uint64_t left_bytes;
    assert_in_range(buffer_mb, 4, 256);
    if (!cgroup_memory_left(getpid(), &left_bytes))
        assert_int_equal(buffer_mb, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_memory_left), cmocka_unit_test(test_buffer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
