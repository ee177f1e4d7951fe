/*
 * machine: what the unwinder has to know of a processor and the calls on it.
 *
 * All that differs is here, so that one unwinder serves a process or a core dump of any of them. x86-64:
 * System V ABI, AMD64 supplement; arm64: Arm's "Procedure Call Standard for the Arm 64-bit Architecture".
 */
#ifndef CLRPERF_UNWIND_MACHINE_H
#define CLRPERF_UNWIND_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/frame_rule.h"
#include "read/unwind_format.h"

enum {
    MACHINE_REGISTERS_MAX = 33,
    MACHINE_SIGNAL_RETURN_BYTES = 9, /* the longest code that is_signal_return() knows */
    MACHINE_FAULT_BYTES = 7,         /* what is_fault_entry() looks at */
    MACHINE_CODE_BYTES = 16,         /* before and behind an address, that the functions below like to see */
};

struct machine {
    uint16_t elf; /* as in an ELF header */
    const struct unwind_format *managed;
    /* The kernel's registers of a sample (asm/perf_regs.h): which to ask for, and the DWARF number of each.
     */
    uint64_t perf_mask;
    const uint8_t *perf_numbers;
    uint8_t register_count;   /* in a sample; also of DWARF numbers */
    uint8_t ip, sp, fp, link; /* DWARF numbers; link is used when has_link */
    bool has_link;            /* a call leaves the return address in a register, else on top of the stack */
    bool follows_flow;        /* code without tables can be followed to its return (x64_flow) */
    bool record_ends_frame;   /* the caller's frame begins above the saved frame pointer and return address */
    uint64_t address_mask;    /* of a return address; other bits may hold a signature */
    bool (*is_after_call)(struct span before);
    /* Whether `before`, which ends at `ip`, ends in a call that names what it calls. */
    bool (*is_direct_call)(struct span before, uint64_t ip, uint64_t *out_target);
    bool (*is_after_syscall)(struct span before);
    /* Whether a system call that made a thread, in which it gave 0, goes on so. */
    bool (*is_thread_birth)(struct span code);
    /* Whether code that was called returns to where its thread ends with its result. */
    bool (*is_thread_exit)(struct span code);
    /* How far above SP the return address is, or SP was, in code without unwind information: linkage tables,
     * thunks. */
    uint32_t (*bare_depth)(struct span before, struct span code);
    /* Each of these may be NULL: tables tell, or nothing has to be repaired. */
    bool (*epilog)(struct span code, uint64_t addr, uint64_t begin, uint64_t end, struct frame_rule *out);
    bool (*is_tail_jump)(struct span code, uint64_t addr, uint64_t begin, uint64_t end);
    bool (*is_signal_return)(struct span code);
    struct frame_rule signal_rule; /* there */
    /* Whether `code`, a function's start, is that of Native AOT into which a fault leads; how far below the
     * CFA that tables tell of it the fault's IP, SP and frame pointer are kept there. */
    bool (*is_fault_entry)(struct span code);
    int32_t fault_record;
    int32_t signal_link_off; /* from SP, of the link register that the interrupted code had */
};

extern const struct machine machine_x86_64, machine_arm64;

/* NULL when an ELF file's machine is neither. */
const struct machine *machine_of_elf(uint16_t elf);
/* By the name that uname(2) has for it; NULL when it is neither. */
const struct machine *machine_of_name(const char *name);
/* The one we were built for. */
const struct machine *machine_own(void);

/* The registers of a thread. */
struct unwind_registers {
    uint64_t ip, sp, fp;
    uint64_t link;                            /* where there is one */
    uint64_t numbered[MACHINE_REGISTERS_MAX]; /* by DWARF number; [0] is where a function's result is */
};

/* Takes them in the order of DWARF numbers. */
void machine_set_registers(const struct machine *machine, struct unwind_registers *registers);

/* The registers that `perf_mask` asks for, out of a sample that was asked for `mask`. False when they are not
 * all there. */
bool machine_registers_of_perf(const struct machine *machine, uint64_t mask, struct span user_regs,
                               struct unwind_registers *out);

#endif
