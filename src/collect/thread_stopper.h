/*
 * thread_stopper: stops threads of a process for a moment each and takes their registers and their stacks.
 *
 * By PTRACE_SEIZE and PTRACE_INTERRUPT (ptrace(2)): no signal is sent, nobody who watches the process sees it
 * stop, and a process that is stopped already stays so. A thread stops when it gets a CPU, which is what
 * takes long: many are asked at a time, and those that stopped are held until the last has, for at most
 * 0.15 ms, so that they take no CPU from the others. A child process of ours does it and reads the stacks;
 * when we or it die, the kernel lets the threads go on. Where a page of a stack never arrives the child is
 * killed. A system call that was under way is restarted by the kernel;
 * epoll_wait() and a few others return EINTR, as after any debugger (signal(7)). Belongs to one thread.
 * x86-64 and arm64.
 */
#ifndef CLRPERF_COLLECT_THREAD_STOPPER_H
#define CLRPERF_COLLECT_THREAD_STOPPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cursor.h"
#include "base/error.h"
#include "collect/thread_registers.h"

enum {
    THREAD_STOP_DEADLINE_MS = 1000,
    THREAD_TRACER_WAIT_MS = 1000, /* for who traces a thread to let go of it, for whoever waits for that */
};

/* What was taken of one thread. */
struct thread_stop {
    pid_t tid; /* the caller's */
    struct thread_registers registers;
    struct span stack; /* from the stack pointer up; the stopper's, until it is asked again */
    /*
     * So long the thread stood still for us, or less. Where our child may not run at once (SCHED_FIFO), from
     * the moment it was asked to stop: that is more, by what it and we waited for a CPU.
     */
    uint64_t stopped_ns;
    /*
     * Kind ERROR_NONE, or why it was not taken. ERROR_TARGET: it is gone; ERROR_PERMISSION: no rights, or a
     * debugger has it; ERROR_LIMIT: it did not stop in time, as one that waits for a disk.
     */
    struct error problem;
    pid_t tracer; /* who traced it when it was refused, and may let go of it; 0: nobody, or it is not known */
};

struct thread_stopper;

/* Its child gets ready meanwhile. Fails when the system gives no memory. */
bool thread_stopper_open(struct thread_stopper **out, struct error *err);
/* No more threads are taken: its child ends while others work, so that nobody waits for that at the close. */
void thread_stopper_finish(struct thread_stopper *stopper);
/* NULL is fine. */
void thread_stopper_close(struct thread_stopper *stopper);
/*
 * Takes some of `stops`, from the first on, and returns how many: at least one, if there is one.
 * `main_stack_end`: where the stack of the main thread ends; other threads have their base there.
 */
size_t thread_stopper_take(struct thread_stopper *stopper, uint64_t main_stack_end, struct thread_stop *stops,
                           size_t count);

#endif
