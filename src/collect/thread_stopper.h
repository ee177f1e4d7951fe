/*
 * thread_stopper: stops one thread of a process for a moment and takes its registers and its stack.
 *
 * By PTRACE_SEIZE and PTRACE_INTERRUPT (ptrace(2)): no signal is sent, nobody who watches the process sees it
 * stop, and a process that is stopped already stays so. A child process of ours does it and reads the stack;
 * when we or it die, the kernel lets the thread go on. Where a page of the stack never arrives the child is
 * killed. A system call that was under way is restarted by the kernel; epoll_wait() and a few others return
 * EINTR, as after any debugger (signal(7)). Belongs to one thread. x86-64 and arm64.
 */
#ifndef CLRPERF_COLLECT_THREAD_STOPPER_H
#define CLRPERF_COLLECT_THREAD_STOPPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cursor.h"
#include "base/error.h"
#include "unwind/unwinder.h"

enum {
    THREAD_STACK_BYTES = 256 << 10, /* taken where nothing tells the stack's end */
    THREAD_STACK_BYTES_MAX = 8 << 20,
    THREAD_STOP_DEADLINE_MS = 1000,
};

/* Where a thread was, out of its registers. */
struct thread_registers {
    const struct machine *machine;
    struct unwind_registers general;
    uint64_t thread_base; /* above a thread's stack where the C library made that; 0: not known */
    /* The number of the system call it is in, or -1. arm64: of the one it is in if it is in one. */
    int64_t syscall;
    uint64_t arguments[6];
};

enum { THREAD_USER_REGS_BYTES_MAX = 34 * 8 };

/* Takes struct user_regs_struct of a machine (sys/user.h), also found in core dumps. False when it is short.
 */
bool thread_registers_read(const struct machine *machine, struct span user_regs,
                           struct thread_registers *out);

/*
 * How many bytes of stack there are above the stack pointer, THREAD_STACK_BYTES when nothing tells. At most
 * THREAD_STACK_BYTES_MAX.
 */
size_t thread_registers_stack_bytes(const struct thread_registers *registers, uint64_t main_stack_end);

struct thread_snapshot {
    struct thread_registers registers;
    struct span stack; /* from the stack pointer up; the stopper's, until the next is taken */
    /*
     * So long the thread stood still for us. Where our child may not run at once (SCHED_FIFO), from the
     * moment it was asked to stop: that is more, by what it and we waited for a CPU.
     */
    uint64_t stopped_ns;
};

struct thread_stopper;

bool thread_stopper_open(pid_t pid, struct thread_stopper **out, struct error *err);
/* No more threads are taken: its child ends while others work, so that nobody waits for that at the close. */
void thread_stopper_finish(struct thread_stopper *stopper);
/* NULL is fine. */
void thread_stopper_close(struct thread_stopper *stopper);
/*
 * `main_stack_end`: where the stack of the main thread ends; other threads have their base there.
 * ERROR_TARGET: the thread is gone; ERROR_PERMISSION: no rights, or a debugger has it; ERROR_LIMIT: it did
 * not stop in time, as one that waits for a disk.
 */
bool thread_stopper_take(struct thread_stopper *stopper, pid_t tid, uint64_t main_stack_end,
                         struct thread_snapshot *out, struct error *err);

#endif
