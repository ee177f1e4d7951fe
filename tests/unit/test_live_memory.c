#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory_pages.h"
#include "child.h"
#include "collect/live_memory.h"
#include "waning.h"

enum { PAGE = 4096, PAGES = 8, HOLE = 3, SILENT = 5 };

/* What the target tells of itself before it sleeps. */
struct told {
    uint8_t *memory; /* PAGES pages; page n is full of n + 1 */
    bool silent;     /* page SILENT never answers */
};

/* Nobody ever answers for this page. */
static bool make_silent(uint8_t *page)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register range = { .range = { (uintptr_t)page, PAGE },
                                     .mode = UFFDIO_REGISTER_MODE_MISSING };
    return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && madvise(page, PAGE, MADV_DONTNEED) == 0 &&
           ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

static _Noreturn void be_target(int pipe_fd, bool silent)
{
    struct told told = { .memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
    for (int i = 0; i < PAGES; i++)
        memset(told.memory + (size_t)i * PAGE, i + 1, PAGE);
    munmap(told.memory + (size_t)HOLE * PAGE, PAGE);
    told.silent = silent && make_silent(told.memory + (size_t)SILENT * PAGE);
    if (write(pipe_fd, &told, sizeof told) != sizeof told)
        _exit(1);
    for (;;)
        pause();
}

static pid_t start_target(bool silent, struct told *told)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = child_fork();
    if (pid == 0)
        be_target(fds[1], silent);
    assert_true(pid > 0);
    assert_int_equal(read(fds[0], told, sizeof *told), sizeof *told);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static void end_target(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static struct live_memory *open_live(pid_t pid)
{
    struct live_memory *live;
    struct error err;
    if (!live_memory_open(pid, 0, &live, &err))
        fail_msg("%s", err.what);
    return live;
}

/* Reads at once; what is mapped further up is known after a refresh. */
static void test_attach(void **state)
{
    (void)state;
    struct told told;
    struct error err;
    uint8_t byte;
    pid_t pid = start_target(false, &told);
    struct live_memory *live = live_memory_new();
    assert_non_null(live);
    if (!live_memory_attach(live, pid, 0, &err))
        fail_msg("%s", err.what);
    const struct memory *memory = live_memory_view(live);
    size_t known = memory->mapping_count;
    assert_true(known > 0);
    assert_true(memory_read(memory, (uintptr_t)told.memory, &byte, 1));
    assert_true(live_memory_refresh(live, &err));
    assert_true(memory->mapping_count >= known);
    assert_non_null(memory_mapping_at(memory, (uintptr_t)told.memory));
    live_memory_close(live);
    end_target(pid);
    live = live_memory_new();
    assert_non_null(live);
    assert_false(live_memory_attach(live, pid, 0, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    live_memory_close(live);
}

static void test_reads(void **state)
{
    (void)state;
    struct told told;
    pid_t pid = start_target(false, &told);
    struct live_memory *live = open_live(pid);
    const struct memory *memory = live_memory_view(live);
    uint8_t bytes[3 * PAGE];
    uint64_t at = (uintptr_t)told.memory;
    assert_non_null(memory_mapping_at(memory, at));
    assert_null(memory_mapping_at(memory, at + (uint64_t)HOLE * PAGE));
    assert_true(memory_read(memory, at + PAGE - 1, bytes, 2));
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[1], 2);
    /* across the hole: what is before it counts, what is behind does not */
    assert_false(memory_read(memory, at + (uint64_t)(HOLE - 1) * PAGE, bytes, sizeof bytes));
    assert_int_equal(bytes[PAGE - 1], HOLE);
    assert_int_equal(bytes[PAGE], 0);
    assert_int_equal(bytes[2 * PAGE], 0);
    assert_false(memory_read(memory, 0, bytes, 8));
    assert_false(memory_read(memory, UINT64_MAX - 3, bytes, 8));
    /* several at once */
    struct memory_piece pieces[3] = { { at, bytes, 4, 9 },
                                      { at + (uint64_t)HOLE * PAGE, bytes + 4, 4, 9 },
                                      { at + (uint64_t)(HOLE + 1) * PAGE, bytes + 8, 4, 9 } };
    memory->read(memory->user, pieces, 3);
    assert_int_equal(pieces[0].got, 4);
    assert_int_equal(pieces[1].got, 0);
    assert_int_equal(pieces[2].got, 4);
    assert_int_equal(bytes[8], HOLE + 2);
    assert_int_equal(live_memory_hangs(live), 0);
    live_memory_close(live);
    end_target(pid);
}

/* A target, and what was read of it. */
struct paged {
    pid_t pid;
    uint64_t at; /* its memory */
    struct live_memory *live;
    struct memory_pages pages;
};

static void paged_begin(struct paged *p, size_t pages_max)
{
    struct told told;
    p->pid = start_target(false, &told);
    p->at = (uintptr_t)told.memory;
    p->live = open_live(p->pid);
    memory_pages_init(&p->pages, live_memory_view(p->live), pages_max * PAGE);
}

static void paged_end(struct paged *p)
{
    memory_pages_done(&p->pages);
    live_memory_close(p->live);
    end_target(p->pid);
}

static void test_pages(void **state)
{
    (void)state;
    struct paged p;
    paged_begin(&p, 6);
    uint64_t at = p.at;
    memory_pages_want(&p.pages, at, (uint64_t)2 * PAGE);
    memory_pages_fetch(&p.pages);
    assert_int_equal(p.pages.reads, 2);
    assert_int_equal(memory_pages_u32(&p.pages, at + PAGE - 2), 0x02020101);
    assert_int_equal(p.pages.reads, 2);
    assert_int_equal(memory_pages_u8(&p.pages, at + (uint64_t)HOLE * PAGE), 0);
    assert_int_equal(memory_pages_u64(&p.pages, UINT64_MAX - 3), 0);
    for (int i = 0; i < PAGES; i++)
        memory_pages_u8(&p.pages, at + (uint64_t)i * PAGE);
    assert_true(p.pages.count <= 6); /* the ceiling holds */
    memory_pages_drop(&p.pages);
    memory_pages_want(&p.pages, at + (uint64_t)(PAGES - 1) * PAGE, 1);
    assert_int_equal(memory_pages_u8(&p.pages, at + (uint64_t)(PAGES - 1) * PAGE), PAGES);
    uint64_t reads = p.pages.reads;
    memory_pages_fetch(&p.pages); /* it was read meanwhile */
    assert_int_equal(p.pages.reads, reads);
    paged_end(&p);
}

/* More pages than the table has room for at first, most of which are not there. */
static void test_many_pages(void **state)
{
    (void)state;
    struct paged p;
    paged_begin(&p, 4096);
    uint64_t at = p.at;
    memory_pages_want(&p.pages, at, (uint64_t)PAGES * PAGE);
    memory_pages_want(&p.pages, 0, (uint64_t)1000 * PAGE);
    memory_pages_fetch(&p.pages);
    assert_int_equal(p.pages.reads, PAGES + 1000);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(memory_pages_u64(&p.pages, i * PAGE), 0);
    for (int i = 0; i < PAGES; i++)
        assert_int_equal(memory_pages_u8(&p.pages, at + (uint64_t)i * PAGE), i == HOLE ? 0 : i + 1);
    assert_int_equal(p.pages.reads, PAGES + 1000);
    paged_end(&p);
}

/* Who looks again mostly looks at the same. */
static void test_pages_again(void **state)
{
    (void)state;
    struct paged p;
    paged_begin(&p, 64);
    uint64_t at = p.at, far = at + (uint64_t)(PAGES - 1) * PAGE;
    assert_int_equal(memory_pages_u8(&p.pages, at), 1);
    assert_int_equal(memory_pages_u8(&p.pages, far), PAGES);
    memory_pages_drop(&p.pages);
    uint64_t reads = p.pages.reads;
    assert_int_equal(memory_pages_u8(&p.pages, far), PAGES);
    assert_int_equal(p.pages.reads, reads + 2); /* without neighbours, which nobody asked for */
    assert_int_equal(memory_pages_u8(&p.pages, at), 1);
    assert_int_equal(p.pages.reads, reads + 2);
    memory_pages_drop(&p.pages);
    memory_pages_drop(&p.pages); /* nothing was asked for in between */
    assert_int_equal(memory_pages_u8(&p.pages, at), 1);
    assert_int_equal(p.pages.count, 2);
    paged_end(&p);
}

/* The first byte leads to page 2, the first four of that to page 4; what page 0 holds is no pointer. */
static struct memory_path path_from(uint64_t at)
{
    struct memory_path path = { .start = at };
    uint8_t second = memory_path_add(
        &path, (struct memory_step){ 0, STEP_BACK, 0, UINT64_C(0) - (2 * (uint64_t)PAGE + 8) });
    memory_path_add(&path, (struct memory_step){ second, STEP_RVA, 0, at + 4 * (uint64_t)PAGE - 0x03030303 });
    memory_path_add_pointer(&path, 0, 0);
    return path;
}

static void test_path(void **state)
{
    (void)state;
    struct paged p;
    paged_begin(&p, 64);
    struct memory_path path = path_from(p.at);
    uint8_t byte;
    memory_pages_follow(&p.pages, 0, &path);
    assert_int_equal(p.pages.reads, 3);
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(memory_pages_read_since(&p.pages, 0, p.at + i * PAGE, &byte, 1), i % 2 == 0);
    assert_int_equal(memory_pages_u8(&p.pages, p.at + 4 * (uint64_t)PAGE), 5);
    assert_int_equal(p.pages.reads, 3);
    memory_pages_follow(&p.pages, 0, &path); /* what is at hand stays as it is */
    assert_int_equal(p.pages.count, 3);
    memory_pages_u8(&p.pages, p.at + 8 * (uint64_t)PAGE);
    uint64_t since = p.pages.reads;
    memory_pages_follow(&p.pages, since, &path); /* unless it is too old */
    assert_int_equal(p.pages.reads, since + 3);
    for (uint64_t i = 0; i < 6; i += 2)
        assert_true(memory_pages_read_since(&p.pages, since, p.at + i * PAGE, &byte, 1));
    paged_end(&p);
}

static void test_page_that_never_arrives(void **state)
{
    (void)state;
    struct told told;
    pid_t pid = start_target(true, &told);
    if (!told.silent) {
        end_target(pid);
        print_message("no userfaultfd here\n");
        skip();
    }
    struct live_memory *live = open_live(pid);
    const struct memory *memory = live_memory_view(live);
    uint8_t bytes[PAGES];
    struct memory_piece pieces[PAGES];
    for (int i = 0; i < PAGES; i++)
        pieces[i] = (struct memory_piece){ (uintptr_t)told.memory + (uint64_t)i * PAGE, bytes + i, 1, 0 };
    uint64_t start_ns = clock_monotonic_ns();
    struct memory_pages pages;
    memory_pages_init(&pages, memory, (size_t)64 * PAGE);
    struct memory_path path = { .start = (uintptr_t)told.memory + (uint64_t)SILENT * PAGE };
    memory_pages_follow(&pages, 0, &path);
    assert_int_equal(live_memory_hangs(live), 1);
    assert_int_equal(pages.reads, 0);
    memory_pages_done(&pages);
    memory->read(memory->user, pieces, PAGES);
    uint64_t took_ms = (clock_monotonic_ns() - start_ns) / 1000000;
    for (int i = 0; i < PAGES; i++)
        assert_int_equal(pieces[i].got, i != HOLE && i != SILENT);
    assert_int_equal(live_memory_hangs(live), 3); /* in the batch, and to find out which one it is */
    assert_true(took_ms < 10 * LIVE_MEMORY_DEADLINE_MS);
    for (int i = 0; i < 2; i++) /* patience ends */
        assert_false(memory_read(memory, (uintptr_t)told.memory + (uint64_t)SILENT * PAGE, bytes, 1));
    assert_false(memory_read(memory, (uintptr_t)told.memory, bytes, 1));
    live_memory_try_again(live);
    assert_true(memory_read(memory, (uintptr_t)told.memory, bytes, 1));
    assert_false(memory_read(memory, (uintptr_t)told.memory + (uint64_t)SILENT * PAGE, bytes, 1));
    assert_false(memory_read(memory, (uintptr_t)told.memory, bytes, 1)); /* once is enough */
    live_memory_close(live);
    end_target(pid);
}

static void test_target_that_ends(void **state)
{
    (void)state;
    struct told told;
    pid_t pid = start_target(false, &told);
    struct live_memory *live = open_live(pid), *other;
    struct error err;
    uint8_t byte;
    end_target(pid);
    assert_false(memory_read(live_memory_view(live), (uintptr_t)told.memory, &byte, 1));
    assert_false(live_memory_refresh(live, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    live_memory_close(live);
    assert_false(live_memory_open(pid, 0, &other, &err));
    assert_int_equal(err.kind, ERROR_TARGET);
    pid = start_target(false, &told);
    assert_false(live_memory_open(pid, 1, &other, &err)); /* another process had that number then */
    assert_int_equal(err.kind, ERROR_TARGET);
    end_target(pid);
}

static int shared_word = 0x5eed;

static void check_word(const struct memory *memory)
{
    int word = 0;
    assert_true(memory_read(memory, (uintptr_t)&shared_word, &word, sizeof word));
    assert_int_equal(word, shared_word);
}

/* The others go on behind the first thread, by whose id memory is read, and behind the next one. */
static void test_threads_that_end(void **state)
{
    (void)state;
    struct error err;
    struct waning w = waning_start();
    struct live_memory *live = open_live(w.pid);
    check_word(live_memory_view(live));
    for (int i = 0; i < WANING_THREADS - 1; i++) {
        waning_next(&w, i);
        check_word(live_memory_view(live));
        assert_true(live_memory_refresh(live, &err));
        struct live_memory *other = open_live(w.pid);
        check_word(live_memory_view(other));
        live_memory_close(other);
    }
    live_memory_close(live);
    waning_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_attach),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_many_pages),
        cmocka_unit_test(test_pages_again),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_page_that_never_arrives),
        cmocka_unit_test(test_target_that_ends),
        cmocka_unit_test(test_threads_that_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
