#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/target_root.h"
#include "child.h"
#include "temp_folder.h"

/* A plain directory stands for the target's root; beside it lies what must never be reached. */
struct tree {
    char folder[1024];
    int outside_fd;
    int root_fd;
};

static void write_file(int dir, const char *name, const char *text)
{
    AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void link_to(struct tree *t, const char *target, const char *name)
{
    assert_int_equal(symlinkat(target, t->root_fd, name), 0);
}

static void make_socket(int folder_fd)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/root/tmp/socket", folder_fd);
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
}

static int make_tree(void **state)
{
    static struct tree t;
    assert_true(temp_folder_make(t.folder, sizeof t.folder));
    t.outside_fd = open(t.folder, O_RDONLY | O_DIRECTORY);
    write_file(t.outside_fd, "secret", "HOST");
    assert_int_equal(mkdirat(t.outside_fd, "root", 0755), 0);
    t.root_fd = openat(t.outside_fd, "root", O_PATH | O_DIRECTORY);
    assert_int_equal(mkdirat(t.root_fd, "tmp", 0777), 0);
    write_file(t.root_fd, "tmp/file", "inside");
    write_file(t.root_fd, "tmp/secret", "INSIDE");
    char path[1100];
    snprintf(path, sizeof path, "%s/secret", t.folder);
    link_to(&t, path, "tmp/absolute");
    link_to(&t, "../../secret", "tmp/dotdot");
    link_to(&t, "../../../../../../../../etc/passwd", "tmp/dots");
    snprintf(path, sizeof path, "/proc/self/root%s/secret", t.folder);
    link_to(&t, path, "tmp/magic");
    link_to(&t, "/proc/self/cwd", "tmp/cwd");
    link_to(&t, "/tmp/file", "tmp/good");
    link_to(&t, "/tmp", "alias");
    link_to(&t, "loop", "tmp/loop");
    link_to(&t, "/dev/zero", "tmp/zero_link");
    assert_int_equal(mkfifoat(t.root_fd, "tmp/fifo", 0666), 0);
    assert_int_equal(linkat(t.root_fd, "tmp/file", t.root_fd, "tmp/second", 0), 0);
    make_socket(t.outside_fd);
    *state = &t;
    return 0;
}

static int remove_tree(void **state)
{
    struct tree *t = *state;
    close(t->root_fd);
    close(t->outside_fd);
    pid_t child = child_fork();
    if (child == 0) {
        execl("/bin/rm", "rm", "-rf", t->folder, (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
    return 0;
}

enum way { BY_OPENAT2, BY_WALK };

static const struct {
    const char *path;
    enum target_file_kind kind;
    const char *content; /* what may be read; NULL: must be refused */
    const char *content_walk;
} cases[] = {
    { "/tmp/file", TARGET_FILE_REGULAR, "inside", "inside" },
    { "tmp/file", TARGET_FILE_REGULAR, "inside", "inside" },
    { "//tmp/.//file", TARGET_FILE_REGULAR, "inside", "inside" },
    { "/../../tmp/file", TARGET_FILE_REGULAR, "inside", NULL },
    { "/tmp/good", TARGET_FILE_REGULAR, "inside", NULL },
    { "/alias/file", TARGET_FILE_REGULAR, "inside", NULL },
    { "/tmp/absolute", TARGET_FILE_REGULAR, NULL, NULL },
    /* `..` stops at the root, so this is the target's own /secret, which is not there */
    { "/tmp/dotdot", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/dots", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/magic", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/cwd/secret", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/loop", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/fifo", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/zero_link", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/socket", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/missing", TARGET_FILE_REGULAR, NULL, NULL },
    { "", TARGET_FILE_REGULAR, NULL, NULL },
    { "/tmp/file", TARGET_FILE_SOCKET, NULL, NULL },
    { "/tmp/fifo", TARGET_FILE_SOCKET, NULL, NULL },
    { "/tmp/file", TARGET_FILE_DIRECTORY, NULL, NULL },
};

static void check_case(const struct tree *t, size_t i, enum way way)
{
    struct target_file_rules rules = { .kind = cases[i].kind };
    const char *content = way == BY_WALK ? cases[i].content_walk : cases[i].content;
    AUTO_FD int fd = -1;
    struct error err = { 0 };
    bool ok = way == BY_WALK ? target_root_walk_path(t->root_fd, cases[i].path, rules, &fd, &err)
                             : target_root_open_path(t->root_fd, cases[i].path, rules, &fd, &err);
    if (ok != (content != NULL))
        fail_msg("'%s' (way %d): %s", cases[i].path, (int)way, ok ? "opened" : err.what);
    if (!ok) {
        assert_int_equal(fd, -1);
        assert_true(err.what[0] != 0);
        return;
    }
    char text[64] = { 0 };
    assert_true(read(fd, text, sizeof text - 1) >= 0);
    assert_string_equal(text, content);
}

static void test_hostile_tree(void **state)
{
    /* a FIFO that blocked would end here */
    alarm(100);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case(*state, i, BY_OPENAT2);
        check_case(*state, i, BY_WALK);
    }
    alarm(0);
}

static void test_device(void **state)
{
    const struct tree *t = *state;
    if (mknodat(t->root_fd, "tmp/device", S_IFCHR | 0666, makedev(1, 5)) < 0)
        skip();
    int fd = -1;
    struct error err = { 0 };
    assert_false(
        target_root_open_path(t->root_fd, "/tmp/device", (struct target_file_rules){ 0 }, &fd, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    assert_string_equal(err.what, "'/tmp/device' of the target is a device, not a regular file");
}

static void test_magic_link_of_proc(void **state)
{
    (void)state;
    /* even when the root holds a real /proc, its links into other roots are not followed */
    AUTO_FD int root = open("/", O_PATH | O_DIRECTORY);
    int fd = -1;
    struct error err = { 0 };
    assert_false(target_root_open_path(root, "/proc/self/root/etc/passwd", (struct target_file_rules){ 0 },
                                       &fd, &err));
    assert_int_equal(err.os_error, ELOOP);
    assert_int_equal(fd, -1);
}

static void test_rules(void **state)
{
    const struct tree *t = *state;
    static const struct {
        const char *path;
        struct target_file_rules rules;
        bool ok;
    } rule_cases[] = {
        { "/tmp/file", { .size_max = 6 }, true },
        { "/tmp/file", { .size_max = 5 }, false },
        { "/tmp/second", { .own_links_only = true }, false },
        { "/tmp/secret", { .own_links_only = true }, true },
        { "/tmp/socket", { .kind = TARGET_FILE_SOCKET }, true },
        { "/tmp", { .kind = TARGET_FILE_DIRECTORY }, true },
        { "/", { .kind = TARGET_FILE_DIRECTORY }, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rule_cases); i++) {
        AUTO_FD int fd = -1;
        struct error err = { 0 };
        if (target_root_open_path(t->root_fd, rule_cases[i].path, rule_cases[i].rules, &fd, &err) !=
            rule_cases[i].ok)
            fail_msg("'%s': %s", rule_cases[i].path, err.what);
    }
}

static void test_owner(void **state)
{
    const struct tree *t = *state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(fchownat(t->root_fd, "tmp/secret", 4711, 4711, 0), 0);
    AUTO_FD int fd = -1;
    struct target_file_rules rules = { .owner_checked = true, .owner = 4712 };
    struct error err = { 0 };
    assert_false(target_root_open_path(t->root_fd, "/tmp/secret", rules, &fd, &err));
    assert_string_equal(err.what, "'/tmp/secret' of the target belongs to uid 4711, not to uid 4712");
    rules.owner = 4711;
    assert_true(target_root_open_path(t->root_fd, "/tmp/secret", rules, &fd, &err));
    assert_int_equal(fchmodat(t->root_fd, "tmp/secret", 0646, 0), 0);
    AUTO_FD int again = -1;
    assert_false(target_root_open_path(t->root_fd, "/tmp/secret", rules, &again, &err));
    assert_string_equal(err.what, "others than its owner may write to '/tmp/secret' of the target");
}

/* A file that is swapped for links and FIFOs while it is opened gives its own content or an error. */
static void test_renamer(void **state)
{
    const struct tree *t = *state;
    assert_int_equal(symlinkat("../../secret", t->root_fd, "tmp/swap_a"), 0);
    write_file(t->root_fd, "tmp/swap_b", "INSIDE");
    pid_t child = child_fork();
    if (child == 0) {
        for (;;)
            renameat2(t->root_fd, "tmp/swap_a", t->root_fd, "tmp/swap_b", RENAME_EXCHANGE);
    }
    alarm(100);
    unsigned opened = 0;
    time_t enough = time(NULL) + 10; /* of a machine that is busy with other things */
    for (unsigned i = 0; opened == 0 || (i < 20000 && time(NULL) < enough); i++) {
        AUTO_FD int fd = -1;
        if (!target_root_open_path(t->root_fd, "/tmp/swap_a", (struct target_file_rules){ 0 }, &fd, NULL))
            continue;
        char text[8] = { 0 };
        assert_true(read(fd, text, sizeof text - 1) >= 0);
        assert_string_equal(text, "INSIDE");
        opened++;
    }
    alarm(0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(opened > 0);
}

/* /proc/PID/maps of a process behind a chroot has paths from the root of the mount namespace. */
static void test_chroot(void **state)
{
    const struct tree *t = *state;
    static const struct {
        const char *behind_root;
        bool ok;
    } paths[] = {
        { "/tmp/file", true }, { "/tmp/none", false },  { "er/tmp/file", false },
        { "", false },         { "/../secret", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char path[1100];
        snprintf(path, sizeof path, "%s/root%s", t->folder, paths[i].behind_root);
        struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR };
        AUTO_FD int fd = -1;
        if (target_root_open_path(t->root_fd, path, rules, &fd, NULL) != paths[i].ok)
            fail_msg("'%s'", paths[i].behind_root);
    }
}

static void test_process_root(void **state)
{
    (void)state;
    AUTO_FD int root = -1;
    assert_true(target_root_open(getpid(), &root, NULL));
    AUTO_FD int file = -1;
    assert_true(target_root_open_path(root, "/etc/passwd", (struct target_file_rules){ 0 }, &file, NULL));
    struct error err;
    int none = -1;
    assert_false(target_root_open(0x7ffffff0, &none, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    assert_int_equal(none, -1);
}

/* Container engines that are older than openat2 refuse it by EPERM: that says nothing of the file. */
static void test_sandbox(void **state)
{
    const struct tree *t = *state;
    pid_t child = child_fork();
    if (child == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { ARRAY_LEN(code), code };
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
            _exit(2);
        int fd;
        struct target_file_rules rules = { .kind = TARGET_FILE_REGULAR };
        _exit(!target_root_open_path(t->root_fd, "/tmp/file", rules, &fd, NULL));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) {
        print_message("no seccomp filters here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_tree),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_magic_link_of_proc),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_renamer),
        cmocka_unit_test(test_sandbox),
        cmocka_unit_test(test_chroot),
        cmocka_unit_test(test_process_root),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
