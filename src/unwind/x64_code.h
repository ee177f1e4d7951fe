/*
 * x64_code: what the machine code around an address says of the frame there.
 *
 * Unwind tables describe prologs, not epilogs, and nothing describes the jumps that leave a function after
 * its frame is gone. The few instructions that compilers use for it are recognised here. Specified in Intel's
 * manual, volume 2; what the .NET JIT writes in dotnet/runtime, src/coreclr/jit/codegenxarch.cpp.
 */
#ifndef CLRPERF_UNWIND_X64_CODE_H
#define CLRPERF_UNWIND_X64_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/frame_rule.h"

enum { X64_CALL_BYTES = 7 /* the longest call instruction */ };

/* Whether `before`, the bytes up to an address, ends in a call instruction: then it is a return address. */
bool x64_is_after_call(struct span before);
/* Whether `before`, which ends at `ip`, ends in a call that names what it calls. */
bool x64_is_direct_call(struct span before, uint64_t ip, uint64_t *out_target);
/* Whether `before` ends in a system call. */
bool x64_is_after_syscall(struct span before);
/* Whether `code`, which follows a system call, soon clears RBP, as the first of a new thread's frames has it.
 */
bool x64_is_thread_birth(struct span code);
/* Whether `code` begins with the system call rt_sigreturn. */
bool x64_is_signal_return(struct span code);
/* Whether `code` begins with the system call exit of what is in EAX: so musl's clone() and that of glibc. */
bool x64_is_thread_exit(struct span code);
/*
 * The rule at `addr`, whose code is `code`, when what follows is an epilog of the function [begin, end): only
 * stack adjustments and pops up to a return or a jump out of the function.
 */
bool x64_epilog(struct span code, uint64_t addr, uint64_t begin, uint64_t end, struct frame_rule *out);
/* Whether the instruction at `addr` jumps out of the function [begin, end), or through a register or memory.
 */
bool x64_is_tail_jump(struct span code, uint64_t addr, uint64_t begin, uint64_t end);
/*
 * How far above SP the return address is in code without unwind information: at a jump of a procedure linkage
 * table, or in a thunk through which clang and gcc jump where it must not be guessed ahead (-mretpoline,
 * -mindirect-branch=thunk; Intel's "Retpoline: A Branch Target Injection Mitigation").
 */
uint32_t x64_bare_depth(struct span before, struct span code);
/*
 * Whether a function that starts with `code` is the runtime's OnHijackTripThread, to which the return address
 * of a thread is bent that shall stop. Its unwind information is off by the word it reserves for the real
 * one.
 */
bool x64_is_hijack(struct span code);
enum { X64_HIJACK_BYTES = 11 };
/*
 * Whether a function that starts with `code` is RhpThrowHwEx of Native AOT, into which a fault leads as if
 * the code there had called it. It aligns SP, of which its unwind information knows nothing, and pushes seven
 * words, then the frame pointer, SP and IP of the fault.
 */
bool x64_is_fault_entry(struct span code);
enum { X64_FAULT_BYTES = 7, X64_FAULT_RECORD = 88 /* below the CFA that is told: the last of them */ };

#endif
