#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/doorbell.h"
#include "collect/helper_process.h"

enum { DEADLINE_MS = 10000, ROUNDS = 1000 };

struct work {
    struct doorbell asked, answered;
    uint32_t number;
    uint64_t held_back; /* signals, a bit each */
};

/* In the child: adds one each time that it is asked, and spoils errno for whoever shares it. */
static void add(void *user)
{
    struct work *work = user;
    sigset_t held_back;
    sigprocmask(SIG_BLOCK, NULL, &held_back);
    for (int s = 1; s < 32; s++)
        work->held_back |= (uint64_t)(sigismember(&held_back, s) == 1) << s;
    for (uint32_t heard = 0; doorbell_wait(&work->asked, heard, 0, -1); heard++) {
        work->number++;
        close(-1);
        doorbell_ring(&work->answered);
    }
}

static bool ask(struct work *work, uint32_t number)
{
    doorbell_ring(&work->asked);
    return doorbell_wait(&work->answered, number, 0, DEADLINE_MS);
}

static void test_works_in_our_memory(void **state)
{
    (void)state;
    struct work *work = calloc(1, sizeof *work);
    pid_t child;
    assert_true(helper_process_share(add, work, &child));
    assert_int_not_equal(child, getpid());
    for (uint32_t i = 0; i < ROUNDS; i++) {
        errno = ENOTTY;
        assert_true(ask(work, i));
        assert_int_equal(work->number, i + 1);
        assert_int_not_equal(errno, EBADF);
    }
    for (int s = 1; s < 32; s++)
        assert_true(s == SIGKILL || s == SIGSTOP || work->held_back >> s & 1);
    assert_true(helper_process_end(child));
    assert_true(kill(child, 0) < 0 && errno == ESRCH);
    free(work);
}

static void test_ends_when_it_has_nothing_to_do(void **state)
{
    (void)state;
    struct work work = { 0 };
    pid_t child;
    int status;
    assert_true(helper_process_share(add, &work, &child));
    assert_true(ask(&work, 0));
    doorbell_end(&work.asked);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void hang(void *user)
{
    struct work *work = user;
    doorbell_ring(&work->answered);
    for (;;)
        pause();
}

/* One that hangs is gone when it is ended; another one can be had. */
static void test_hangs(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct work work = { 0 };
        pid_t child;
        assert_true(helper_process_share(hang, &work, &child));
        assert_true(doorbell_wait(&work.answered, 0, 0, DEADLINE_MS));
        helper_process_end(child);
        assert_true(kill(child, 0) < 0 && errno == ESRCH);
    }
}

/* What we close is closed while the child lives. */
static void test_holds_nothing_open(void **state)
{
    (void)state;
    int ends[2];
    struct work work = { 0 };
    pid_t child;
    uint8_t byte;
    assert_int_equal(pipe(ends), 0);
    assert_true(helper_process_share(hang, &work, &child));
    assert_true(doorbell_wait(&work.answered, 0, 0, DEADLINE_MS));
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    helper_process_end(child);
}

/* Whoever is killed does not leave a child behind. */
static void test_ends_with_us(void **state)
{
    (void)state;
    int ends[2], status;
    pid_t grandchild = 0;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t child = fork();
    if (child == 0) {
        static struct work work;
        pid_t pid;
        if (!helper_process_share(hang, &work, &pid) || !doorbell_wait(&work.answered, 0, 0, DEADLINE_MS) ||
            write(ends[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        raise(SIGKILL);
    }
    assert_int_equal(read(ends[0], &grandchild, sizeof grandchild), sizeof grandchild);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(waitpid(grandchild, &status, 0), grandchild);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_works_in_our_memory),
        cmocka_unit_test(test_ends_when_it_has_nothing_to_do),
        cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_holds_nothing_open),
        cmocka_unit_test(test_ends_with_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
