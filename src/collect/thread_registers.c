#include "collect/thread_registers.h"

#include <string.h>

#include "base/own.h"

enum { STACK_SANE_BYTES = 1 << 30 /* a thread's base further up is not above its stack */ };

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

size_t thread_registers_stack_bytes(const struct thread_registers *r, uint64_t main_stack_end)
{
    uint64_t sp = r->general.sp, end = r->thread_base;
    if (end <= sp || end - sp > STACK_SANE_BYTES)
        end = main_stack_end;
    uint64_t size = end > sp && end - sp <= STACK_SANE_BYTES ? end - sp : THREAD_STACK_BYTES;
    return size < THREAD_STACK_BYTES_MAX ? (size_t)size : THREAD_STACK_BYTES_MAX;
}
