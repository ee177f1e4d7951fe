#include "collect/thread_stopper.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/doorbell.h"
#include "base/mem.h"
#include "base/own.h"
#include "collect/helper_process.h"
#include "collect/proc_file.h"
#include "collect/traced_thread.h"

enum {
    AT_A_TIME = 16,     /* threads that are asked to stop before the first of them has */
    AT_A_TIME_LATE = 4, /* the same, where others may run in our place while those stand still */
    BATCH_THREADS = 64,
    BATCH_STACK_BYTES = 2 * AT_A_TIME * THREAD_STACK_BYTES_MAX,
    PAGE_BYTES = 4096,
    READ_PIECES = 128,
    WARM_BYTES = 64 << 10,
    WARM_FIRST_BYTES = 128 << 10, /* what some thirty threads need */
    LOOKS_US = 100,               /* one batch follows another */
};

/* So long what stopped is not let go while others are expected to stop. */
#define HOLD_NS UINT64_C(150000)

enum stop_outcome { STOP_NOT_ASKED, STOP_ASKED, STOP_OK, STOP_REFUSED, STOP_GONE };

/* One thread, as child and parent share it. */
struct stop_result {
    pid_t tid;
    enum stop_outcome outcome;
    int os_error;
    bool held;         /* it stands still, */
    int signal_number; /* and goes on with this signal */
    uint64_t asked_ns;
    uint64_t still_ns; /* from then on, at most */
    uint64_t stopped_ns;
    uint8_t user_regs[THREAD_USER_REGS_BYTES_MAX];
    uint64_t thread_base; /* where those do not have it */
    size_t stack_at, stack_bytes;
};

struct stop_exchange {
    struct doorbell asked, answered;
    uint64_t main_stack_end;
    size_t count;
    struct stop_result results[BATCH_THREADS];
    uint8_t stacks[BATCH_STACK_BYTES];
};

struct thread_stopper {
    pid_t child;    /* 0: none runs */
    uint32_t asked; /* of this child */
    bool lost;      /* a child cannot be killed: the exchange is left to it */
    struct stop_exchange *exchange;
};

static struct thread_registers registers_of(const struct stop_result *r)
{
    struct thread_registers registers;
    thread_registers_read(machine_own(), span_of(r->user_regs, sizeof r->user_regs), &registers);
    if (machine_own()->has_link)
        registers.thread_base = r->thread_base;
    return registers;
}

/* The child. */

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

/* A set of registers (elf.h); false when the kernel has it not. */
static bool get_registers(pid_t tid, unsigned set, void *into, size_t size)
{
    struct iovec room = { into, size };
    return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &room) == 0;
}

/* A batch under way. */
struct batch {
    struct stop_exchange *x;
    size_t started, open; /* results that were begun; of these, how many are waited for */
    size_t held;          /* results whose thread stands still */
    uint64_t held_ns;     /* since the first of these was taken */
    size_t used, warm;    /* bytes of `stacks`: that are taken, and that need not be brought in any more */
    uint64_t quiet_ns;    /* when none that was asked stood still, last */
    bool at_once;         /* we run as soon as we can */
};

/* No page of ours is to be brought in while a thread waits. */
static void warm(struct batch *b, size_t bytes)
{
    size_t end = b->used + bytes;
    if (end > BATCH_STACK_BYTES)
        end = BATCH_STACK_BYTES;
    if (b->warm < b->used) /* while threads were held none were */
        b->warm = b->used;
    if (end > b->warm) {
        mem_bring_in(b->x->stacks + b->warm, end - b->warm);
        memset(b->x->stacks + b->warm, 0, end - b->warm);
        b->warm = end;
    }
}

static void refuse(struct stop_result *r)
{
    r->outcome = errno == ESRCH ? STOP_GONE : STOP_REFUSED;
    r->os_error = errno;
}

static void ask_next(struct batch *b)
{
    struct stop_result *r = &b->x->results[b->started++];
    /* no PTRACE_O_EXITKILL: the thread goes on when we are killed */
    if (ptrace(PTRACE_SEIZE, r->tid, NULL, NULL) != 0) {
        refuse(r);
        return;
    }
    r->asked_ns = clock_monotonic_ns();
    if (ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL) != 0) {
        r->outcome = STOP_GONE;
        return;
    }
    r->outcome = STOP_ASKED;
    b->open++;
}

/* The thread stands still: takes what is wanted. */
static void take_stopped(struct batch *b, struct stop_result *r)
{
    if (!get_registers(r->tid, NT_PRSTATUS, r->user_regs, sizeof r->user_regs)) {
        refuse(r);
        return;
    }
    if (machine_own()->has_link)
        get_registers(r->tid, NT_ARM_TLS, &r->thread_base, sizeof r->thread_base);
    struct thread_registers registers = registers_of(r);
    r->stack_at = b->used;
    r->stack_bytes = read_stack(r->tid, registers.general.sp, b->x->stacks + b->used,
                                thread_registers_stack_bytes(&registers, b->x->main_stack_end));
    r->outcome = STOP_OK;
}

static struct stop_result *asked_of(const struct batch *b, pid_t tid)
{
    for (size_t i = 0; i < b->started; i++)
        if (b->x->results[i].tid == tid && b->x->results[i].outcome == STOP_ASKED)
            return &b->x->results[i];
    return NULL;
}

static void release_held(struct batch *b)
{
    for (size_t i = 0; i < b->started && b->held; i++) {
        struct stop_result *r = &b->x->results[i];
        if (!r->held)
            continue;
        traced_thread_release(r->tid, r->signal_number);
        r->stopped_ns = clock_monotonic_ns() - r->still_ns;
        r->held = false;
        b->held--;
    }
}

/* Of a thread that stopped; it waits while it is blocked. */
static sigset_t stop_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

/* How long those that are held may stand still before they are let go. */
static uint64_t hold_left_ns(const struct batch *b)
{
    uint64_t since_ns = clock_monotonic_ns() - b->held_ns;
    return b->held && b->at_once && since_ns < HOLD_NS ? HOLD_NS - since_ns : 0;
}

/* Waits until a thread stops, or that is over. */
static void wait_while_held(struct batch *b)
{
    sigset_t child = stop_signal();
    struct timespec left = { .tv_nsec = (long)hold_left_ns(b) };
    sigtimedwait(&child, NULL, &left); /* it may be of one that was taken already */
    b->quiet_ns = clock_monotonic_ns();
}

/* Whichever stops first. The time from which on it may have stood still is in b->quiet_ns, at most. */
static pid_t wait_any(struct batch *b, int *status)
{
    pid_t tid;
    while ((tid = waitpid(-1, status, __WALL | WNOHANG)) == 0 && hold_left_ns(b))
        wait_while_held(b);
    if (tid != 0)
        return tid;
    release_held(b);
    b->quiet_ns = clock_monotonic_ns();
    tid = waitpid(-1, status, __WALL);
    if (b->at_once) /* else it may have stood still for a while before we got a CPU */
        b->quiet_ns = clock_monotonic_ns();
    return tid;
}

/* It takes no CPU from those that are asked and wait for one. */
static void hold(struct batch *b, struct stop_result *r, int signal_number)
{
    r->held = true;
    r->signal_number = signal_number;
    if (b->held++ == 0)
        b->held_ns = clock_monotonic_ns();
}

/* None is ours any more. */
static void lose_all(struct batch *b)
{
    for (size_t i = 0; i < b->started; i++)
        if (b->x->results[i].outcome == STOP_ASKED)
            b->x->results[i].outcome = STOP_GONE;
    b->open = 0;
}

static void take_any(struct batch *b)
{
    int status = 0, signal_number = 0;
    pid_t tid = wait_any(b, &status);
    struct stop_result *r = tid > 0 ? asked_of(b, tid) : NULL;
    bool stopped = tid > 0 && traced_thread_is_stopped(status, &signal_number);
    if (tid <= 0)
        lose_all(b);
    if (stopped && !r)
        traced_thread_release(tid, signal_number);
    if (!r)
        return;
    r->still_ns = r->asked_ns > b->quiet_ns ? r->asked_ns : b->quiet_ns;
    r->outcome = STOP_GONE;
    if (stopped) {
        take_stopped(b, r);
        hold(b, r, signal_number);
    }
    b->used += (r->stack_bytes + 15) / 16 * 16;
    b->open--;
}

static bool has_room(const struct batch *b)
{
    return b->open < (b->at_once ? AT_A_TIME : AT_A_TIME_LATE) && b->started < b->x->count &&
           b->used + (b->open + 1) * THREAD_STACK_BYTES_MAX <= BATCH_STACK_BYTES;
}

static void take_batch(struct batch *b)
{
    b->started = b->open = b->used = 0;
    while (has_room(b) || b->open) {
        while (has_room(b))
            ask_next(b);
        if (b->open)
            take_any(b);
        if (!hold_left_ns(b))
            release_held(b);
        if (!b->held)
            warm(b, WARM_BYTES);
    }
    release_held(b);
}

static void serve(void *user)
{
    struct stop_exchange *x = user;
    struct batch batch = { .x = x };
    sigset_t child = stop_signal();
    sigprocmask(SIG_BLOCK, &child, NULL);
    /* where allowed: a thread that stands still must not wait for us to get a CPU */
    batch.at_once = sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }) == 0;
    warm(&batch, WARM_FIRST_BYTES);
    unsigned look_us = doorbell_look_us(LOOKS_US);
    for (uint32_t heard = 0; doorbell_wait(&x->asked, heard, look_us, -1); heard++) {
        take_batch(&batch);
        doorbell_ring(&x->answered);
    }
}

/* The parent. */

static bool start(struct thread_stopper *s)
{
    if (s->lost) {
        errno = EBUSY;
        return false;
    }
    s->asked = 0;
    s->exchange->asked = s->exchange->answered = (struct doorbell){ 0 };
    if (!helper_process_share(serve, s->exchange, &s->child))
        s->child = 0;
    return s->child > 0;
}

static void stop(struct thread_stopper *s)
{
    if (s->child <= 0)
        return;
    s->lost = !helper_process_end(s->child);
    s->child = 0;
}

bool thread_stopper_open(struct thread_stopper **out, struct error *err)
{
    void *memory = mmap(NULL, sizeof(struct stop_exchange), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return error_system(err, errno, "cannot share memory with a child process");
    struct thread_stopper *s = mem_alloc(1, sizeof *s);
    *s = (struct thread_stopper){ .exchange = memory };
    start(s); /* or when it is needed */
    *out = s;
    return true;
}

void thread_stopper_finish(struct thread_stopper *s)
{
    if (s->child > 0)
        doorbell_end(&s->exchange->asked);
}

void thread_stopper_close(struct thread_stopper *s)
{
    if (!s)
        return;
    stop(s);
    if (!s->lost)
        munmap(s->exchange, sizeof *s->exchange);
    free(s);
}

static bool ask(struct thread_stopper *s)
{
    struct stop_exchange *x = s->exchange;
    doorbell_ring(&x->asked);
    return doorbell_wait(&x->answered, s->asked++, doorbell_look_us(LOOKS_US), THREAD_STOP_DEADLINE_MS);
}

/* Who traces a thread; 0: nobody, or it is not known. */
static pid_t tracer_of(pid_t tid)
{
    struct proc_status status;
    return proc_file_status(tid, &status, NULL) ? status.tracer : 0;
}

/* Only one can trace a thread. */
static void explain_tracer(const struct thread_stop *stop, struct error *err)
{
    error_set(err, ERROR_PERMISSION, "thread %d is traced by process %d, and by one at a time only",
              (int)stop->tid, (int)stop->tracer);
    error_hint(err, "let a debugger or strace detach from it first");
}

static void explain(const struct stop_result *r, struct thread_stop *out)
{
    struct error *err = &out->problem;
    switch (r->outcome) {
    case STOP_GONE:
        error_set(err, ERROR_TARGET, "thread %d is gone", (int)r->tid);
        return;
    case STOP_REFUSED:
        out->tracer = r->os_error == EPERM ? tracer_of(r->tid) : 0;
        if (out->tracer) {
            explain_tracer(out, err);
            return;
        }
        error_system(err, r->os_error, "cannot look at thread %d", (int)r->tid);
        if (r->os_error == EPERM)
            error_hint(err, "run as the same user with kernel.yama.ptrace_scope = 0, or with sudo");
        return;
    default:
        error_set(err, ERROR_LIMIT, "thread %d did not stop within %d ms: it waits in the kernel",
                  (int)r->tid, THREAD_STOP_DEADLINE_MS);
    }
}

static void hand_out(const struct stop_exchange *x, const struct stop_result *r, struct thread_stop *out)
{
    *out = (struct thread_stop){ .tid = r->tid };
    if (r->outcome == STOP_OK) {
        out->registers = registers_of(r);
        out->stack = span_of(x->stacks + r->stack_at, r->stack_bytes);
        out->stopped_ns = r->stopped_ns;
    } else {
        explain(r, out);
    }
}

size_t thread_stopper_take(struct thread_stopper *s, uint64_t main_stack_end, struct thread_stop *stops,
                           size_t count)
{
    struct stop_exchange *x = s->exchange;
    x->main_stack_end = main_stack_end;
    x->count = count < BATCH_THREADS ? count : BATCH_THREADS;
    for (size_t i = 0; i < x->count; i++)
        x->results[i] = (struct stop_result){ .tid = stops[i].tid };
    bool started = s->child > 0 || start(s);
    int e = errno;
    if (started && !ask(s)) /* only its end lets go of threads that have not stopped */
        stop(s);
    size_t done = 0;
    do {
        hand_out(x, &x->results[done], &stops[done]);
        if (!started)
            error_system(&stops[done].problem, e, "cannot start a child process");
    } while (++done < x->count && (!started || x->results[done].outcome != STOP_NOT_ASKED));
    return done;
}
