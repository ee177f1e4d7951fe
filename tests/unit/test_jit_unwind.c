#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/jit_unwind.h"

enum { START = 0x700000 };

static bool read_nothing(void *user, uint64_t addr, void *into, size_t size)
{
    (void)user, (void)addr, (void)into, (void)size;
    return false;
}

static bool read_ones(void *user, uint64_t addr, void *into, size_t size)
{
    (void)user, (void)addr;
    memset(into, 1, size);
    return true;
}

static void test_jit_damage(void **state)
{
    (void)state;
    struct jit_unwind *jit;
    struct error err;
    assert_false(jit_unwind_read(&unwind_format_x64, read_nothing, NULL, START, &jit, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    assert_false(jit_unwind_read(&unwind_format_x64, read_ones, NULL, START, &jit, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jit_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
