#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/launch.h"

static void release(const struct launch *l)
{
    assert_int_equal(write(l->release_fd, "", 1), 1);
}

static void test_exit_codes(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int code;
    } cases[] = { { "exit 0", 0 }, { "exit 3", 3 }, { "kill -KILL $$", 137 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const command[] = { "sh", "-c", cases[i].script, NULL };
        volatile sig_atomic_t stopped_by = SIGINT; /* of a terminal: the command has its own */
        struct launch l;
        assert_true(launch_start(command, NULL, &l, NULL));
        release(&l);
        assert_true(launch_started(&l, command[0], NULL));
        assert_int_equal(launch_wait(&l, &stopped_by), cases[i].code);
    }
}

static void test_missing_command(void **state)
{
    (void)state;
    const char *const command[] = { "/nonexistent/program", NULL };
    struct error err = { 0 };
    struct launch l;
    assert_true(launch_start(command, NULL, &l, NULL));
    release(&l);
    assert_false(launch_started(&l, command[0], &err));
    assert_string_equal(err.what, "cannot run '/nonexistent/program': No such file or directory");
    assert_string_not_equal(err.hint, "");
    launch_abandon(&l);
}

static volatile sig_atomic_t test_stopped_by;

static void on_signal(int number)
{
    test_stopped_by = number;
}

/* Before the wait begins, and in the middle of it: the command would sleep on for a minute. */
static void test_term_is_passed_on(void **state)
{
    (void)state;
    const char *const command[] = { "sleep", "60", NULL };
    struct sigaction action = { .sa_handler = on_signal }, before;
    sigaction(SIGTERM, &action, &before);
    for (int late = 0; late < 2; late++) {
        struct launch l;
        test_stopped_by = late ? 0 : SIGTERM;
        assert_true(launch_start(command, NULL, &l, NULL));
        release(&l);
        assert_true(launch_started(&l, command[0], NULL));
        pid_t sender = late ? fork() : -1;
        if (sender == 0) {
            usleep(100000);
            kill(getppid(), SIGTERM);
            _exit(0);
        }
        assert_int_equal(launch_wait(&l, &test_stopped_by), 128 + SIGTERM);
    }
    sigaction(SIGTERM, &before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_missing_command),
        cmocka_unit_test(test_term_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
