#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/target_root.h"
#include "child.h"
#include "collect/socket_name.h"
#include "collect/target_files.h"
#include "collect/target_runtime.h"
#include "collect/target_select.h"
#include "collect/target_user.h"
#include "temp_folder.h"

static void test_own_process(void **state)
{
    (void)state;
    struct target t;
    struct error err = { 0 };
    if (!target_open(getpid(), &t, &err))
        fail_msg("%s", err.what);
    assert_int_equal(t.pid, getpid());
    assert_int_equal(t.parent, getppid());
    assert_int_equal(t.uid, getuid());
    assert_int_equal(t.runtime, RUNTIME_NONE);
    assert_non_null(strstr(t.name, "test_target"));
    assert_string_equal(target_label(&t), t.name);
    assert_true(t.start_ticks > 0);
    assert_true(target_is_alive(&t));
    assert_true(target_try(&t, TARGET_MEMORY).ok);
    assert_false(target_try(&t, TARGET_EVENTS).ok);
    assert_false(target_require(&t, TARGET_EVENTS, &err));
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    target_done(&t);
    assert_false(target_is_alive(&t));
}

/* The entry assembly is called so with its ending, too. */
static void test_name(void **state)
{
    (void)state;
    static const struct {
        const char *glob;
        bool started_by_dotnet, single;
    } cases[] = {
        { "numbat", true, true },    { "numbat.dll", true, false }, { "NUM*.dll", true, false },
        { "num*", true, true },      { "dotnet", true, false },     { "dotnet.dll", false, false },
        { "numbat.", false, false }, { ".dll", false, false },
    };
    char host[] = "dotnet", name[] = "numbat", assembly[] = "numbat";
    const struct target with_host = { .name = host, .entry_assembly = assembly };
    const struct target single = { .name = name }; /* compiled ahead of time: it has none */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(target_is_called(&with_host, cases[i].glob), cases[i].started_by_dotnet);
        assert_int_equal(target_is_called(&single, cases[i].glob), cases[i].single);
    }
}

/* What is begun is the same when it is finished, also again; or it is given up, and leaves no child. */
static void test_two_steps(void **state)
{
    (void)state;
    const char *const own[] = { mem_format("%d", (int)getpid()) };
    struct target_query query = { .pids = own, .pid_count = 1, .begun = true };
    struct target_list list;
    assert_true(target_select(&query, &list, NULL));
    struct target *t = &list.items[0];
    assert_non_null(t->look);
    assert_int_equal(t->pid, getpid());
    assert_true(t->start_ticks > 0);
    assert_null(t->command_line);
    for (int i = 0; i < 2; i++) {
        assert_true(target_finish(t, NULL));
        assert_null(t->look);
        assert_false(t->silent || t->maps_denied);
        assert_non_null(strstr(t->command_line, "test_target"));
    }
    target_list_done(&list);
    assert_true(target_select(&query, &list, NULL));
    target_list_done(&list);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    free((char *)own[0]);
}

static void test_process_that_ends(void **state)
{
    (void)state;
    pid_t child = child_fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    struct target t;
    struct error err = { 0 };
    assert_true(target_open(child, &t, &err));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(target_is_alive(&t));
    assert_false(target_require(&t, TARGET_MEMORY, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    struct target again = { .pid = 7 };
    assert_false(target_open(child, &again, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_int_equal(again.pid, 7);
    target_done(&t);
}

static const struct {
    const char *pids;
    enum error_kind kind;
} wrong_pids[] = {
    { "abc", ERROR_USAGE },         { "", ERROR_USAGE },
    { "1,", ERROR_USAGE },          { "1;2", ERROR_USAGE },
    { "-1", ERROR_USAGE },          { "0", ERROR_TARGET },
    { "2147483647", ERROR_TARGET }, { "99999999999999999999999", ERROR_TARGET },
};

static void test_select_pids(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong_pids); i++) {
        struct target_query query = { .pids = &wrong_pids[i].pids, .pid_count = 1 };
        struct target_list list = { .count = 77 };
        struct error err = { 0 };
        assert_false(target_select(&query, &list, &err));
        if (err.kind != wrong_pids[i].kind)
            fail_msg("'%s': %s", wrong_pids[i].pids, err.what);
        assert_int_equal(list.count, 77);
    }
    char both[64];
    snprintf(both, sizeof both, "%d,%d,%d", (int)getpid(), (int)getppid(), (int)getpid());
    const char *texts[] = { both };
    struct target_query query = { .pids = texts, .pid_count = 1 };
    struct target_list list;
    struct error err = { 0 };
    assert_true(target_select(&query, &list, &err));
    assert_int_equal(list.count, 2);
    target_list_done(&list);
    query.one = true;
    assert_false(target_select(&query, &list, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_non_null(strstr(err.what, "2 processes fit this choice: "));
    assert_non_null(strstr(err.what, "test_target"));
}

static void test_choices_that_clash(void **state)
{
    (void)state;
    static const char *const texts[] = { "1" };
    static const struct target_query clashes[] = {
        { .pids = texts, .pid_count = 1, .names = texts, .name_count = 1 },
        { .pids = texts, .pid_count = 1, .container = "abc" },
        { .pids = texts, .pid_count = 1, .cgroup = "/" },
        { .pids = texts, .pid_count = 1, .all = true },
        { .names = texts, .name_count = 1, .all = true },
        { .container = "abc", .all = true },
        { .cgroup = "/", .all = true },
    };
    struct target_list list;
    for (size_t i = 0; i < ARRAY_LEN(clashes); i++) {
        struct error err = { 0 };
        assert_false(target_select(&clashes[i], &list, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
        assert_non_null(strstr(err.what, " exclude each other"));
    }
    /* these narrow each other */
    struct error err = { 0 };
    struct target_query query = { .names = texts, .name_count = 1, .container = "abc", .cgroup = "/" };
    assert_false(target_select(&query, &list, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_string_equal(err.what, "no .NET process in the container 'abc' is called '1'");
}

static void test_select_nothing(void **state)
{
    (void)state;
    static const char *const names[] = { "no such program at all" };
    struct target_query query = { .names = names, .name_count = 1 };
    struct target_list list;
    struct error err = { 0 };
    assert_false(target_select(&query, &list, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_string_equal(err.what, "no .NET process is called 'no such program at all'");
    query = (struct target_query){ .container = "no such container" };
    assert_false(target_select(&query, &list, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
}

static void test_socket_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool ok;
    } names[] = {
        { "dotnet-diagnostic-4711-352300-socket", true },
        { "dotnet-diagnostic-4711-352300-socket2", false },
        { "dotnet-diagnostic--352300-socket", false },
        { "dotnet-diagnostic-4711--socket", false },
        { "dotnet-diagnostic-dsrouter-1-2-socket", false },
        { "dotnet-diagnostic-99999999999-1-socket", false },
        { "dotnet-diagnostic-1-99999999999999999999-socket", false },
        { "dotnet-diagnostic-0-1-socket", false },
        { "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        pid_t pid = 0;
        uint64_t key = 0;
        if (socket_name_read(names[i].name, &pid, &key) != names[i].ok)
            fail_msg("'%s'", names[i].name);
        if (names[i].ok)
            assert_true(pid == 4711 && key == 352300);
    }
}

/* Thousands of processes see the same files: a descriptor each would be more than we may have. */
static void test_files(void **state)
{
    (void)state;
    struct target_files files = { 0 };
    pid_t child = child_fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    target_files_add(&files, 3, (uint32_t)getpid());
    target_files_add(&files, 3, (uint32_t)getpid());
    target_files_add(&files, 5000, (uint32_t)child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    target_files_add(&files, 5001, (uint32_t)child);
    assert_int_equal(files.root_count, 1);
    static const struct {
        uint32_t process;
        bool ok;
    } rows[] = { { 0, false }, { 3, true }, { 4, false }, { 5000, true }, { 5001, false }, { 9999, false } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FD int fd = target_files_open(&files, rows[i].process, "/etc/passwd");
        if ((fd >= 0) != rows[i].ok)
            fail_msg("process %u", rows[i].process);
    }
    static const uint8_t here[4] = { 1, 2, 3, 4 };
    const uint64_t addr = (uintptr_t)here;
    uint8_t bytes[4] = { 0 };
    uint32_t got = 9;
    target_files_read_memory(&files, 3, &addr, 1, sizeof bytes, bytes, &got);
    assert_int_equal(got, sizeof bytes);
    assert_memory_equal(bytes, here, sizeof bytes);
    files.seen[3].start_ticks++; /* the number is another process's now */
    target_files_read_memory(&files, 3, &addr, 1, sizeof bytes, bytes, &got);
    assert_int_equal(got, 0);
    target_files_read_memory(&files, 5000, &addr, 1, sizeof bytes, bytes, &got);
    assert_int_equal(got, 0);
    target_files_done(&files);
}

static void write_file(const char *path, const char *text)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* A service that was updated while it runs has files whose names others have. */
static void test_nameless_files(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* not ours to open */
    struct target_files files = { 0 };
    char folder[4096], path[4104], deleted[4120], text[8] = "";
    assert_true(temp_folder_make(folder, sizeof folder));
    snprintf(path, sizeof path, "%s/fi\nle", folder);
    snprintf(deleted, sizeof deleted, "%s (deleted)", path);
    write_file(path, "mapped");
    AUTO_FD int mapped = open(path, O_RDONLY | O_CLOEXEC);
    void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, mapped, 0);
    assert_true(at != MAP_FAILED);
    target_files_add(&files, 1, (uint32_t)getpid());
    assert_int_equal(target_files_open(&files, 1, deleted), -1);
    assert_int_equal(unlink(path), 0);
    write_file(path, "newer");
    AUTO_FD int fd = target_files_open(&files, 1, deleted);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    assert_string_equal(text, "mapped");
    AUTO_FD int newer = target_files_open(&files, 1, path);
    assert_int_equal(read(newer, text, sizeof text - 1), 5);
    assert_memory_equal(text, "newer", 5);
    files.seen[1].start_ticks++; /* the number is another process's now */
    assert_int_equal(target_files_open(&files, 1, deleted), -1);
    munmap(at, 4096);
    unlink(path);
    rmdir(folder);
    target_files_done(&files);
}

/* Files are opened with nothing of root's: not its id, not its groups. */
static void test_target_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root changes its user */
    char folder[4096], path[4104];
    assert_true(temp_folder_make(folder, sizeof folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chmod(path, 0040), 0); /* for the group of root only */
    gid_t before[256], now[256];
    int count = getgroups(256, before);
    struct own_user own = target_user_become(65534, 65534);
    int as_target = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(getgroups(256, now), 1);
    assert_int_equal(now[0], 65534);
    target_user_leave(&own);
    AUTO_FD int as_self = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(unlink(path) + rmdir(folder), 0);
    assert_int_equal(as_target, -1);
    assert_true(as_self >= 0);
    assert_int_equal(getgroups(256, now), count);
    assert_memory_equal(now, before, (size_t)count * sizeof *now);
}

/* A loaded part with the name that such a runtime exports, and nothing else. */
static void write_aot_library(const char *path)
{
    static const char name[] = "\0DotNetRuntimeDebugHeader";
    uint8_t bytes[4096] = "\x7f"
                          "ELF\2\1\1";
    bytes[32] = 64; /* where the program headers are, */
    bytes[54] = 56; /* how large, */
    bytes[56] = 1;  /* and how many */
    bytes[64] = 1;  /* PT_LOAD */
    bytes[68] = 4;  /* R */
    bytes[73] = 1;  /* from 256 on */
    bytes[64 + 32] = sizeof name;
    memcpy(bytes + 256, name, sizeof name);
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
}

static void *be_finalizer(void *user)
{
    prctl(PR_SET_NAME, ".NET Finalizer");
    (void)!write(*(int *)user, "", 1);
    for (;;)
        pause();
    return NULL;
}

static pid_t start_host(const char *library)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = child_fork();
    if (pid == 0) {
        pthread_t thread;
        int fd = open(library, O_RDONLY | O_CLOEXEC);
        void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED || pthread_create(&thread, NULL, be_finalizer, &ready[1]) != 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

/* A program that is none of .NET's, with a library that was compiled ahead of time. */
static void test_aot_library(void **state)
{
    (void)state;
    char folder[4096], path[4112];
    struct target t = { .threads = 2, .pidfd = -1 }; /* our own executable has the runtimes' names in it */
    AUTO_FD int root = -1;
    assert_true(temp_folder_make(folder, sizeof folder));
    snprintf(path, sizeof path, "%s/plugin.so", folder);
    assert_int_equal(chmod(folder, 0755), 0);
    write_aot_library(path);
    t.pid = start_host(path);
    assert_true(target_root_open(t.pid, &root, NULL));
    t.runtime = RUNTIME_MONO; /* it has one: nothing is looked for */
    target_find_library(&t, root);
    assert_null(t.image);
    t.runtime = RUNTIME_NONE;
    target_find_library(&t, root);
    assert_int_equal(t.runtime, RUNTIME_NATIVEAOT);
    assert_string_equal(t.image, path);
    kill(t.pid, SIGKILL);
    waitpid(t.pid, NULL, 0);
    target_done(&t);
    assert_int_equal(unlink(path) + rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_process),        cmocka_unit_test(test_name),
        cmocka_unit_test(test_two_steps),          cmocka_unit_test(test_process_that_ends),
        cmocka_unit_test(test_select_pids),        cmocka_unit_test(test_select_nothing),
        cmocka_unit_test(test_choices_that_clash), cmocka_unit_test(test_socket_names),
        cmocka_unit_test(test_target_user),        cmocka_unit_test(test_files),
        cmocka_unit_test(test_nameless_files),     cmocka_unit_test(test_aot_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
