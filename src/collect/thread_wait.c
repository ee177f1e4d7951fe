#include "collect/thread_wait.h"

#include <inttypes.h>

#include "base/own.h"
#include "base/units.h"

enum {
    NS_PER_S = 1000000000,
    NO_ARGUMENT = 0xff,
    FUTEX_COMMAND = 0x7f,
    CALL_CODE_BYTES = 7, /* of the instructions that begin a system call */
    TIMESPEC_BYTES = 16,
};

/* Machines number system calls in their own way (asm/unistd.h). */
enum { X86_64, ARM64, MACHINES };

#define NO_CALL UINT16_MAX

enum timeout_form {
    TIMEOUT_NONE,
    TIMEOUT_MS,       /* an int of milliseconds; negative: for ever */
    TIMEOUT_TIMESPEC, /* a pointer, NULL: for ever; relative */
    TIMEOUT_UNTIL,    /* a pointer, NULL: for ever; a time of day, or relative */
};

/* System calls in which threads wait, or are seen at work. */
struct waiting_call {
    const char *words;
    uint16_t numbers[MACHINES];
    uint8_t fd;      /* the argument that is a descriptor, or NO_ARGUMENT */
    uint8_t timeout; /* the argument that limits it, or NO_ARGUMENT */
    uint8_t form;    /* enum timeout_form */
    bool polls;      /* its arguments are a list of descriptors and their number */
};

static const struct waiting_call calls[] = {
    { "read", { 0, 63 }, 0, NO_ARGUMENT, 0 },
    { "write", { 1, 64 }, 0, NO_ARGUMENT, 0 },
    { "open", { 2, NO_CALL }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "close", { 3, 57 }, 0, NO_ARGUMENT, 0 },
    { "poll", { 7, NO_CALL }, NO_ARGUMENT, 2, TIMEOUT_MS, .polls = true },
    { "mmap", { 9, 222 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "mprotect", { 10, 226 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "munmap", { 11, 215 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "ioctl", { 16, 29 }, 0, NO_ARGUMENT, 0 },
    { "read", { 17, 67 }, 0, NO_ARGUMENT, 0 },
    { "write", { 18, 68 }, 0, NO_ARGUMENT, 0 },
    { "read", { 19, 65 }, 0, NO_ARGUMENT, 0 },
    { "write", { 20, 66 }, 0, NO_ARGUMENT, 0 },
    { "select", { 23, NO_CALL }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "sched_yield", { 24, 124 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "mremap", { 25, 216 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "madvise", { 28, 233 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "pause", { 34, NO_CALL }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "sleep", { 35, 101 }, NO_ARGUMENT, 0, TIMEOUT_TIMESPEC },
    { "connect", { 42, 203 }, 0, NO_ARGUMENT, 0 },
    { "accept", { 43, 202 }, 0, NO_ARGUMENT, 0 },
    { "send", { 44, 206 }, 0, NO_ARGUMENT, 0 },
    { "receive", { 45, 207 }, 0, NO_ARGUMENT, 0 },
    { "send", { 46, 211 }, 0, NO_ARGUMENT, 0 },
    { "receive", { 47, 212 }, 0, NO_ARGUMENT, 0 },
    { "wait for a child process", { 61, 260 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "semaphore (System V)", { 65, 193 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "file lock", { 72, 25 }, 0, NO_ARGUMENT, 0 },
    { "file lock", { 73, 32 }, 0, NO_ARGUMENT, 0 },
    { "fsync", { 74, 82 }, 0, NO_ARGUMENT, 0 },
    { "fsync", { 75, 83 }, 0, NO_ARGUMENT, 0 },
    { "signal", { 128, 137 }, NO_ARGUMENT, 2, TIMEOUT_TIMESPEC },
    { "signal", { 130, 133 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "clock_gettime", { 228, 113 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "sleep", { 230, 115 }, NO_ARGUMENT, 2, TIMEOUT_UNTIL },
    { "epoll", { 232, NO_CALL }, 0, 3, TIMEOUT_MS },
    { "wait for a child process", { 247, 95 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "open", { 257, 56 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "select", { 270, 72 }, NO_ARGUMENT, 4, TIMEOUT_TIMESPEC },
    { "poll", { 271, 73 }, NO_ARGUMENT, 2, TIMEOUT_TIMESPEC, .polls = true },
    { "epoll", { 281, 22 }, 0, 3, TIMEOUT_MS },
    { "accept", { 288, 242 }, 0, NO_ARGUMENT, 0 },
    { "read", { 295, 69 }, 0, NO_ARGUMENT, 0 },
    { "receive", { 299, 243 }, 0, NO_ARGUMENT, 0 },
    { "membarrier", { 324, 283 }, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "io_uring", { 426, 426 }, 0, NO_ARGUMENT, 0 },
    { "epoll", { 441, 441 }, 0, 3, TIMEOUT_TIMESPEC },
};

enum { CALL_FUTEX, CALL_RESTART, CALL_FUTEX_WAITV, SPECIAL_CALLS };

static const uint16_t special_calls[SPECIAL_CALLS][MACHINES] = {
    [CALL_FUTEX] = { 202, 98 },
    [CALL_RESTART] = { 219, 128 },
    [CALL_FUTEX_WAITV] = { 449, 449 },
};

static void append_fd(const struct thread_wait_sources *sources, int fd, struct buffer *out)
{
    struct buffer name;
    buffer_init(&name, 4096);
    buffer_format(out, "fd %d", fd);
    if (sources->fd && sources->fd(sources->user, fd, &name)) {
        buffer_string(out, " (");
        buffer_append(out, name.data, name.size);
        buffer_string(out, ")");
    }
    buffer_done(&name);
}

/* The descriptors that poll() watches; the first tells what it is about. */
static void append_polled(const struct thread_wait_sources *sources, const struct thread_registers *r,
                          struct buffer *out)
{
    uint32_t fd;
    uint64_t count = r->arguments[1];
    if (count == 0 || !memory_pages_read(sources->pages, r->arguments[0], &fd, sizeof fd))
        return;
    buffer_string(out, " of ");
    append_fd(sources, (int)fd, out);
    if (count > 1)
        buffer_format(out, " and %" PRIu64 " more", count - 1);
}

static bool read_time(const struct thread_wait_sources *sources, uint64_t addr, uint64_t *out_ns)
{
    uint8_t bytes[TIMESPEC_BYTES];
    if (!addr || !memory_pages_read(sources->pages, addr, bytes, sizeof bytes))
        return false;
    uint64_t seconds = load_u64le(bytes), ns = load_u64le(bytes + 8);
    if (ns >= NS_PER_S || seconds > UINT64_MAX / NS_PER_S - 1)
        return false;
    *out_ns = seconds * NS_PER_S + ns;
    return true;
}

static void append_timeout(const struct thread_wait_sources *sources, const struct waiting_call *call,
                           const struct thread_registers *r, struct buffer *out)
{
    uint64_t ns, value = call->timeout == NO_ARGUMENT ? 0 : r->arguments[call->timeout];
    bool absolute = call->form == TIMEOUT_UNTIL && r->arguments[1] & 1; /* TIMER_ABSTIME */
    if (call->form == TIMEOUT_MS && (int32_t)value >= 0)
        buffer_format(out, ", at most %s", units_duration((uint64_t)(int32_t)value * 1000000).text);
    else if ((call->form == TIMEOUT_TIMESPEC || call->form == TIMEOUT_UNTIL) && !absolute &&
             read_time(sources, value, &ns))
        buffer_format(out, ", at most %s", units_duration(ns).text);
}

static void describe_futex(const struct thread_registers *r, struct buffer *out)
{
    enum { WAIT = 0, WAIT_BITSET = 9, LOCK_PI = 6, LOCK_PI2 = 13 };
    uint64_t command = r->arguments[1] & FUTEX_COMMAND;
    bool waits = command == WAIT || command == WAIT_BITSET || command == LOCK_PI || command == LOCK_PI2;
    buffer_format(out, "futex 0x%" PRIx64, r->arguments[0]);
    if (waits && r->arguments[3])
        buffer_string(out, THREAD_WAIT_LIMITED);
}

/*
 * After a stop (SIGSTOP, a debugger) the kernel goes on with restart_syscall(); what was begun once is told
 * by the program: mov $number, %eax; syscall.
 */
static int64_t restarted_call(const struct thread_wait_sources *sources, const struct thread_registers *r)
{
    uint8_t code[CALL_CODE_BYTES];
    if (!memory_pages_read(sources->pages, r->general.ip - sizeof code, code, sizeof code) ||
        code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
        return r->syscall;
    return load_u32le(code + 1);
}

/* An arm64 thread that was stopped in a system call is about to make it once more. */
static bool is_at_call(const struct thread_wait_sources *sources, const struct thread_registers *r)
{
    uint8_t code[4];
    return memory_pages_read(sources->pages, r->general.ip, code, sizeof code) &&
           load_u32le(code) == 0xd4000001;
}

/* The system call it waits in, or -1. */
static int64_t call_of(const struct thread_wait_sources *sources, const struct thread_registers *r)
{
    if (r->machine == &machine_arm64)
        return is_at_call(sources, r) ? r->syscall : -1;
    return r->syscall == special_calls[CALL_RESTART][X86_64] ? restarted_call(sources, r) : r->syscall;
}

static unsigned machine_of(const struct thread_registers *r)
{
    return r->machine == &machine_arm64 ? ARM64 : X86_64;
}

/* NULL: none that is listed. */
static const struct waiting_call *find_call(unsigned machine, int64_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (calls[i].numbers[machine] == number)
            return &calls[i];
    return NULL;
}

/* Small numbers are no addresses. */
static void want(struct memory_pages *pages, uint64_t addr, uint64_t size)
{
    if (addr >= MEMORY_PAGE_BYTES)
        memory_pages_want(pages, addr, size);
}

void thread_wait_want_code(const struct thread_registers *r, struct memory_pages *pages)
{
    if (r->syscall >= 0 && (machine_of(r) == ARM64 || r->syscall == special_calls[CALL_RESTART][X86_64]))
        want(pages, r->general.ip - CALL_CODE_BYTES, 2 * CALL_CODE_BYTES);
}

void thread_wait_want_arguments(const struct thread_registers *r, const struct thread_wait_sources *sources)
{
    int64_t number = call_of(sources, r);
    const struct waiting_call *call = number < 0 ? NULL : find_call(machine_of(r), number);
    if (call && call->polls)
        want(sources->pages, r->arguments[0], sizeof(uint32_t));
    if (call && (call->form == TIMEOUT_TIMESPEC || call->form == TIMEOUT_UNTIL))
        want(sources->pages, r->arguments[call->timeout], TIMESPEC_BYTES);
}

void thread_wait_describe(const struct thread_registers *r, const struct thread_wait_sources *sources,
                          struct buffer *out)
{
    unsigned machine = machine_of(r);
    int64_t number = call_of(sources, r);
    if (number < 0)
        return;
    if (number == special_calls[CALL_FUTEX][machine]) {
        describe_futex(r, out);
        return;
    }
    if (number == special_calls[CALL_FUTEX_WAITV][machine]) {
        buffer_format(out, "%" PRIu64 " futexes", r->arguments[1]);
        return;
    }
    const struct waiting_call *call = find_call(machine, number);
    if (!call) {
        buffer_format(out, "system call %" PRId64, number);
        return;
    }
    buffer_string(out, call->words);
    if (call->polls)
        append_polled(sources, r, out);
    if (call->fd != NO_ARGUMENT) {
        buffer_string(out, " of ");
        append_fd(sources, (int)r->arguments[call->fd], out);
    }
    append_timeout(sources, call, r, out);
}
