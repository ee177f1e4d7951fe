#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/cpu_account.h"

enum { MS = 1000000 };

static void test_own(void **state)
{
    (void)state;
    const pid_t pids[] = { getpid(), 0x7fffffff };
    struct cpu_account *account = cpu_account_open(pids, 2, true);
    uint64_t begin_ns = clock_own_cpu_ns(), used_ns;
    while ((used_ns = clock_own_cpu_ns() - begin_ns) < 300 * (uint64_t)MS)
        ;
    uint64_t told_ns = cpu_account_ns(account);
    if (told_ns + 40 * (uint64_t)MS < used_ns || told_ns > used_ns + 60 * (uint64_t)MS)
        fail_msg("%llu ns of %llu", (unsigned long long)told_ns, (unsigned long long)used_ns);
    cpu_account_close(account);
    assert_int_equal(cpu_account_ns(NULL), 0);
    cpu_account_close(NULL);
}

static void test_gap(void **state)
{
    (void)state;
    assert_true(cpu_account_is_gap(250 * (uint64_t)MS, 20 * (uint64_t)MS));
    assert_true(cpu_account_is_gap(5300 * (uint64_t)MS, 3000 * (uint64_t)MS));
    assert_false(cpu_account_is_gap(5300 * (uint64_t)MS, 5000 * (uint64_t)MS));
    assert_false(cpu_account_is_gap(90 * (uint64_t)MS, 0)); /* ticks tell no more exactly */
    assert_false(cpu_account_is_gap(0, 100 * (uint64_t)MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_own), cmocka_unit_test(test_gap) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
