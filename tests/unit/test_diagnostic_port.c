#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "collect/diagnostic_port.h"
#include "collect/proc_file.h"

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

static void advertise(uint8_t out[34], char cookie)
{
    memset(out, 0, 34);
    memcpy(out, "ADVR_V1", 8);
    memset(out + 8, cookie, 16);
    out[24] = 1; /* the pid, as it sees it */
}

/* A runtime: advertises, waits to be resumed, answers, calls again and waits for our end. */
static pid_t start_runtime(const char *path, char cookie)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    close_range(3, ~0u, 0); /* ends of others would never be seen to close */
    uint8_t words[34], request[sizeof go_on], rest;
    advertise(words, cookie);
    alarm(30);
    int fd = call(path, words, sizeof words);
    if (recv(fd, request, sizeof request, MSG_WAITALL) != sizeof request ||
        memcmp(request, go_on, sizeof request) != 0 || write(fd, fine, sizeof fine) != sizeof fine)
        _exit(2);
    int again = call(path, words, sizeof words);
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
    uint64_t start_ticks;
    assert_true(proc_file_start_ticks(pid, &start_ticks, NULL));
    assert_int_equal(caller.start_ticks, start_ticks);
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

/* Nobody waits for one that says half of it; it may still say the rest. */
static void test_slow(void **state)
{
    (void)state;
    struct diagnostic_port *p;
    struct diagnostic_caller caller;
    uint8_t slow[34], quick[34];
    advertise(slow, 's');
    advertise(quick, 'q');
    assert_true(diagnostic_port_open(NULL, &p, NULL));
    AUTO_FD int silent = call(diagnostic_port_path(p), "", 0);
    AUTO_FD int first = call(diagnostic_port_path(p), slow, 20);
    AUTO_FD int second = call(diagnostic_port_path(p), quick, sizeof quick);
    assert_true(diagnostic_port_take(p, &caller));
    assert_int_equal(caller.cookie[0], 'q');
    diagnostic_port_keep(p, &caller);
    assert_false(diagnostic_port_take(p, &caller));
    struct pollfd calls = { .fd = diagnostic_port_fd(p), .events = POLLIN };
    assert_int_equal(poll(&calls, 1, 0), 0);
    assert_int_equal(send(first, slow + 20, 14, MSG_NOSIGNAL), 14);
    assert_int_equal(poll(&calls, 1, 0), 1);
    assert_true(diagnostic_port_take(p, &caller));
    assert_int_equal(caller.cookie[0], 's');
    diagnostic_port_keep(p, &caller);
    diagnostic_port_close(p);
    (void)silent;
    (void)second;
}

/* The places of those that end are for others. */
static void test_many(void **state)
{
    (void)state;
    struct diagnostic_port *p;
    struct diagnostic_caller caller;
    uint8_t words[34], rest;
    assert_true(diagnostic_port_open(NULL, &p, NULL));
    for (unsigned i = 0; i < 300; i++) {
        advertise(words, (char)(i + 1));
        int fd = call(diagnostic_port_path(p), words, sizeof words);
        assert_true(diagnostic_port_take(p, &caller));
        diagnostic_port_keep(p, &caller);
        if (recv(fd, &rest, 1, MSG_DONTWAIT) == 0)
            fail_msg("call %u was turned away", i);
        close(fd);
    }
    for (unsigned i = 0; i < 300; i++) { /* and of those that never say anything */
        AUTO_FD int fd = call(diagnostic_port_path(p), "", 0);
        assert_false(diagnostic_port_take(p, &caller));
        (void)fd;
    }
    AUTO_FD int last = call(diagnostic_port_path(p), words, sizeof words);
    assert_true(diagnostic_port_take(p, &caller));
    diagnostic_port_keep(p, &caller);
    diagnostic_port_close(p);
    (void)last;
}

/* Without a file to be had nobody is taken, nor announced again and again. */
static void test_no_file(void **state)
{
    (void)state;
    struct diagnostic_port *p;
    struct diagnostic_caller caller;
    struct rlimit before;
    uint8_t words[34];
    advertise(words, 'f');
    assert_true(diagnostic_port_open(NULL, &p, NULL));
    AUTO_FD int fd = call(diagnostic_port_path(p), words, sizeof words);
    struct pollfd calls = { .fd = diagnostic_port_fd(p), .events = POLLIN };
    assert_int_equal(poll(&calls, 1, 0), 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, before.rlim_max }), 0);
    bool taken = diagnostic_port_take(p, &caller);
    int announced = poll(&calls, 1, 0);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_false(taken);
    assert_int_equal(announced, 0);
    take(p, &caller);
    assert_int_equal(caller.pid, getpid());
    diagnostic_port_keep(p, &caller);
    diagnostic_port_close(p);
    (void)fd;
}

/* A process that has no number for us, or says that it has none for itself, cannot be recorded. */
static void test_no_pid(void **state)
{
    (void)state;
    char folder[] = "/tmp/clrperf-there-XXXXXX", path[64];
    uint8_t words[34], rest;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/port", folder);
    advertise(words, 'n');
    int ready[2], called[2];
    assert_true(pipe(ready) == 0 && pipe(called) == 0);
    pid_t outer = fork();
    if (outer == 0) {
        struct diagnostic_port *p;
        struct diagnostic_caller caller;
        alarm(30);
        if (unshare(geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID) < 0)
            _exit(77);
        pid_t inner = fork();
        if (inner != 0)
            _exit(exit_code(inner));
        if (!diagnostic_port_open(path, &p, NULL) || write(ready[1], "", 1) != 1)
            _exit(1);
        if (read(called[0], &rest, 1) != 1)
            _exit(3);
        bool taken = diagnostic_port_take(p, &caller);
        diagnostic_port_close(p);
        _exit(taken ? 2 : 0);
    }
    close(ready[1]);
    bool is_ready = read(ready[0], &rest, 1) == 1;
    int fd = is_ready ? call(path, words, sizeof words) : -1;
    assert_int_equal(write(called[1], "", 1), 1);
    int code = exit_code(outer);
    close(ready[0]);
    close(called[0]);
    close(called[1]);
    if (fd >= 0)
        close(fd);
    unlink(path);
    rmdir(folder);
    assert_true(code == 0 || code == 77);

    struct diagnostic_port *p;
    struct diagnostic_caller caller;
    words[24] = 0;
    assert_true(diagnostic_port_open(NULL, &p, NULL));
    AUTO_FD int nobody = call(diagnostic_port_path(p), words, sizeof words);
    assert_false(diagnostic_port_take(p, &caller));
    assert_int_equal(recv(nobody, &rest, 1, MSG_DONTWAIT), 0);
    diagnostic_port_close(p);
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
    assert_non_null(strstr(err.hint, "remove that file"));
    assert_int_equal(access(there, F_OK), 0);
    unlink(there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caller_goes_on), cmocka_unit_test(test_all_are_let_go),
        cmocka_unit_test(test_strangers),      cmocka_unit_test(test_slow),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_no_pid),         cmocka_unit_test(test_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
