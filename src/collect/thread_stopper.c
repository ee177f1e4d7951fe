#include "collect/thread_stopper.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/doorbell.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/helper_process.h"
#include "collect/traced_thread.h"

enum {
    PAGE_BYTES = 4096,
    READ_PIECES = 128,
    WARM_BYTES = 64 << 10,
    STACK_SANE_BYTES = 1 << 30, /* a thread's base further up is not above its stack */
    LOOKS_US = 100,             /* one thread follows another; each takes some tens of microseconds */
};

enum stop_outcome { STOP_OK, STOP_REFUSED, STOP_GONE, STOP_LATE };

/* What child and parent share. */
struct stop_exchange {
    struct doorbell asked, answered;
    pid_t tid;
    uint64_t main_stack_end;
    enum stop_outcome outcome;
    int os_error;
    bool at_once; /* the child runs as soon as it can */
    uint64_t stopped_ns;
    uint8_t user_regs[THREAD_USER_REGS_BYTES_MAX];
    uint64_t thread_base; /* where those do not have it */
    size_t stack_bytes;
    uint8_t stack[THREAD_STACK_BYTES_MAX];
};

struct thread_stopper {
    pid_t pid;
    pid_t child;    /* 0: none runs */
    int socket;     /* to the child, or -1 */
    uint32_t asked; /* of this child */
    struct stop_exchange *exchange;
};

/* struct user_regs_struct to DWARF's order; see sys/user.h and the x86-64 psABI, figure 3.36. */
static bool read_x86_64(struct span user_regs, struct thread_registers *out)
{
    static const uint8_t places[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };
    static const uint8_t arguments[] = { 14, 13, 12, 7, 9, 8 }; /* rdi rsi rdx r10 r8 r9 */
    enum { ORIG_RAX = 15, FS_BASE = 21, WORDS = 27 };
    if (user_regs.size < 8 * WORDS)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        out->general.numbered[i] = load_u64le(user_regs.data + 8 * places[i]);
    out->syscall = (int64_t)load_u64le(user_regs.data + 8 * ORIG_RAX);
    out->thread_base = load_u64le(user_regs.data + 8 * FS_BASE);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        out->arguments[i] = load_u64le(user_regs.data + 8 * arguments[i]);
    return true;
}

/* x0..x30, sp, pc, pstate. */
static bool read_arm64(struct span user_regs, struct thread_registers *out)
{
    enum { NUMBERED = 33, CALL_NUMBER = 8, WORDS = 34 };
    if (user_regs.size < 8 * WORDS)
        return false;
    for (size_t i = 0; i < NUMBERED; i++)
        out->general.numbered[i] = load_u64le(user_regs.data + 8 * i);
    out->syscall = (int32_t)out->general.numbered[CALL_NUMBER];
    memcpy(out->arguments, out->general.numbered, sizeof out->arguments);
    return true;
}

bool thread_registers_read(const struct machine *machine, struct span user_regs, struct thread_registers *out)
{
    struct thread_registers registers = { .machine = machine };
    bool arm64 = machine == &machine_arm64;
    if (!(arm64 ? read_arm64(user_regs, &registers) : read_x86_64(user_regs, &registers)))
        return false;
    machine_set_registers(machine, &registers.general);
    *out = registers;
    return true;
}

/* Those of the thread that stood still. */
static struct thread_registers registers_of(const struct stop_exchange *x)
{
    struct thread_registers registers;
    thread_registers_read(machine_own(), span_of(x->user_regs, sizeof x->user_regs), &registers);
    if (machine_own()->has_link)
        registers.thread_base = x->thread_base;
    return registers;
}

/* Page by page: what lies behind a page that is not there does not count. */
static size_t read_stack(pid_t tid, uint64_t from, uint8_t *into, size_t size)
{
    size_t done = 0;
    while (done < size) {
        struct iovec remote[READ_PIECES], local = { into + done, 0 };
        size_t count = 0;
        while (count < READ_PIECES && done + local.iov_len < size) {
            uint64_t at = from + done + local.iov_len;
            size_t part = PAGE_BYTES - (size_t)(at % PAGE_BYTES);
            if (part > size - done - local.iov_len)
                part = size - done - local.iov_len;
            remote[count++] = (struct iovec){ (void *)(uintptr_t)at, part };
            local.iov_len += part;
        }
        ssize_t got = process_vm_readv(tid, &local, 1, remote, count, 0);
        if (got <= 0)
            break;
        done += (size_t)got;
        if ((size_t)got < local.iov_len)
            break;
    }
    return done;
}

size_t thread_registers_stack_bytes(const struct thread_registers *r, uint64_t main_stack_end)
{
    uint64_t sp = r->general.sp, end = r->thread_base;
    if (end <= sp || end - sp > STACK_SANE_BYTES)
        end = main_stack_end;
    uint64_t size = end > sp && end - sp <= STACK_SANE_BYTES ? end - sp : THREAD_STACK_BYTES;
    return size < THREAD_STACK_BYTES_MAX ? (size_t)size : THREAD_STACK_BYTES_MAX;
}

/* A set of registers (elf.h); false when the kernel has it not. */
static bool get_registers(pid_t tid, unsigned set, void *into, size_t size)
{
    struct iovec room = { into, size };
    return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &room) == 0;
}

/* The thread stands still: takes what is wanted. */
static void take_stopped(struct stop_exchange *x)
{
    if (!get_registers(x->tid, NT_PRSTATUS, x->user_regs, sizeof x->user_regs)) {
        x->outcome = STOP_REFUSED;
        x->os_error = errno;
        return;
    }
    if (machine_own()->has_link)
        get_registers(x->tid, NT_ARM_TLS, &x->thread_base, sizeof x->thread_base);
    struct thread_registers registers = registers_of(x);
    x->stack_bytes = read_stack(x->tid, registers.general.sp, x->stack,
                                thread_registers_stack_bytes(&registers, x->main_stack_end));
    x->outcome = STOP_OK;
}

static void take(struct stop_exchange *x)
{
    int signal_number = 0;
    x->stack_bytes = 0;
    /* no PTRACE_O_EXITKILL: the thread goes on when we are killed */
    if (ptrace(PTRACE_SEIZE, x->tid, NULL, NULL) != 0) {
        x->outcome = errno == ESRCH ? STOP_GONE : STOP_REFUSED;
        x->os_error = errno;
        return;
    }
    uint64_t begin_ns = clock_monotonic_ns();
    if (ptrace(PTRACE_INTERRUPT, x->tid, NULL, NULL) != 0) {
        x->outcome = STOP_GONE;
        return;
    }
    if (!traced_thread_wait(x->tid, &signal_number)) {
        x->outcome = STOP_GONE;
        return;
    }
    if (x->at_once) /* else it may have stood still for a while before we got a CPU */
        begin_ns = clock_monotonic_ns();
    take_stopped(x);
    traced_thread_release(x->tid, signal_number);
    x->stopped_ns = clock_monotonic_ns() - begin_ns;
}

static _Noreturn void serve(int socket, struct stop_exchange *x)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    helper_process_begin(socket);
    /* where allowed: a thread that stands still must not wait for us to get a CPU */
    x->at_once = sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }) == 0;
    memset(x->stack, 0, WARM_BYTES); /* no page of ours is to be brought in while a thread waits */
    unsigned look_us = doorbell_look_us(LOOKS_US);
    for (uint32_t heard = 0; doorbell_wait(&x->asked, heard, socket, look_us, -1); heard++) {
        take(x);
        if (!doorbell_ring(&x->answered, socket, NULL))
            break;
    }
    _exit(0);
}

static bool start(struct thread_stopper *s)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    s->asked = 0;
    s->exchange->asked = s->exchange->answered = (struct doorbell){ 0 };
    pid_t child = fork();
    if (child == 0)
        serve(pair[1], s->exchange);
    close(pair[1]);
    if (child < 0) {
        close(pair[0]);
        return false;
    }
    s->child = child;
    s->socket = pair[0];
    return true;
}

static void stop(struct thread_stopper *s)
{
    if (s->child <= 0)
        return;
    helper_process_end(s->child);
    close(s->socket);
    s->child = 0;
    s->socket = -1;
}

bool thread_stopper_open(pid_t pid, struct thread_stopper **out, struct error *err)
{
    void *memory =
        mmap(NULL, sizeof(struct stop_exchange), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return error_system(err, errno, "cannot share memory with a child process");
    struct thread_stopper *s = mem_alloc(1, sizeof *s);
    *s = (struct thread_stopper){ .pid = pid, .socket = -1, .exchange = memory };
    *out = s;
    return true;
}

void thread_stopper_finish(struct thread_stopper *s)
{
    if (s->child > 0)
        shutdown(s->socket, SHUT_RDWR);
}

void thread_stopper_close(struct thread_stopper *s)
{
    if (!s)
        return;
    stop(s);
    munmap(s->exchange, sizeof *s->exchange);
    free(s);
}

static bool ask(struct thread_stopper *s)
{
    struct stop_exchange *x = s->exchange;
    return doorbell_ring(&x->asked, s->socket, NULL) &&
           doorbell_wait(&x->answered, s->asked++, s->socket, doorbell_look_us(LOOKS_US),
                         THREAD_STOP_DEADLINE_MS);
}

static bool refused(const struct thread_stopper *s, pid_t tid, struct error *err)
{
    const struct stop_exchange *x = s->exchange;
    if (x->outcome == STOP_GONE)
        return error_set(err, ERROR_TARGET, "thread %d is gone", (int)tid);
    if (x->outcome == STOP_LATE)
        return error_set(err, ERROR_LIMIT, "thread %d did not stop within %d ms: it waits in the kernel",
                         (int)tid, THREAD_STOP_DEADLINE_MS);
    error_system(err, x->os_error, "cannot look at thread %d", (int)tid);
    if (x->os_error == EPERM)
        error_hint(err, "run as the same user with kernel.yama.ptrace_scope = 0, or with sudo; "
                        "a debugger or strace on the process must let go of it first");
    return false;
}

bool thread_stopper_take(struct thread_stopper *s, pid_t tid, uint64_t main_stack_end,
                         struct thread_snapshot *out, struct error *err)
{
    struct stop_exchange *x = s->exchange;
    if (s->child <= 0 && !start(s))
        return error_system(err, errno, "cannot start a child process");
    x->tid = tid;
    x->main_stack_end = main_stack_end;
    x->outcome = STOP_LATE;
    x->os_error = 0;
    x->stopped_ns = 0;
    bool answered = ask(s);
    if (!answered) /* only its end lets go of a thread that has not stopped */
        stop(s);
    if (!answered || x->outcome != STOP_OK)
        return refused(s, tid, err);
    out->registers = registers_of(x);
    out->stack = span_of(x->stack, x->stack_bytes);
    out->stopped_ns = x->stopped_ns;
    return true;
}
