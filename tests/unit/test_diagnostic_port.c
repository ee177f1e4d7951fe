#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/diagnostic_port.h"

static const uint8_t go_on[20] = "DOTNET_IPC_V1\0\x14\0\4\1"; /* ResumeRuntime */
static const uint8_t fine[24] = "DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0";

static int call(const char *path, const void *words, size_t size)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        write(fd, words, size) != (ssize_t)size)
        _exit(1);
    return fd;
}

/* A runtime: advertises, waits to be resumed, answers, calls again and waits for our end. */
static pid_t start_runtime(const char *path, char cookie)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    close_range(3, ~0u, 0); /* ends of others would never be seen to close */
    uint8_t advertise[34] = "ADVR_V1", request[sizeof go_on], rest;
    memset(advertise + 8, cookie, 16);
    alarm(30);
    int fd = call(path, advertise, sizeof advertise);
    if (recv(fd, request, sizeof request, MSG_WAITALL) != sizeof request ||
        memcmp(request, go_on, sizeof request) != 0 || write(fd, fine, sizeof fine) != sizeof fine)
        _exit(2);
    int again = call(path, advertise, sizeof advertise);
    _exit(read(again, &rest, 1) == 0 ? 0 : 3);
}

static int exit_code(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void take(struct diagnostic_port *p, struct diagnostic_caller *out)
{
    for (unsigned i = 0; i < 5000; i++) {
        if (diagnostic_port_take(p, out))
            return;
        usleep(1000);
    }
    fail_msg("nobody called");
}

static void test_caller_goes_on(void **state)
{
    (void)state;
    struct diagnostic_port *p;
    struct diagnostic_caller caller;
    struct stat st;
    assert_true(diagnostic_port_open(NULL, &p, NULL));
    char *path = strdup(diagnostic_port_path(p));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    assert_false(diagnostic_port_take(p, &caller));
    pid_t pid = start_runtime(path, 'a');
    take(p, &caller);
    assert_int_equal(caller.pid, pid);
    assert_int_equal(caller.cookie[3], 'a');
    assert_true(diagnostic_port_resume(p, &caller, NULL));
    /* the same one calls again: that is nobody new */
    for (unsigned i = 0; i < 100; i++) {
        assert_false(diagnostic_port_take(p, &caller));
        usleep(1000);
    }
    diagnostic_port_close(p);
    assert_int_equal(exit_code(pid), 0);
    assert_int_not_equal(stat(path, &st), 0);
    free(path);
}

static void test_all_are_let_go(void **state)
{
    (void)state;
    struct diagnostic_port *p;
    assert_true(diagnostic_port_open(NULL, &p, NULL));
    diagnostic_port_let_all_go(p);
    pid_t pids[8];
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        pids[i] = start_runtime(diagnostic_port_path(p), (char)('a' + i));
    sleep(1);
    diagnostic_port_close(p);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        assert_int_equal(exit_code(pids[i]), 0);
    diagnostic_port_close(NULL);
}

/* One that is no runtime, one that says nothing and goes, one that says half of it. */
static void test_strangers(void **state)
{
    (void)state;
    struct diagnostic_port *p;
    struct diagnostic_caller caller;
    assert_true(diagnostic_port_open(NULL, &p, NULL));
    uint8_t wrong[34] = "ADVR_V2";
    AUTO_FD int one = call(diagnostic_port_path(p), wrong, sizeof wrong);
    AUTO_FD int half = call(diagnostic_port_path(p), "ADVR_V1", 8);
    close(call(diagnostic_port_path(p), "", 0));
    pid_t pid = start_runtime(diagnostic_port_path(p), 'z');
    take(p, &caller);
    assert_int_equal(caller.pid, pid);
    assert_true(diagnostic_port_resume(p, &caller, NULL));
    diagnostic_port_close(p);
    exit_code(pid);
    (void)one;
    (void)half;
}

static void test_no_place(void **state)
{
    (void)state;
    struct diagnostic_port *p;
    struct error err;
    char longest[200];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_false(diagnostic_port_open(longest, &p, &err));
    assert_int_equal(err.kind, ERROR_USAGE);
    assert_false(diagnostic_port_open("/nonexistent/port", &p, &err));
    /* what is there already stays */
    char there[] = "/tmp/clrperf-there-XXXXXX";
    AUTO_FD int fd = mkstemp(there);
    assert_true(fd >= 0);
    assert_false(diagnostic_port_open(there, &p, &err));
    assert_int_equal(access(there, F_OK), 0);
    unlink(there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caller_goes_on),
        cmocka_unit_test(test_all_are_let_go),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
