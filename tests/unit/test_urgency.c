/* Threads that come before all others, and for how long they do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/urgency.h"

enum { PATIENCE_MS = 5000 };

/* A thread that says which policy it has until it is told to end; it can be busy meanwhile. */
struct helper {
    atomic_int policy;
    atomic_bool over;
    bool busy;
};

static void *helper_run(void *user)
{
    struct helper *helper = user;
    while (!helper->over) {
        helper->policy = sched_getscheduler(0);
        if (!helper->busy)
            usleep(1000);
    }
    return NULL;
}

static bool comes_to(const struct helper *helper, int policy)
{
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_MS * UINT64_C(1000000);
    while (helper->policy != policy && clock_monotonic_ns() < end_ns)
        usleep(1000);
    return helper->policy == policy;
}

/* Nobody ends it, and a thread of ours does not stop working. */
static void test_bounded(void **state)
{
    (void)state;
    struct helper idle = { .policy = -1 }, busy = { .policy = -1, .busy = true };
    pthread_t threads[2];
    if (!urgency_begin(50))
        skip(); /* not allowed here */
    assert_int_equal(sched_getscheduler(0), SCHED_RR);
    assert_true(thread_start(&threads[0], helper_run, &idle));
    assert_true(comes_to(&idle, SCHED_RR));
    assert_true(thread_start(&threads[1], helper_run, &busy));
    assert_true(comes_to(&busy, SCHED_OTHER));
    assert_true(comes_to(&idle, SCHED_OTHER));
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    idle.over = busy.over = true;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void test_nothing_begun(void **state)
{
    (void)state;
    if (sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 }) != 0)
        skip();
    assert_false(urgency_begin(1000)); /* somebody chose this one */
    assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_nothing_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
