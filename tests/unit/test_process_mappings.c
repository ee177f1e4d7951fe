#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "collect/process_mappings.h"

enum { PAGE = 4096, KEPT = 1024, MANY = 200 };

/* A process that stands still, with files whose names are hard to write down. */
struct still {
    pid_t pid;
    char folder[64];
    void *deleted, *anonymous;
};

static void *map_file(const char *folder, const char *name, int prot)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
    void *at = mmap(NULL, PAGE, prot, MAP_PRIVATE, fd, PAGE);
    assert_ptr_not_equal(at, MAP_FAILED);
    close(fd);
    return at;
}

static void unlink_in(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

/* Whose text takes more than one read. */
static void map_many(void)
{
    uint8_t *pages = mmap(NULL, MANY * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < MANY; i += 2)
        assert_int_equal(mprotect(pages + i * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
}

static int setup(void **state)
{
    static struct still s = { .folder = "/tmp/mappingsXXXXXX" };
    assert_non_null(mkdtemp(s.folder));
    map_file(s.folder, "two\nlines", PROT_READ);
    map_file(s.folder, "odd (deleted)", PROT_READ | PROT_EXEC);
    s.deleted = map_file(s.folder, "gone", PROT_READ);
    unlink_in(s.folder, "gone");
    s.anonymous =
        mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map_many();
    s.pid = fork();
    if (s.pid == 0)
        for (;;)
            pause();
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    struct still *s = *state;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    unlink_in(s->folder, "two\nlines");
    unlink_in(s->folder, "odd (deleted)");
    return rmdir(s->folder);
}

struct list {
    struct proc_mapping rows[KEPT];
    char paths[KEPT][256];
    size_t count, most;
};

static bool take(void *user, const struct proc_mapping *m)
{
    struct list *list = user;
    assert_true(list->count < list->most && m->path.size < sizeof list->paths[0]);
    struct proc_mapping *row = &list->rows[list->count];
    *row = *m;
    if (m->path.size)
        memcpy(list->paths[list->count], m->path.data, m->path.size);
    row->path = span_of(list->paths[list->count], m->path.size);
    return ++list->count < list->most;
}

static const struct proc_mapping *find(const struct list *list, const void *at)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->rows[i].start <= (uintptr_t)at && (uintptr_t)at < list->rows[i].end)
            return &list->rows[i];
    return NULL;
}

static void check_same(const struct list *one, const struct list *other)
{
    assert_int_equal(one->count, other->count);
    for (size_t i = 0; i < one->count; i++) {
        const struct proc_mapping *a = &one->rows[i], *b = &other->rows[i];
        assert_true(span_equals(a->path, b->path));
        assert_true(a->start == b->start && a->end == b->end && a->file_off == b->file_off);
        assert_true(a->inode == b->inode && a->device_major == b->device_major &&
                    a->device_minor == b->device_minor);
        assert_true(a->readable == b->readable && a->writable == b->writable &&
                    a->executable == b->executable && a->shared == b->shared && a->deleted == b->deleted);
    }
}

/* A kernel before 6.11 has one way only. */
static bool can_ask(pid_t pid)
{
    static struct list list;
    struct error err = { 0 };
    list = (struct list){ .most = 1 };
    if (process_mappings_each_by(pid, MAPPINGS_ASKED, MAPPINGS_ALL, take, &list, &err))
        return true;
    assert_int_equal(err.kind, ERROR_UNSUPPORTED);
    return false;
}

static void test_both_ways(void **state)
{
    static struct list read_list, asked;
    const struct still *s = *state;
    bool asks = can_ask(s->pid);
    for (int wanted = MAPPINGS_ALL; wanted <= MAPPINGS_READABLE; wanted++) {
        read_list = asked = (struct list){ .most = KEPT };
        assert_true(process_mappings_each_by(s->pid, MAPPINGS_READ, (enum mappings_wanted)wanted, take,
                                             &read_list, NULL));
        assert_true(read_list.count > 2);
        if (asks)
            assert_true(process_mappings_each_by(s->pid, MAPPINGS_ASKED, (enum mappings_wanted)wanted, take,
                                                 &asked, NULL));
        if (asks)
            check_same(&read_list, &asked);
    }
}

static void test_what_is_told(void **state)
{
    static struct list all, some;
    const struct still *s = *state;
    all = (struct list){ .most = KEPT };
    assert_true(process_mappings_each(s->pid, MAPPINGS_ALL, take, &all, NULL));
    const struct proc_mapping *gone = find(&all, s->deleted), *anonymous = find(&all, s->anonymous);
    assert_non_null(gone);
    assert_true(gone->deleted && span_ends(gone->path, "/gone"));
    assert_int_equal(gone->file_off, PAGE);
    assert_non_null(anonymous);
    assert_true(anonymous->path.size == 0 && anonymous->executable && anonymous->writable &&
                !anonymous->inode);
    size_t lines = 0;
    for (size_t i = 0; i < all.count; i++)
        lines += span_ends(all.rows[i].path, "/two\nlines");
    assert_int_equal(lines, 1);
    assert_true(all.count > MANY);
    some = (struct list){ .most = KEPT };
    assert_true(process_mappings_each(s->pid, MAPPINGS_OF_FILES, take, &some, NULL));
    assert_null(find(&some, s->anonymous));
    assert_non_null(find(&some, s->deleted));
    some = (struct list){ .most = KEPT };
    assert_true(process_mappings_each(s->pid, MAPPINGS_EXECUTABLE, take, &some, NULL));
    assert_non_null(find(&some, s->anonymous));
    assert_null(find(&some, s->deleted));
    some = (struct list){ .most = 2 };
    assert_true(process_mappings_each(s->pid, MAPPINGS_ALL, take, &some, NULL));
    assert_int_equal(some.count, 2);
}

static void test_gone(void **state)
{
    (void)state;
    static struct list list;
    struct error err;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    list = (struct list){ .most = KEPT };
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* a zombie has no memory */
    process_mappings_each(pid, MAPPINGS_ALL, take, &list, NULL);
    assert_int_equal(list.count, 0);
    waitpid(pid, NULL, 0);
    assert_false(process_mappings_each(pid, MAPPINGS_ALL, take, &list, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_what_is_told),
        cmocka_unit_test(test_gone),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
