/*
 * thread_registers: where a thread was, out of the registers that the kernel keeps of one that stands still,
 * or that is in a core dump. x86-64 and arm64.
 */
#ifndef CLRPERF_COLLECT_THREAD_REGISTERS_H
#define CLRPERF_COLLECT_THREAD_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "unwind/unwinder.h"

enum {
    THREAD_STACK_BYTES = 256 << 10, /* taken where nothing tells the stack's end */
    THREAD_STACK_BYTES_MAX = 8 << 20,
};

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

#endif
