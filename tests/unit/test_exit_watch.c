#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/pidfd.h"
#include "child.h"
#include "collect/exit_watch.h"
#include "collect/proc_file.h"

static int go_on[2], ready[2];

static void *last_thread(void *user)
{
    char byte;
    (void)user;
    (void)!read(go_on[0], &byte, 1);
    _exit(0);
}

/* A process whose main thread ends at once; the other one ends with go_on. */
static pid_t start(void)
{
    assert_true(pipe(go_on) == 0 && pipe(ready) == 0);
    pid_t pid = child_fork();
    if (pid == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, last_thread, NULL) != 0)
            _exit(1);
        (void)!write(ready[1], "", 1);
        syscall(SYS_exit, 0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return pid;
}

static void finish(int pidfd)
{
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    assert_int_equal(write(go_on[1], "", 1), 1);
    assert_int_equal(poll(&end, 1, 60000), 1);
    for (size_t i = 0; i < 2; i++) {
        close(go_on[i]);
        close(ready[i]);
    }
}

/* Others go on behind the main thread: the process has ended with the last of them. */
static void test_leaving(void **state)
{
    (void)state;
    struct exit_watch x = { 0 };
    struct exit_leaving one;
    uint64_t ticks;
    pid_t pid = start();
    AUTO_FD int pidfd = pidfd_of(pid);
    assert_true(proc_file_start_ticks(pid, &ticks, NULL));
    assert_true(exit_watch_chosen(&x, &pid, &ticks, 1, NULL));
    exit_watch_main_thread(&x, &(struct exit_leaving){ 7, (uint32_t)pid, ticks, 1000 });
    for (unsigned i = 0; i < 100; i++) { /* also when it is the only one to be seen to be a zombie */
        assert_false(exit_watch_take_ended(&x, &one));
        usleep(1000);
    }
    assert_false(exit_watch_all_ended(&x));
    exit_watch_thread(&x, 8, 3000);
    exit_watch_thread(&x, 7, 2000);
    finish(pidfd);
    assert_true(exit_watch_all_ended(&x));
    assert_true(exit_watch_take_ended(&x, &one)); /* before anybody asks for its exit code */
    assert_true(one.process == 7 && one.pid == (uint32_t)pid && one.time_ns == 2000);
    assert_false(exit_watch_take_ended(&x, &one));
    exit_watch_main_thread(&x, &(struct exit_leaving){ 7, (uint32_t)pid, ticks, 1000 });
    waitpid(pid, NULL, 0);
    assert_true(exit_watch_take_ended(&x, &one));
    exit_watch_done(&x);
    exit_watch_done(&x);
}

/* Another process has its number: it is gone. */
static void test_later_process(void **state)
{
    (void)state;
    struct exit_watch x = { 0 };
    struct exit_leaving one;
    struct error err;
    uint64_t ticks;
    pid_t pid = getpid();
    assert_true(proc_file_start_ticks(pid, &ticks, NULL));
    exit_watch_main_thread(&x, &(struct exit_leaving){ 1, (uint32_t)pid, ticks, 1000 });
    exit_watch_main_thread(&x, &(struct exit_leaving){ 2, (uint32_t)pid, ticks - 1, 1000 });
    exit_watch_main_thread(&x, &(struct exit_leaving){ 3, (uint32_t)pid, 0, 1000 });
    assert_true(exit_watch_take_ended(&x, &one));
    assert_int_equal(one.process, 2);
    assert_false(exit_watch_take_ended(&x, &one));
    exit_watch_done(&x);
    ticks--;
    assert_false(exit_watch_chosen(&x, &pid, &ticks, 1, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    exit_watch_done(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_leaving),
                                        cmocka_unit_test(test_later_process) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
