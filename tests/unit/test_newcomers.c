#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "collect/newcomers.h"

enum { WAIT_MS = 10000 };

static const struct runtime_session_options ask;

static pid_t start_process(void)
{
    pid_t pid = child_fork();
    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool take(struct newcomers *n, struct newcomer_found *out)
{
    for (int i = 0; i < WAIT_MS; i++) {
        if (newcomers_take(n, out))
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return false;
}

static void test_looks(void **state)
{
    (void)state;
    static const enum newcomer_kind kinds[] = { NEWCOMER_SEEN, NEWCOMER_FORKED, NEWCOMER_EXECED,
                                                NEWCOMER_CALLS };
    struct newcomers *n = newcomers_new(&ask);
    pid_t pid = start_process();
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct newcomer_found found;
        assert_true(newcomers_add(n, i + 1, (uint32_t)pid, kinds[i]));
        do
            assert_true(take(n, &found));
        while (found.process != i + 1 && (newcomer_found_done(&found), true));
        assert_int_equal(found.target.pid, pid);
        assert_non_null(strstr(found.target.name, "test_newcomers"));
        assert_true(!found.session && !found.refused);
        newcomer_found_done(&found);
    }
    newcomers_remove(n, (uint32_t)pid);
    end_process(pid);
    newcomers_free(n);
}

/* Dead ones must not take the places of others: thousands start and end in a build. */
static void test_processes_that_end(void **state)
{
    (void)state;
    struct newcomers *n = newcomers_new(&ask);
    struct newcomer_found found;
    pid_t pid = start_process();
    end_process(pid);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_true(newcomers_add(n, i + 1, (uint32_t)pid + i, NEWCOMER_FORKED));
        newcomers_remove(n, (uint32_t)pid + i);
    }
    assert_true(newcomers_add(n, 1, (uint32_t)pid, NEWCOMER_EXECED));
    assert_int_equal(newcomers_finish(n, WAIT_MS), 0);
    assert_false(newcomers_take(n, &found));
    newcomers_free(n);
}

/* At the end whoever was not looked at gets its look, without the wait. */
static void test_finish(void **state)
{
    (void)state;
    struct newcomers *n = newcomers_new(&ask);
    struct newcomer_found found;
    pid_t pid = start_process();
    assert_true(newcomers_add(n, 7, (uint32_t)pid, NEWCOMER_FORKED));
    assert_int_equal(newcomers_finish(n, WAIT_MS), 0);
    assert_true(newcomers_take(n, &found));
    assert_int_equal(found.process, 7);
    newcomer_found_done(&found);
    assert_false(newcomers_take(n, &found));
    end_process(pid);
    newcomers_free(n);
}

static void test_too_many(void **state)
{
    (void)state;
    struct newcomers *n = newcomers_new(NULL);
    bool ok = true;
    uint32_t count = 0;
    /* numbers that no process has wait as well */
    for (; ok && count < 100000; count++)
        ok = newcomers_add(n, 1, 0x40000000u + count, NEWCOMER_FORKED);
    assert_false(ok);
    assert_true(newcomers_add(n, 2, 0x40000000u, NEWCOMER_EXECED)); /* is there already */
    assert_true(newcomers_finish(n, 0) > 0);
    newcomers_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_processes_that_end),
        cmocka_unit_test(test_finish),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
