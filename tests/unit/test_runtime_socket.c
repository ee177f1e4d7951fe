#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/own.h"
#include "child.h"
#include "collect/runtime_socket.h"

enum { ANSWER_BYTES_MAX = 4096, WAIT_MS = 20, LONG_MS = 60000 };

/* A process that listens at `name` and never answers. */
static pid_t listener(const struct sockaddr_un *name, int ready_fd)
{
    pid_t child = child_fork();
    if (child != 0)
        return child;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (const struct sockaddr *)name, sizeof *name) == 0 && listen(fd, 1) == 0 &&
        write(ready_fd, "", 1) == 1)
        for (;;)
            pause();
    _exit(1);
}

/* Who is stopped cannot answer: that is said, with what to do about it. */
static void test_no_answer(void **state)
{
    (void)state;
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "clrperf-test-%d", (int)getpid()); /* abstract */
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = listener(&name, ready[1]);
    assert_true(child > 0);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof name), 0);

    struct buffer content;
    buffer_init(&content, ANSWER_BYTES_MAX);
    bool is_error;
    struct error err = { 0 };
    const struct runtime_socket_wait wait = { WAIT_MS, NULL };
    assert_false(runtime_socket_receive(fd, wait, &content, &is_error, &err));
    assert_string_equal(err.what, "the .NET runtime did not answer in time");
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_int_equal(err.os_error, ETIMEDOUT);

    const atomic_bool over = true;
    const uint64_t start_ns = clock_monotonic_ns();
    assert_false(runtime_socket_receive(fd, (struct runtime_socket_wait){ LONG_MS, &over }, &content,
                                        &is_error, &err));
    assert_true(clock_monotonic_ns() - start_ns < LONG_MS / 2 * 1000000ull);

    char wanted[100];
    int status;
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    assert_false(runtime_socket_receive(fd, wait, &content, &is_error, &err));
    snprintf(wanted, sizeof wanted, "the .NET runtime did not answer: process %d is stopped", (int)child);
    assert_string_equal(err.what, wanted);
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    assert_int_equal(err.os_error, ETIMEDOUT);
    snprintf(wanted, sizeof wanted, "let it go on with: kill -CONT %d", (int)child);
    assert_string_equal(err.hint, wanted);

    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    buffer_done(&content);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_answer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
