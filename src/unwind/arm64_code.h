/*
 * arm64_code: what the machine code around an address says of the frame there.
 *
 * Specified in Arm's Architecture Reference Manual, chapter C6; what a signal handler returns to in the Linux
 * source, arch/arm64/kernel/vdso/sigreturn.S, and its frame in arch/arm64/include/uapi/asm/sigcontext.h.
 */
#ifndef CLRPERF_UNWIND_ARM64_CODE_H
#define CLRPERF_UNWIND_ARM64_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

enum { ARM64_SIGNAL_RETURN_BYTES = 8 };

/* Whether `before`, the bytes up to an address, ends in a call instruction: then it is a return address. */
bool arm64_is_after_call(struct span before);
/* Whether `before`, which ends at `ip`, ends in a call that names what it calls. */
bool arm64_is_direct_call(struct span before, uint64_t ip, uint64_t *out_target);
/* Whether `before` ends in a system call. */
bool arm64_is_after_syscall(struct span before);
/* Whether `code`, which follows a system call, asks at once whether it gave 0: clone() does. */
bool arm64_is_thread_birth(struct span code);
/* Whether `code` begins with the system call exit of what is in W0: so musl's clone(). */
bool arm64_is_thread_exit(struct span code);
/* How far the first entry of a procedure linkage table has moved SP at an address. */
uint32_t arm64_bare_depth(struct span before, struct span code);
/* Whether `code` is what a signal handler returns to. */
bool arm64_is_signal_return(struct span code);

#endif
