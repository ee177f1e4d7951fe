#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/thread_ids.h"

#define MS_NS UINT64_C(1000000)

/* A thread that is there until it is let go. */
struct waiter {
    pthread_t thread;
    int ready[2], go_on[2];
    uint32_t tid;
};

static void *wait(void *user)
{
    struct waiter *w = user;
    char byte;
    w->tid = (uint32_t)gettid();
    (void)!write(w->ready[1], "", 1);
    (void)!read(w->go_on[0], &byte, 1);
    return NULL;
}

static void begin(struct waiter *w)
{
    char byte;
    assert_true(pipe(w->ready) == 0 && pipe(w->go_on) == 0);
    assert_int_equal(pthread_create(&w->thread, NULL, wait, w), 0);
    assert_int_equal(read(w->ready[0], &byte, 1), 1);
}

static void end(struct waiter *w)
{
    assert_int_equal(write(w->go_on[1], "", 1), 1);
    pthread_join(w->thread, NULL);
    for (size_t i = 0; i < 2; i++) {
        close(w->ready[i]);
        close(w->go_on[i]);
    }
}

/* In a namespace of our own a thread has one number; to be looked up, the process is said to have another. */
static struct thread_ids *ids_of_ours(void)
{
    return thread_ids_new(getpid(), (uint32_t)getpid() + 1);
}

static void test_same_namespace(void **state)
{
    (void)state;
    struct thread_ids *ids = thread_ids_new(getpid(), (uint32_t)getpid());
    assert_int_equal(thread_ids_find(ids, 4711, 0), 4711);
    assert_int_equal(thread_ids_find(ids, 0, 0), 0);
    assert_int_equal(thread_ids_find(ids, UINT64_C(1) << 32, 0), 0);
    thread_ids_free(ids);
    thread_ids_free(NULL);
}

/* One that is new is found, but not by a list for each event. */
static void test_new_thread(void **state)
{
    (void)state;
    uint64_t now_ns = 1000 * MS_NS;
    struct thread_ids *ids = ids_of_ours();
    struct waiter w;
    uint32_t own = (uint32_t)gettid();
    assert_int_equal(thread_ids_find(ids, own, now_ns), own);
    begin(&w);
    assert_int_equal(thread_ids_find(ids, w.tid, now_ns + 249 * MS_NS), 0);
    assert_int_equal(thread_ids_find(ids, own, now_ns + 249 * MS_NS), own);
    assert_int_equal(thread_ids_find(ids, w.tid, now_ns + 250 * MS_NS), w.tid);
    end(&w);
    assert_int_equal(thread_ids_find(ids, w.tid, now_ns + 9000 * MS_NS),
                     w.tid); /* its last events come late */
    thread_ids_free(ids);
}

/* One that was not there costs one list, and another after seconds: its number may be given to a new thread.
 */
static void test_ended_thread(void **state)
{
    (void)state;
    enum { GONE = INT32_MAX };
    uint64_t now_ns = 1000 * MS_NS;
    struct thread_ids *ids = ids_of_ours();
    struct waiter w, x;
    assert_int_equal(thread_ids_find(ids, GONE, now_ns), 0);
    assert_int_equal(thread_ids_find(ids, GONE, now_ns + 300 * MS_NS), 0); /* without a list: */
    begin(&w);
    assert_int_equal(thread_ids_find(ids, w.tid, now_ns + 301 * MS_NS), w.tid); /* that is this one's */
    assert_int_equal(thread_ids_find(ids, GONE, now_ns + 6000 * MS_NS), 0);     /* with one */
    begin(&x);
    assert_int_equal(thread_ids_find(ids, x.tid, now_ns + 6001 * MS_NS), 0);
    end(&w);
    end(&x);
    thread_ids_free(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_namespace),
        cmocka_unit_test(test_new_thread),
        cmocka_unit_test(test_ended_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
