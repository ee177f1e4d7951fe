#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/procfs.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct span text_of(const char *text)
{
    return span_of(text, strlen(text));
}

static void assert_text(struct span got, const char *wanted)
{
    if (!span_equals(got, text_of(wanted)))
        fail_msg("'%.*s' is not '%s'", (int)got.size, (const char *)got.data, wanted);
}

#define STAT_TAIL " S 1 4711 4711 0 -1 4194560 100 0 0 0 12 3 8 5 20 0 7 0 3523 274877906944 5000\n"

#define LONG_STAT_TAIL                                                                                       \
    " S 1 4711 4711 0 -1 4194560 100 0 0 0 12 3 8 5 20 0 7 0 3523 274877906944 5000 18446744073709551615 1 " \
    "2 "                                                                                                     \
    "140734656544096 0 0\n"

static void test_stat(void **state)
{
    (void)state;
    static const char *const names[] = { "dotnet", ") R 1 NStgid:", "a (b) c", "", "x\ny", ")))" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char line[256];
        snprintf(line, sizeof line, "4711 (%s)" STAT_TAIL, names[i]);
        struct proc_stat stat;
        assert_true(procfs_read_stat(text_of(line), &stat, NULL));
        assert_text(stat.name, names[i]);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.parent, 1);
        assert_int_equal(stat.user_ticks, 12);
        assert_int_equal(stat.system_ticks, 3);
        assert_int_equal(stat.child_user_ticks, 8);
        assert_int_equal(stat.child_system_ticks, 5);
        assert_int_equal(stat.threads, 7);
        assert_int_equal(stat.start_ticks, 3523);
        assert_int_equal(stat.virtual_bytes, 274877906944);
        assert_int_equal(stat.stack_start, 0);
        snprintf(line, sizeof line, "4711 (%s)" LONG_STAT_TAIL, names[i]);
        assert_true(procfs_read_stat(text_of(line), &stat, NULL));
        assert_int_equal(stat.virtual_bytes, 274877906944);
        assert_int_equal(stat.stack_start, 140734656544096);
    }
}

static void test_stat_cut(void **state)
{
    (void)state;
    static const char line[] = "4711 (dotnet)" STAT_TAIL;
    /* cut before the last field that is read: an error, never a wrong value */
    size_t needed = (size_t)(strstr(line, "3523 ") - line) + 5;
    for (size_t size = 0; size < needed; size++) {
        struct proc_stat stat = { .state = '?' };
        struct error err;
        assert_false(procfs_read_stat(span_of(line, size), &stat, &err));
        assert_int_equal(err.kind, ERROR_INPUT);
        assert_int_equal(stat.state, '?');
    }
    assert_false(procfs_read_stat(text_of(")4711("), &(struct proc_stat){ 0 }, NULL));
    assert_false(
        procfs_read_stat(text_of("1 (x) S 99999999999999999999999 1"), &(struct proc_stat){ 0 }, NULL));
}

static const char status_text[] = "Name:\tUid:\\n\n"
                                  "State:\tS (sleeping)\n"
                                  "Tgid:\t4711\n"
                                  "TracerPid:\t815\n"
                                  "Uid:\t1001\t1002\t1003\t1004\n"
                                  "Gid:\t2001\t2002\t2003\t2004\n"
                                  "NSpid:\t4711\t12\t1\n"
                                  "CapEff:\t000001ffffffffff\n"
                                  "Seccomp:\t2\n";

static void test_status(void **state)
{
    (void)state;
    struct proc_status status;
    assert_true(procfs_read_status(text_of(status_text), &status, NULL));
    assert_int_equal(status.uid, 1001);
    assert_int_equal(status.fs_uid, 1004);
    assert_int_equal(status.gid, 2001);
    assert_int_equal(status.fs_gid, 2004);
    assert_int_equal(status.tracer, 815);
    assert_int_equal(status.ns_pid, 1);
    assert_int_equal(status.ns_depth, 2);
    assert_true(status.effective_capabilities == 0x1ffffffffff);
    assert_int_equal(status.seccomp, 2);
    /* kernels before 4.1 have no NSpid */
    assert_true(procfs_read_status(text_of("Tgid:\t7\nUid:\t0 0 0 0\nGid:\t0 0 0 0\n"), &status, NULL));
    assert_int_equal(status.ns_pid, 7);
    /* a key in the middle of a line is none */
    assert_false(
        procfs_read_status(text_of("Name:\tx Tgid:\t7 Uid:\t0 0 0 0 Gid:\t0 0 0 0\n"), &status, NULL));
}

static void test_status_cut(void **state)
{
    (void)state;
    size_t needed = (size_t)(strstr(status_text, "NSpid") - status_text);
    for (size_t size = 0; size < sizeof status_text; size++) {
        struct proc_status status;
        if (procfs_read_status(span_of(status_text, size), &status, NULL) != (size >= needed))
            fail_msg("cut at %zu", size);
    }
}

static const char maps_text[] =
    "55d0c8a0f000-55d0c8a10000 r-xp 00001000 fd:01 1234                       /usr/bin/odd name\n"
    "7f00-7f10 rw-s 0000a000 00:01 7 /memfd:doublemapper (deleted)\n"
    "garbage\n"
    "7f20-7f10 r--p 00000000 00:00 0 \n"
    "7f30-7f40 ---p 00000000 00:00 0 \n"
    "8000-9000 r--p 00000000 08:02 5  /tmp/odd\\012name\\x\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
    "a000-b000 r--p 00000000 08:02 5  /cut";

static void test_maps(void **state)
{
    (void)state;
    struct span rest = text_of(maps_text);
    struct proc_mapping m;
    uint64_t malformed = 0;
    assert_true(procfs_next_mapping(&rest, &m, &malformed));
    assert_true(m.start == 0x55d0c8a0f000 && m.end == 0x55d0c8a10000 && m.file_off == 0x1000);
    assert_true(m.readable && !m.writable && m.executable && !m.shared && !m.deleted);
    assert_int_equal(m.device_major, 0xfd);
    assert_int_equal(m.inode, 1234);
    assert_text(m.path, "/usr/bin/odd name");
    assert_true(procfs_next_mapping(&rest, &m, &malformed));
    assert_true(m.deleted && m.shared && m.writable);
    assert_text(m.path, "/memfd:doublemapper");
    assert_true(procfs_next_mapping(&rest, &m, &malformed));
    assert_int_equal(malformed, 2);
    assert_int_equal(m.path.size, 0);
    assert_true(procfs_next_mapping(&rest, &m, &malformed));
    struct buffer path;
    buffer_init(&path, 64);
    procfs_unescape(m.path, &path);
    assert_text(buffer_span(&path), "/tmp/odd\nname\\x");
    buffer_done(&path);
    assert_true(procfs_next_mapping(&rest, &m, &malformed));
    assert_true(m.end == 0xffffffffff601000);
    assert_false(procfs_next_mapping(&rest, &m, &malformed));
}

static void test_maps_cut(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof maps_text; size++) {
        /* an exact copy, so that the sanitizer sees a byte too far */
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, maps_text, size);
        struct span rest = { copy, size };
        struct proc_mapping m;
        size_t count = 0, newlines = 0;
        while (procfs_next_mapping(&rest, &m, NULL))
            count++;
        for (size_t i = 0; i < size; i++)
            newlines += copy[i] == '\n';
        assert_true(count <= newlines);
        free(copy);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    struct span rest = span_of("dotnet\0\0/app/App.dll\0tail", 25);
    struct span arg;
    static const char *const wanted[] = { "dotnet", "", "/app/App.dll", "tail" };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_true(procfs_next_argument(&rest, &arg));
        assert_text(arg, wanted[i]);
    }
    assert_false(procfs_next_argument(&rest, &arg));
    struct span environ_text = span_of("XTMPDIR=/no\0TMPDIR=/var/tmp\0EMPTY=\0TMPDIR=/late", 47);
    assert_true(procfs_environ_find(environ_text, "TMPDIR", &arg));
    assert_text(arg, "/var/tmp");
    assert_true(procfs_environ_find(environ_text, "EMPTY", &arg));
    assert_int_equal(arg.size, 0);
    assert_false(procfs_environ_find(environ_text, "TMP", &arg));
    assert_false(procfs_environ_find((struct span){ 0 }, "TMP", &arg));
}

static const struct {
    const char *text;
    const char *path;
    const char *id;
} cgroups[] = {
    { "0::/\n", "/", "" },
    { "0::/user.slice/user-1000.slice/session-3.scope\n", "/user.slice/user-1000.slice/session-3.scope", "" },
    { "0::/system.slice/docker-" ID ".scope\n", "/system.slice/docker-" ID ".scope", ID },
    { "12:pids:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/\n", "/docker/" ID, ID },
    { "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope/init\n",
      "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope/init", ID },
    { "0::/lxc/web/ns\n", "/lxc/web/ns", "web" },
    { "0::/lxc.payload.web/x\n", "/lxc.payload.web/x", "web" },
    { "0::/machine.slice/machine-deb.scope\n", "/machine.slice/machine-deb.scope", "deb" },
    { "0::/x/0" ID "\n", "/x/0" ID, "" },
    { "no colon\n", "", "" },
    { "0::/cut", "", "" },
};

static void test_cgroup(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cgroups); i++) {
        struct span path = procfs_cgroup_path(text_of(cgroups[i].text));
        assert_text(path, cgroups[i].path);
        assert_text(procfs_container_id(path), cgroups[i].id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),       cmocka_unit_test(test_stat_cut), cmocka_unit_test(test_status),
        cmocka_unit_test(test_status_cut), cmocka_unit_test(test_maps),     cmocka_unit_test(test_maps_cut),
        cmocka_unit_test(test_arguments),  cmocka_unit_test(test_cgroup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
