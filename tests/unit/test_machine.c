#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/machine.h"

static void test_registers(void **state)
{
    (void)state;
    uint64_t words[17];
    struct unwind_registers r;
    for (size_t i = 0; i < 17; i++)
        words[i] = 100 + i;
    assert_true(machine_registers_of_perf(&machine_x86_64, machine_x86_64.perf_mask,
                                          span_of(words, sizeof words), &r));
    assert_int_equal(r.fp, 106);
    assert_int_equal(r.sp, 107);
    assert_int_equal(r.ip, 108);
    assert_int_equal(r.numbered[3], 101); /* rbx */
    assert_int_equal(r.numbered[8], 109);
    assert_false(machine_registers_of_perf(&machine_x86_64, machine_x86_64.perf_mask,
                                           span_of(words, sizeof words - 8), &r));
    assert_false(machine_registers_of_perf(&machine_x86_64, machine_x86_64.perf_mask >> 1,
                                           span_of(words, sizeof words - 8), &r));
}

/* perf asks for flags and segments, too, which come before r8. */
static void test_more_registers(void **state)
{
    (void)state;
    uint64_t words[20];
    struct unwind_registers r;
    for (size_t i = 0; i < 20; i++)
        words[i] = 100 + i;
    assert_true(machine_registers_of_perf(&machine_x86_64, 0xff0fff, span_of(words, sizeof words), &r));
    assert_int_equal(r.ip, 108);
    assert_int_equal(r.numbered[8], 112);
    assert_int_equal(r.numbered[15], 119);
    assert_false(machine_registers_of_perf(&machine_x86_64, 0xff0fff, span_of(words, sizeof words - 8), &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_more_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
