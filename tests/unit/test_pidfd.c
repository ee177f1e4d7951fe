#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/pidfd.h"

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

/* As a recording has them: its lease on a CPU ends, or Ctrl-C. */
static void test_signals_say_nothing(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    AUTO_FD int pidfd = pidfd_of(child);
    assert_true(pidfd >= 0);
    sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_RESTART }, NULL);
    const struct itimerval often = { { 0, 20 }, { 0, 20 } }, never = { 0 };
    setitimer(ITIMER_REAL, &often, NULL);
    while (signals < 3000)
        assert_false(pidfd_has_ended(pidfd));
    setitimer(ITIMER_REAL, &never, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(pidfd_has_ended(pidfd));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_signals_say_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
