/* Stops threads of a child process, and describes what they wait for. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "child.h"
#include "collect/thread_stopper.h"
#include "collect/thread_wait.h"

enum { MARK = 0x5a5a1234 };

/* A child that waits for ever, with a mark on its stack. */
static pid_t start_child(void)
{
    pid_t child = child_fork();
    if (child == 0) {
        volatile uint64_t mark = MARK;
        while (mark)
            pause();
        _exit(0);
    }
    return child;
}

static char state_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    AUTO_STREAM FILE *file = fopen(path, "re");
    char *end = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
    return end ? end[2] : 0;
}

static void wait_state(pid_t pid, char wanted)
{
    for (int i = 0; i < 10000 && state_of(pid) != wanted; i++)
        usleep(1000);
    assert_int_equal(state_of(pid), wanted);
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static bool has_mark(const struct thread_stop *stop)
{
    for (size_t at = 0; at + 8 <= stop->stack.size; at += 8)
        if (load_u64le(stop->stack.data + at) == MARK)
            return true;
    return false;
}

static bool take(struct thread_stopper *stopper, pid_t tid, struct thread_stop *out)
{
    *out = (struct thread_stop){ .tid = tid };
    assert_int_equal(thread_stopper_take(stopper, 0, out, 1), 1);
    if (out->problem.kind == ERROR_PERMISSION)
        skip(); /* a container without ptrace */
    return out->problem.kind == ERROR_NONE;
}

static void test_take(void **state)
{
    (void)state;
#ifndef __x86_64__
    skip();
#endif
    struct thread_stopper *stopper;
    struct thread_stop snapshot;
    pid_t child = start_child();
    assert_true(thread_stopper_open(&stopper, NULL));
    for (int i = 0; i < 20; i++) {
        wait_state(child, 'S'); /* where it was interrupted, it is on its way back to the system call */
        assert_true(take(stopper, child, &snapshot));
        assert_int_equal(snapshot.registers.syscall, 34); /* pause */
        assert_true(snapshot.registers.general.sp != 0);
        assert_true(has_mark(&snapshot));
        assert_true(snapshot.stopped_ns > 0);
    }
    wait_state(child, 'S'); /* it goes on waiting */
    kill(child, SIGSTOP);
    wait_state(child, 'T');
    assert_true(take(stopper, child, &snapshot));
    assert_true(has_mark(&snapshot));
    wait_state(child, 'T'); /* it stays stopped */
    kill(child, SIGCONT);
    wait_state(child, 'S');
    thread_stopper_close(stopper);
    end_child(child);
}

/* Who traces it already is told: a debugger lets nobody else in. */
static void test_traced(void **state)
{
    (void)state;
    struct thread_stopper *stopper;
    struct thread_stop stop;
    char wanted[64];
    pid_t child = start_child();
    if (ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0) {
        end_child(child);
        skip();
    }
    assert_true(thread_stopper_open(&stopper, NULL));
    stop = (struct thread_stop){ .tid = child };
    assert_int_equal(thread_stopper_take(stopper, 0, &stop, 1), 1);
    snprintf(wanted, sizeof wanted, "thread %d is traced by process %d", (int)child, (int)getpid());
    assert_int_equal(stop.problem.kind, ERROR_PERMISSION);
    assert_non_null(strstr(stop.problem.what, wanted));
    thread_stopper_close(stopper);
    end_child(child);
}

static void test_gone(void **state)
{
    (void)state;
    struct thread_stopper *stopper;
    struct thread_stop stop;
    pid_t child = start_child();
    end_child(child);
    assert_true(thread_stopper_open(&stopper, NULL));
    assert_false(take(stopper, child, &stop));
    assert_int_equal(stop.problem.kind, ERROR_TARGET);
    thread_stopper_close(stopper);
    thread_stopper_close(NULL);
}

enum { THREADS = 150, ONE_IS_GONE = 70 };

/* Far up a stack that takes some pages. `user`: counts who has its mark, in memory that parent and child
 * share. */
static void *wait_with_mark(void *user)
{
    volatile uint64_t words[2048] = { 0 };
    atomic_int *marked = user;
    words[ARRAY_LEN(words) - 1] = MARK;
    atomic_fetch_add(marked, 1);
    while (words[ARRAY_LEN(words) - 1])
        pause();
    return NULL;
}

static void start_threads(int count, atomic_int *marked)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_with_mark, marked);
    }
}

static atomic_int *share_count(void)
{
    void *memory = mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

/* Once each has its mark. */
static size_t list_threads(pid_t child, const atomic_int *marked, struct thread_stop *stops)
{
    size_t count = 0;
    char path[64];
    for (int tries = 0; tries < 60000 && atomic_load(marked) < THREADS; tries++)
        usleep(1000);
    assert_int_equal(atomic_load(marked), THREADS);
    snprintf(path, sizeof path, "/proc/%d/task", (int)child);
    DIR *dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir)) && count < THREADS;)
        if (entry->d_name[0] != '.')
            stops[count++] = (struct thread_stop){ .tid = (pid_t)strtol(entry->d_name, NULL, 10) };
    closedir(dir);
    return count;
}

/* More than are asked at a time, and than a batch has; whichever stops first, each gets what is its own. */
static void test_many(void **state)
{
    (void)state;
    static struct thread_stop stops[THREADS + 1];
    struct thread_stopper *stopper;
    atomic_int *marked = share_count();
    pid_t child = child_fork();
    if (child == 0) {
        start_threads(THREADS - 1, marked);
        wait_with_mark(marked);
    }
    assert_int_equal(list_threads(child, marked, stops), THREADS);
    for (size_t i = THREADS; i > ONE_IS_GONE; i--)
        stops[i] = stops[i - 1];
    stops[ONE_IS_GONE].tid = INT32_MAX;
    assert_true(thread_stopper_open(&stopper, NULL));
    for (size_t done = 0, end; done <= THREADS; done = end) {
        end = done + thread_stopper_take(stopper, 0, stops + done, THREADS + 1 - done);
        assert_true(end > done);
        if (stops[done].problem.kind == ERROR_PERMISSION)
            skip();
        for (size_t i = done; i < end; i++) {
            assert_int_equal(stops[i].problem.kind, i == ONE_IS_GONE ? ERROR_TARGET : ERROR_NONE);
            assert_int_equal(has_mark(&stops[i]), i != ONE_IS_GONE);
            for (size_t k = done; k < i; k++)
                if (i != ONE_IS_GONE && k != ONE_IS_GONE)
                    assert_true(stops[i].registers.general.sp != stops[k].registers.general.sp);
        }
    }
    for (size_t i = 0; i <= THREADS; i++)
        if (i != ONE_IS_GONE)
            wait_state(stops[i].tid, 'S'); /* all are let go */
    thread_stopper_close(stopper);
    end_child(child);
    munmap(marked, sizeof *marked);
}

/*
 * A thread that started a process by vfork() waits until that executes something else, and does not stop
 * before. `user`: where the thread says who it is, in memory that parent and child share.
 */
static void *wait_for_vforked(void *user)
{
    atomic_store((atomic_int *)user, gettid());
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    return NULL;
}

/* Those that stopped do not stand still until the one that does not is given up. */
static void test_one_never_stops(void **state)
{
    (void)state;
    struct thread_stopper *stopper;
    struct thread_stop stops[2];
    atomic_int *stuck = share_count(), *marked = share_count();
    pid_t child = child_fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_for_vforked, stuck);
        wait_with_mark(marked);
    }
    for (int tries = 0; tries < 10000 && !(atomic_load(stuck) && atomic_load(marked)); tries++)
        usleep(1000);
    wait_state(child, 'S');
    wait_state(atomic_load(stuck), 'D');
    stops[0] = (struct thread_stop){ .tid = atomic_load(stuck) };
    stops[1] = (struct thread_stop){ .tid = child };
    assert_true(thread_stopper_open(&stopper, NULL));
    size_t count = thread_stopper_take(stopper, 0, stops, 2);
    if (stops[0].problem.kind == ERROR_PERMISSION)
        skip();
    assert_int_equal(count, 2);
    assert_int_equal(stops[0].problem.kind, ERROR_LIMIT);
    assert_int_equal(stops[1].problem.kind, ERROR_NONE);
    assert_true(has_mark(&stops[1]));
    assert_true(stops[1].stopped_ns < THREAD_STOP_DEADLINE_MS * UINT64_C(1000000) / 2);
    wait_state(child, 'S');
    thread_stopper_close(stopper);
    end_child(child);
    munmap(marked, sizeof *marked);
    munmap(stuck, sizeof *stuck);
}

static void test_registers(void **state)
{
    (void)state;
    uint8_t regs[THREAD_USER_REGS_BYTES_MAX];
    struct thread_registers r;
    for (size_t i = 0; i < sizeof regs; i++)
        regs[i] = i % 8 ? 0 : (uint8_t)(i / 8);
    assert_true(thread_registers_read(&machine_x86_64, span_of(regs, 27 * 8), &r));
    assert_int_equal(r.general.sp, 19);
    assert_int_equal(r.general.fp, 4);
    assert_int_equal(r.general.ip, 16);
    assert_int_equal(r.syscall, 15);
    assert_int_equal(r.arguments[0], 14);
    assert_int_equal(r.thread_base, 21);
    assert_false(thread_registers_read(&machine_x86_64, span_of(regs, 27 * 8 - 1), &r));
    assert_true(thread_registers_read(&machine_arm64, span_of(regs, 34 * 8), &r));
    assert_int_equal(r.general.sp, 31);
    assert_int_equal(r.general.fp, 29);
    assert_int_equal(r.general.link, 30);
    assert_int_equal(r.general.ip, 32);
    assert_int_equal(r.syscall, 8);
    assert_int_equal(r.arguments[5], 5);
    assert_false(thread_registers_read(&machine_arm64, span_of(regs, 34 * 8 - 1), &r));
}

/* How much stack there is: up to the thread's base, the main thread's end, or as much as may be. */
static const struct {
    uint64_t sp, base, main_end;
    size_t bytes;
} sizes[] = {
    { 0x10000, 0x12000, 0, 0x2000 },
    { 0x10000, 0, 0x11000, 0x1000 },
    { 0x10000, 0x100, 0x11000, 0x1000 },
    { 0x10000, 0, 0, THREAD_STACK_BYTES },
    { 0x10000, UINT64_MAX, 0x100, THREAD_STACK_BYTES },
    { 0x10000, 0x20000000, 0, THREAD_STACK_BYTES_MAX },
};

static void test_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct thread_registers r = { .thread_base = sizes[i].base, .general.sp = sizes[i].sp };
        assert_int_equal(thread_registers_stack_bytes(&r, sizes[i].main_end), sizes[i].bytes);
    }
}

/* 0x1000: 1.5 s; 0x2000: a poll of descriptor 7; 0x3000: mov $230, %eax; syscall; 0x4000: svc #0. */
static void read_made_up(void *user, struct memory_piece *pieces, size_t count)
{
    static const uint8_t time[16] = { 1, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x65, 0xcd, 0x1d };
    static const uint8_t polled[8] = { 7 }, code[7] = { 0xb8, 0xe6, 0, 0, 0, 0x0f, 0x05 },
                         svc[4] = { 0x01, 0, 0, 0xd4 };
    (void)user;
    for (size_t i = 0; i < count; i++) {
        struct memory_piece *p = &pieces[i];
        const uint8_t *from = p->addr == 0x1000   ? time
                              : p->addr == 0x2000 ? polled
                              : p->addr == 0x3000 ? code
                              : p->addr == 0x4000 ? svc
                                                  : NULL;
        size_t size = from == time     ? sizeof time
                      : from == polled ? sizeof polled
                      : from == svc    ? sizeof svc
                                       : sizeof code;
        p->got = from ? p->size : 0;
        if (from) {
            memset(p->into, 0, p->size);
            memcpy(p->into, from, size);
        }
    }
}

static bool name_fd(void *user, int fd, struct buffer *out)
{
    (void)user;
    if (fd != 7)
        return false;
    buffer_string(out, "/dev/seven");
    return true;
}

static const struct {
    int64_t syscall;
    uint64_t arguments[6];
    const char *words;
    uint64_t arm64; /* where the thread is; 0: on x86-64 */
} waits[] = {
    { -1, { 0 }, "" },
    { 202, { 0x7f0010, 0x189, 0, 0 }, "futex 0x7f0010" },
    { 202, { 0x7f0010, 0x89, 0, 0x1000 }, "futex 0x7f0010, for a limited time" },
    { 202, { 0x7f0010, 0x81, 0, 0x1000 }, "futex 0x7f0010" }, /* a wake: that is no time */
    { 0, { 7 }, "read of fd 7 (/dev/seven)" },
    { 0, { 8 }, "read of fd 8" },
    { 232, { 7, 0, 0, UINT32_MAX }, "epoll of fd 7 (/dev/seven)" },
    { 232, { 7, 0, 0, 250 }, "epoll of fd 7 (/dev/seven), at most 250 ms" },
    { 35, { 0x1000 }, "sleep, at most 1.50 s" },
    { 35, { 0x9000 }, "sleep" },
    { 230, { 1, 0, 0x1000 }, "sleep, at most 1.50 s" },
    { 230, { 1, 1, 0x1000 }, "sleep" }, /* until a time of day */
    { 7, { 0x2000, 3, UINT32_MAX }, "poll of fd 7 (/dev/seven) and 2 more" },
    { 7, { 0x9000, 3, UINT32_MAX }, "poll" },
    { 219, { 1, 0, 0x1000 }, "sleep, at most 1.50 s" }, /* what the code before it began */
    { 9999, { 0 }, "system call 9999" },
    { 98, { 0x7f0010, 0x189, 0, 0 }, "futex 0x7f0010", 0x4000 },
    { 22, { 7, 0, 0, 250 }, "epoll of fd 7 (/dev/seven), at most 250 ms", 0x4000 },
    { 73, { 0x2000, 1, 0 }, "poll of fd 7 (/dev/seven)", 0x4000 },
    { 22, { 7, 0, 0, 250 }, "", 0x3000 }, /* it is not at a system call */
    { 22, { 7, 0, 0, 250 }, "", 0x9000 },
};

static void test_waits(void **state)
{
    (void)state;
    struct memory memory = { .read = read_made_up };
    struct memory_pages pages;
    struct thread_wait_sources sources = { &pages, name_fd, NULL };
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        memory_pages_init(&pages, &memory, 1 << 20);
        struct thread_registers r = { .syscall = waits[i].syscall };
        struct buffer text;
        memcpy(r.arguments, waits[i].arguments, sizeof r.arguments);
        r.machine = waits[i].arm64 ? &machine_arm64 : &machine_x86_64;
        r.general.ip = waits[i].arm64 ? waits[i].arm64 : 0x3007;
        buffer_init(&text, 1024);
        thread_wait_want_code(&r, &pages);
        memory_pages_fetch(&pages);
        thread_wait_want_arguments(&r, &sources);
        memory_pages_fetch(&pages);
        uint64_t reads = pages.reads;
        thread_wait_describe(&r, &sources, &text);
        assert_int_equal(pages.reads, reads); /* all was read ahead */
        buffer_u8(&text, 0);
        assert_string_equal((const char *)text.data, waits[i].words);
        buffer_done(&text);
        memory_pages_done(&pages);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_traced),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_one_never_stops),
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
