#include "collect/thread_wait.h"

#include <inttypes.h>

#include "base/own.h"
#include "base/units.h"

enum { NS_PER_S = 1000000000, NO_ARGUMENT = 0xff, FUTEX_COMMAND = 0x7f };

enum timeout_form {
    TIMEOUT_NONE,
    TIMEOUT_MS,       /* an int of milliseconds; negative: for ever */
    TIMEOUT_TIMESPEC, /* a pointer, NULL: for ever; relative */
    TIMEOUT_UNTIL,    /* a pointer, NULL: for ever; a time of day, or relative */
};

/* System calls in which threads wait. */
struct waiting_call {
    const char *words;
    uint16_t number;
    uint8_t fd;      /* the argument that is a descriptor, or NO_ARGUMENT */
    uint8_t timeout; /* the argument that limits it, or NO_ARGUMENT */
    uint8_t form;    /* enum timeout_form */
};

static const struct waiting_call calls[] = {
    { "read", 0, 0, NO_ARGUMENT, 0 },
    { "write", 1, 0, NO_ARGUMENT, 0 },
    { "poll", 7, NO_ARGUMENT, 2, TIMEOUT_MS },
    { "ioctl", 16, 0, NO_ARGUMENT, 0 },
    { "read", 17, 0, NO_ARGUMENT, 0 },
    { "write", 18, 0, NO_ARGUMENT, 0 },
    { "read", 19, 0, NO_ARGUMENT, 0 },
    { "write", 20, 0, NO_ARGUMENT, 0 },
    { "select", 23, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "sched_yield", 24, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "pause", 34, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "sleep", 35, NO_ARGUMENT, 0, TIMEOUT_TIMESPEC },
    { "connect", 42, 0, NO_ARGUMENT, 0 },
    { "accept", 43, 0, NO_ARGUMENT, 0 },
    { "send", 44, 0, NO_ARGUMENT, 0 },
    { "receive", 45, 0, NO_ARGUMENT, 0 },
    { "send", 46, 0, NO_ARGUMENT, 0 },
    { "receive", 47, 0, NO_ARGUMENT, 0 },
    { "wait for a child process", 61, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "semaphore (System V)", 65, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "file lock", 72, 0, NO_ARGUMENT, 0 },
    { "file lock", 73, 0, NO_ARGUMENT, 0 },
    { "fsync", 74, 0, NO_ARGUMENT, 0 },
    { "fsync", 75, 0, NO_ARGUMENT, 0 },
    { "signal", 128, NO_ARGUMENT, 2, TIMEOUT_TIMESPEC },
    { "signal", 130, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "sleep", 230, NO_ARGUMENT, 2, TIMEOUT_UNTIL },
    { "epoll", 232, 0, 3, TIMEOUT_MS },
    { "wait for a child process", 247, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "open", 257, NO_ARGUMENT, NO_ARGUMENT, 0 },
    { "select", 270, NO_ARGUMENT, 4, TIMEOUT_TIMESPEC },
    { "poll", 271, NO_ARGUMENT, 2, TIMEOUT_TIMESPEC },
    { "epoll", 281, 0, 3, TIMEOUT_MS },
    { "accept", 288, 0, NO_ARGUMENT, 0 },
    { "read", 295, 0, NO_ARGUMENT, 0 },
    { "receive", 299, 0, NO_ARGUMENT, 0 },
    { "io_uring", 426, 0, NO_ARGUMENT, 0 },
    { "epoll", 441, 0, 3, TIMEOUT_TIMESPEC },
};

enum { CALL_POLL = 7, CALL_FUTEX = 202, CALL_RESTART = 219, CALL_PPOLL = 271, CALL_FUTEX_WAITV = 449 };

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
    if (count == 0 || !memory_read(sources->memory, r->arguments[0], &fd, sizeof fd))
        return;
    buffer_string(out, " of ");
    append_fd(sources, (int)fd, out);
    if (count > 1)
        buffer_format(out, " and %" PRIu64 " more", count - 1);
}

static bool read_time(const struct thread_wait_sources *sources, uint64_t addr, uint64_t *out_ns)
{
    uint8_t bytes[16];
    if (!addr || !memory_read(sources->memory, addr, bytes, sizeof bytes))
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
        buffer_string(out, ", for a limited time");
}

/*
 * After a stop (SIGSTOP, a debugger) the kernel goes on with restart_syscall(); what was begun once is told
 * by the program: mov $number, %eax; syscall.
 */
static int64_t restarted_call(const struct thread_wait_sources *sources, const struct thread_registers *r)
{
    uint8_t code[7];
    if (!memory_read(sources->memory, r->general.values[UNWIND_RIP] - sizeof code, code, sizeof code) ||
        code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
        return r->syscall;
    return load_u32le(code + 1);
}

void thread_wait_describe(const struct thread_registers *registers, const struct thread_wait_sources *sources,
                          struct buffer *out)
{
    struct thread_registers copy = *registers, *r = &copy;
    if (r->syscall < 0)
        return;
    if (r->syscall == CALL_RESTART)
        r->syscall = restarted_call(sources, r);
    if (r->syscall == CALL_FUTEX) {
        describe_futex(r, out);
        return;
    }
    if (r->syscall == CALL_FUTEX_WAITV) {
        buffer_format(out, "%" PRIu64 " futexes", r->arguments[1]);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        const struct waiting_call *call = &calls[i];
        if (call->number != r->syscall)
            continue;
        buffer_string(out, call->words);
        if (call->number == CALL_POLL || call->number == CALL_PPOLL)
            append_polled(sources, r, out);
        if (call->fd != NO_ARGUMENT) {
            buffer_string(out, " of ");
            append_fd(sources, (int)r->arguments[call->fd], out);
        }
        append_timeout(sources, call, r, out);
        return;
    }
    buffer_format(out, "system call %" PRId64, r->syscall);
}
