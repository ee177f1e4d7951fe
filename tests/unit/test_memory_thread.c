#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/target_root.h"
#include "collect/proc_file.h"
#include "waning.h"

static void check_shown(pid_t pid)
{
    static const char *const names[] = { "cmdline", "environ", "maps" };
    char exe[4096];
    AUTO_FD int root = -1;
    struct buffer text;
    buffer_init(&text, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(proc_file_read(pid, names[i], &text, NULL) && text.size > 0);
    buffer_done(&text);
    assert_true(proc_file_link(pid, "exe", exe, sizeof exe, NULL));
    assert_true(strstr(exe, "test_memory_thread") != NULL);
    assert_true(proc_file_link(pid, "fd/0", exe, sizeof exe, NULL));
    assert_true(target_root_open(pid, &root, NULL));
}

/* What is the process's is still shown when its first thread has ended, and the next one. */
static void test_first_threads_end(void **state)
{
    (void)state;
    struct proc_status status;
    uint64_t ticks, later;
    struct waning w = waning_start();
    assert_int_equal(memory_thread_of(w.pid), w.pid);
    assert_true(proc_file_start_ticks(w.pid, &ticks, NULL));
    check_shown(w.pid);
    for (int i = 0; i < WANING_THREADS - 1; i++) {
        waning_next(&w, i);
        check_shown(w.pid);
    }
    /* what names the process is its own still */
    assert_true(proc_file_start_ticks(w.pid, &later, NULL) && later == ticks);
    assert_true(proc_file_status(w.pid, &status, NULL) && status.ns_pid == w.pid);
    waning_done(&w);
}

/* One without memory is named by its own id: there is no better one. */
static void test_no_memory(void **state)
{
    (void)state;
    siginfo_t info;
    pid_t pid = child_fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(memory_thread_of(pid), pid);
    waitpid(pid, NULL, 0);
    assert_int_equal(memory_thread_of(pid), pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_threads_end),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
