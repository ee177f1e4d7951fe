#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/wait_cycle.h"
#include "base/own.h"

enum { THREADS = 6, NOBODY = -1 };

static const struct {
    const char *name;
    int waits_for[THREADS];
    size_t cycles;
    uint32_t cycle_of[THREADS];
} cases[] = {
    { "nobody waits", { -1, -1, -1, -1, -1, -1 }, 0, { 0 } },
    { "a chain ends", { 1, 2, 3, 4, 5, -1 }, 0, { 0 } },
    { "two", { 1, 0, -1, -1, -1, -1 }, 1, { 1, 1, 0, 0, 0, 0 } },
    { "three, and one behind them", { 1, 2, 0, 0, -1, -1 }, 1, { 1, 1, 1, 0, 0, 0 } },
    { "who waits for a circle comes first", { 3, -1, 0, 4, 3, 2 }, 1, { 0, 0, 0, 1, 1, 0 } },
    { "two circles", { 2, 3, 0, 1, -1, 4 }, 2, { 1, 2, 1, 2, 0, 0 } },
    { "all of them", { 1, 2, 3, 4, 5, 0 }, 1, { 1, 1, 1, 1, 1, 1 } },
    { "for itself", { 0, -1, -1, -1, -1, -1 }, 1, { 1, 0, 0, 0, 0, 0 } },
    { "for one that is not there", { 77, 0, -1, -1, -1, -1 }, 0, { 0 } },
};

static void test_cycles(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t waits_for[THREADS];
        uint32_t cycle_of[THREADS];
        for (size_t k = 0; k < THREADS; k++)
            waits_for[k] = cases[i].waits_for[k] == NOBODY ? WAIT_NOBODY : (size_t)cases[i].waits_for[k];
        if (wait_cycles_find(waits_for, THREADS, cycle_of) != cases[i].cycles)
            fail_msg("%s: a wrong number of circles", cases[i].name);
        for (size_t k = 0; k < THREADS; k++)
            if (cycle_of[k] != cases[i].cycle_of[k])
                fail_msg("%s: thread %zu", cases[i].name, k);
    }
    assert_int_equal(wait_cycles_find(NULL, 0, &(uint32_t){ 0 }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cycles) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
