#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "symbolize/source_lookup.h"

enum { ANSWERS = 8, TEXT_BYTES = 256 };

/* By index: "NAME FILE:LINE NAME FILE:LINE ...". */
struct answers {
    char texts[ANSWERS][TEXT_BYTES];
};

static void take(void *user, size_t index, const struct source_frame *frames, size_t count)
{
    struct answers *answers = user;
    assert_true(index < ANSWERS && answers->texts[index][0] == 0);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(frames[i].function == NULL, i + 1 == count);
        used += (size_t)snprintf(answers->texts[index] + used, TEXT_BYTES - used, "%s %s:%u ",
                                 frames[i].function ? frames[i].function : "-",
                                 frames[i].file ? frames[i].file : "-", (unsigned)frames[i].line);
        assert_true(used < TEXT_BYTES);
    }
}

static int open_fixture(const char *name)
{
    AUTO_FREE char *path = mem_format("%s/dwarf/inlined/%s.elf", GOLDEN_DIR, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_msg("cannot open %s", path);
    return fd;
}

static const uint64_t addrs[] = { 0x1000, 0x401000, 0x401020, 0x401040, 0x401080, UINT64_MAX };
static const size_t indexes[] = { 7, 6, 0, 1, 2, 3 };

/* Several at a time, finished in another order; the file may be closed meanwhile. */
static void test_answers(void **state)
{
    (void)state;
    static const char *const names[] = { "gcc5", "gcc5-gz", "gcc5" };
    struct source_lookup *lookups[ARRAY_LEN(names)];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FD int fd = open_fixture(names[i]);
        lookups[i] = source_lookup_start(fd, addrs, indexes, ARRAY_LEN(addrs));
        assert_non_null(lookups[i]);
    }
    for (size_t i = ARRAY_LEN(names); i-- > 0;) {
        struct answers *answers = mem_alloc(1, sizeof *answers);
        source_lookup_finish(lookups[i], take, answers);
        assert_string_equal(answers->texts[6], "- /src/shapes.cc:27 ");
        assert_string_equal(answers->texts[0], "shapes::square::area /src/shapes.cc:9 "
                                               "sum<shapes::square> /src/shapes.cc:17 - /src/shapes.cc:29 ");
        assert_string_equal(answers->texts[1], "- /src/shapes.cc:28 ");
        assert_string_equal(answers->texts[2], "twice /src/lib/twice.h:3 - /src/other.cc:5 ");
        assert_string_equal(answers->texts[3], "");
        assert_string_equal(answers->texts[7], "");
        free(answers);
    }
}

static void test_nothing(void **state)
{
    (void)state;
    struct answers *answers = mem_alloc(1, sizeof *answers);
    AUTO_FD int not_elf = open("/dev/null", O_RDONLY | O_CLOEXEC);
    AUTO_FD int fd = open_fixture("gcc5");
    assert_null(source_lookup_start(fd, addrs, indexes, 0));
    assert_null(source_lookup_start(-1, addrs, indexes, ARRAY_LEN(addrs)));
    source_lookup_finish(NULL, take, answers);
    source_lookup_finish(source_lookup_start(not_elf, addrs, indexes, ARRAY_LEN(addrs)), take, answers);
    for (size_t i = 0; i < ANSWERS; i++)
        assert_string_equal(answers->texts[i], "");
    free(answers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
