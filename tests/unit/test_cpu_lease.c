/* A thread that comes before all others for a share of a CPU, and for no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu_lease.h"
#include "base/thread.h"

enum {
    PATIENCE_MS = 5000,
    SOMEBODY = 65533,
    URGENT = SCHED_RR | SCHED_RESET_ON_FORK,
    AS_EVERYBODY = SCHED_OTHER | SCHED_RESET_ON_FORK,
};

static struct cpu_lease *begin(unsigned most_ms, unsigned percent)
{
    struct cpu_lease *lease = cpu_lease_begin(most_ms, percent);
    if (!lease)
        skip(); /* not allowed here */
    assert_int_equal(sched_getscheduler(0), URGENT);
    return lease;
}

/* Computes until the policy is another one; the CPU time that took. */
static uint64_t compute_until_changed(void)
{
    uint64_t begin_ns = clock_own_cpu_ns(), end_ns = begin_ns + PATIENCE_MS * UINT64_C(1000000);
    while (sched_getscheduler(0) == URGENT && clock_own_cpu_ns() < end_ns)
        ;
    return clock_own_cpu_ns() - begin_ns;
}

static void test_ends_by_itself(void **state)
{
    (void)state;
    struct cpu_lease *lease = begin(60, 0);
    uint64_t took_ns = compute_until_changed();
    assert_int_equal(sched_getscheduler(0), AS_EVERYBODY);
    assert_in_range(took_ns, 30000000, 1000000000); /* the kernel looks at its ticks */
    cpu_lease_renew(lease);
    assert_int_equal(sched_getscheduler(0), AS_EVERYBODY); /* nothing came meanwhile */
    cpu_lease_end(lease);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static void test_comes_back(void **state)
{
    (void)state;
    struct cpu_lease *lease = begin(60, 50);
    compute_until_changed();
    assert_int_equal(sched_getscheduler(0), AS_EVERYBODY);
    cpu_lease_renew(lease);
    usleep(200000); /* half of which is ours now, up to the most */
    cpu_lease_renew(lease);
    assert_int_equal(sched_getscheduler(0), URGENT);
    assert_in_range(compute_until_changed(), 30000000, 1000000000);
    cpu_lease_end(lease);
}

/* Who may have the policy only by a limit may not take back all of it: it ends nevertheless. */
static void test_ends_without_rights(void **state)
{
    (void)state;
    struct cpu_lease *lease = begin(60, 0);
    if (seteuid(SOMEBODY) != 0)
        skip();
    uint64_t took_ns = compute_until_changed();
    int used_up = sched_getscheduler(0);
    cpu_lease_end(lease);
    int ended = sched_getscheduler(0);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), 0);
    assert_in_range(took_ns, 30000000, 1000000000);
    assert_int_equal(used_up, AS_EVERYBODY);
    assert_int_equal(ended, AS_EVERYBODY);
}

static void *policy_of_thread(void *user)
{
    *(int *)user = sched_getscheduler(0);
    return NULL;
}

static void test_for_one_thread(void **state)
{
    (void)state;
    struct cpu_lease *lease = begin(60000, 1);
    int policy = -1;
    pthread_t thread;
    assert_true(thread_start(&thread, policy_of_thread, &policy));
    pthread_join(thread, NULL);
    assert_int_equal(policy, SCHED_OTHER);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(sched_getscheduler(0) == SCHED_OTHER ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    cpu_lease_end(lease);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static void test_chosen_by_somebody(void **state)
{
    (void)state;
    cpu_lease_renew(NULL);
    cpu_lease_end(NULL);
    if (sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 }) != 0)
        skip();
    assert_null(cpu_lease_begin(1000, 10));
    assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_by_itself),      cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_ends_without_rights), cmocka_unit_test(test_for_one_thread),
        cmocka_unit_test(test_chosen_by_somebody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
