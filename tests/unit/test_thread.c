#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"

static int cpu_count(pid_t tid)
{
    cpu_set_t set;
    return sched_getaffinity(tid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

static void *count_own(void *user)
{
    *(int *)user = cpu_count(0);
    return NULL;
}

static int count_in_thread(void)
{
    pthread_t thread;
    int count = 0;
    assert_true(thread_start(&thread, count_own, &count));
    pthread_join(thread, NULL);
    return count;
}

/* Both are where we are; a thread that is started afterwards is not bound. */
static void test_keeps_cpu(void **state)
{
    (void)state;
    int all = cpu_count(0);
    assert_int_equal(count_in_thread(), all);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    bool kept = thread_keep_cpu(child);
    assert_int_equal(kept, all > 1);
    assert_int_equal(cpu_count(0), 1);
    assert_int_equal(cpu_count(child), 1);
    assert_int_equal(count_in_thread(), all);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(thread_keep_cpu(child)); /* it is gone, and we are on one CPU only */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_keeps_cpu) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
