#include "unwind/machine.h"

#include <string.h>

#include "read/elf.h"
#include "unwind/arm64_code.h"
#include "unwind/x64_code.h"

enum { WORD_BYTES = 8 };

/*
 * A signal handler returns to where SP is at struct ucontext, in whose struct sigcontext the interrupted
 * registers are, in the order r8..r15 di si bp bx dx ax cx sp ip. The C libraries' tables, if any, say the
 * same.
 */
enum {
    X64_SIGNAL_REGISTERS = 8 + 8 + 24, /* from SP */
    X64_SIGNAL_FP = X64_SIGNAL_REGISTERS + 10 * WORD_BYTES,
    X64_SIGNAL_SP = X64_SIGNAL_REGISTERS + 15 * WORD_BYTES,
    X64_SIGNAL_IP = X64_SIGNAL_REGISTERS + 16 * WORD_BYTES,
};

/* ax bx cx dx si di bp sp ip r8..r15 */
static const uint8_t x86_64_numbers[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };

const struct machine machine_x86_64 = {
    .elf = ELF_X86_64,
    .managed = &unwind_format_x64,
    .perf_mask = 0xff01ff, /* without flags and segments */
    .perf_numbers = x86_64_numbers,
    .register_count = sizeof x86_64_numbers,
    .ip = 16,
    .sp = 7,
    .fp = 6,
    .follows_flow = true,
    .record_ends_frame = true,
    .address_mask = UINT64_MAX,
    .is_after_call = x64_is_after_call,
    .is_direct_call = x64_is_direct_call,
    .is_after_syscall = x64_is_after_syscall,
    .is_thread_birth = x64_is_thread_birth,
    .is_thread_exit = x64_is_thread_exit,
    .bare_depth = x64_bare_depth,
    .epilog = x64_epilog,
    .is_tail_jump = x64_is_tail_jump,
    .is_signal_return = x64_is_signal_return,
    .signal_rule = { .cfa = FRAME_CFA_DEREF,
                     .cfa_register = FRAME_REGISTER_SP,
                     .fp = FRAME_AT_SP,
                     .ra = FRAME_AT_SP,
                     .signal_frame = true,
                     .cfa_off = X64_SIGNAL_SP,
                     .fp_off = X64_SIGNAL_FP,
                     .ra_off = X64_SIGNAL_IP },
    .is_fault_entry = x64_is_fault_entry,
    .fault_record = X64_FAULT_RECORD,
};

/* x0..x30 sp pc */
static const uint8_t arm64_numbers[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                         17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };

/*
 * Behind struct siginfo the frame of a signal has struct ucontext, in whose struct sigcontext the interrupted
 * registers are. The kernel's own description of its frame was wrong up to 5.8, and is none since.
 */
enum {
    SIGNAL_REGISTERS = 128 + 176 + 8, /* from SP */
    SIGNAL_FP = SIGNAL_REGISTERS + 29 * WORD_BYTES,
    SIGNAL_LINK = SIGNAL_REGISTERS + 30 * WORD_BYTES,
    SIGNAL_SP = SIGNAL_REGISTERS + 31 * WORD_BYTES,
    SIGNAL_PC = SIGNAL_REGISTERS + 32 * WORD_BYTES,
};

const struct machine machine_arm64 = {
    .elf = ELF_AARCH64,
    .managed = &unwind_format_arm64,
    .perf_mask = (UINT64_C(1) << 33) - 1,
    .perf_numbers = arm64_numbers,
    .register_count = sizeof arm64_numbers,
    .ip = 32,
    .sp = 31,
    .fp = 29,
    .link = 30,
    .has_link = true,
    .address_mask = (UINT64_C(1) << 48) - 1, /* user memory, unless a program asks for more */
    .is_after_call = arm64_is_after_call,
    .is_direct_call = arm64_is_direct_call,
    .is_after_syscall = arm64_is_after_syscall,
    .is_thread_birth = arm64_is_thread_birth,
    .is_thread_exit = arm64_is_thread_exit,
    .bare_depth = arm64_bare_depth,
    .is_signal_return = arm64_is_signal_return,
    .signal_rule = { .cfa = FRAME_CFA_DEREF,
                     .cfa_register = FRAME_REGISTER_SP,
                     .fp = FRAME_AT_SP,
                     .ra = FRAME_AT_SP,
                     .signal_frame = true,
                     .cfa_off = SIGNAL_SP,
                     .fp_off = SIGNAL_FP,
                     .ra_off = SIGNAL_PC },
    .signal_link_off = SIGNAL_LINK,
};

const struct machine *machine_of_elf(uint16_t elf)
{
    return elf == ELF_X86_64 ? &machine_x86_64 : elf == ELF_AARCH64 ? &machine_arm64 : NULL;
}

const struct machine *machine_of_name(const char *name)
{
    return strcmp(name, "x86_64") == 0    ? &machine_x86_64
           : strcmp(name, "aarch64") == 0 ? &machine_arm64
                                          : NULL;
}

const struct machine *machine_own(void)
{
#ifdef __aarch64__
    return &machine_arm64;
#else
    return &machine_x86_64;
#endif
}

void machine_set_registers(const struct machine *machine, struct unwind_registers *registers)
{
    registers->ip = registers->numbered[machine->ip];
    registers->sp = registers->numbered[machine->sp];
    registers->fp = registers->numbered[machine->fp];
    registers->link = machine->has_link ? registers->numbered[machine->link] : 0;
}

/* A sample has them in the order of their bits. */
bool machine_registers_of_perf(const struct machine *machine, uint64_t mask, struct span user_regs,
                               struct unwind_registers *out)
{
    if ((mask & machine->perf_mask) != machine->perf_mask ||
        user_regs.size != (size_t)__builtin_popcountll(mask) * WORD_BYTES)
        return false;
    size_t at = 0, taken = 0;
    for (uint64_t left = mask; left; left &= left - 1, at += WORD_BYTES) {
        uint64_t lowest = left & -left;
        if (machine->perf_mask & lowest)
            out->numbered[machine->perf_numbers[taken++]] = load_u64le(user_regs.data + at);
    }
    machine_set_registers(machine, out);
    return true;
}
