#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/own.h"
#include "collect/cpu_account.h"

enum { MS = 1000000 };

static void test_own(void **state)
{
    (void)state;
    const pid_t pids[] = { getpid(), 0x7fffffff };
    struct cpu_account *account = cpu_account_open(pids, 2, (struct cpu_account_scope){ .kernel = true });
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

static void burn(uint64_t ms)
{
    for (uint64_t begin_ns = clock_own_cpu_ns(); clock_own_cpu_ns() - begin_ns < ms * MS;)
        ;
}

/* A command's children count once it waited for them, where that is asked for. */
static void test_children(void **state)
{
    (void)state;
    const pid_t self = getpid();
    struct cpu_account *all = cpu_account_open(&self, 1, (struct cpu_account_scope){ true, true });
    struct cpu_account *alone = cpu_account_open(&self, 1, (struct cpu_account_scope){ .kernel = true });
    pid_t child = fork();
    if (child == 0) {
        burn(200);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(cpu_account_ns(all) >= 150 * (uint64_t)MS);
    assert_true(cpu_account_ns(alone) <= 50 * (uint64_t)MS);
    cpu_account_close(all);
    cpu_account_close(alone);
}

/* Each is told what helps: who starts a command as root has all capabilities already. */
static void test_told(void **state)
{
    (void)state;
    const struct cpu_account_scope scopes[] = { { 0 },
                                                { .children = true },
                                                { .children = true, .all_cpus = true } };
    const char *causes[] = { "CAP_PERFMON", "new processes", "a lower -F" };
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        char text[512];
        struct cpu_account *account = cpu_account_open(NULL, 0, scopes[i]);
        cpu_account_tell_gap(account, 250 * (uint64_t)MS, 0, text, sizeof text);
        assert_non_null(strstr(text, "samples stand for nothing of the 250 ms of CPU time"));
        for (size_t k = 0; k < ARRAY_LEN(causes); k++)
            assert_int_equal(strstr(text, causes[k]) != NULL, k == i);
        cpu_account_close(account);
    }
}

static void test_gap(void **state)
{
    (void)state;
    struct cpu_account *own = cpu_account_open(NULL, 0, (struct cpu_account_scope){ .kernel = true });
    struct cpu_account *all =
        cpu_account_open(NULL, 0, (struct cpu_account_scope){ .kernel = true, .all_cpus = true });
    assert_true(cpu_account_is_gap(own, 250 * (uint64_t)MS, 20 * (uint64_t)MS));
    assert_true(cpu_account_is_gap(own, 5300 * (uint64_t)MS, 3000 * (uint64_t)MS));
    assert_false(cpu_account_is_gap(own, 5300 * (uint64_t)MS, 5000 * (uint64_t)MS));
    assert_false(cpu_account_is_gap(own, 90 * (uint64_t)MS, 0)); /* ticks tell no more exactly */
    assert_false(cpu_account_is_gap(own, 0, 100 * (uint64_t)MS));
    assert_true(cpu_account_is_gap(all, 3000 * (uint64_t)MS, 2500 * (uint64_t)MS));
    assert_false(cpu_account_is_gap(own, 3000 * (uint64_t)MS, 2500 * (uint64_t)MS));
    assert_false(cpu_account_is_gap(all, 3000 * (uint64_t)MS, 2900 * (uint64_t)MS));
    assert_false(cpu_account_is_gap(NULL, 3000 * (uint64_t)MS, 0));
    cpu_account_close(own);
    cpu_account_close(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_own), cmocka_unit_test(test_children),
                                        cmocka_unit_test(test_told), cmocka_unit_test(test_gap) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
