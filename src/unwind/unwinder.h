/*
 * unwinder: from a thread's registers and the bytes of its stack to all of its callers.
 *
 * Native frames are left by the rules of their image's .eh_frame, precompiled and jitted .NET frames by their
 * UNWIND_INFO, stubs and linkage tables by the word at the stack pointer or the link register, native code
 * without tables by what it does until it returns (x86-64); frame pointers are the last resort. What tables
 * leave out is repaired: epilogs, tail jumps, return addresses that the runtime has bent, threads that are
 * being born. Where the bytes end early the thread's memory of a moment later is followed, if that leads to
 * the thread's first frame, else the kernel's own callchain continues. Every frame says how it was found.
 *
 * One unwinder serves one process and remembers rules by address. It belongs to one thread. x86-64 and arm64.
 */
#ifndef CLRPERF_UNWIND_UNWINDER_H
#define CLRPERF_UNWIND_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "unwind/unwind_space.h"

/* How a frame was found: what its callee told. */
enum unwind_found {
    UNWIND_FOUND_LEAF,          /* where the thread was */
    UNWIND_FOUND_CFI,           /* by .eh_frame */
    UNWIND_FOUND_UNWIND_INFO,   /* by UNWIND_INFO, or by the epilog under way */
    UNWIND_FOUND_STACK_TOP,     /* where a call had put its address: in a stub, or behind a tail jump */
    UNWIND_FOUND_FLOW,          /* by the code itself, of which no table tells */
    UNWIND_FOUND_FRAME_POINTER, /* callers may be missing below it */
    UNWIND_FOUND_KERNEL,        /* by the kernel's callchain: callers may be missing */
    UNWIND_FOUND_ROOT_TAIL, /* the kernel's chain ended where threads begin: as in stacks that are whole */
    UNWIND_FOUND_LATER,     /* in memory that was read after the sample: the thread can have gone on */
    UNWIND_FOUND_KINDS
};

struct unwind_frame {
    uint64_t ip;
    uint8_t found; /* enum unwind_found */
    /* ip is where it goes on, not what follows a call: the leaf, what a signal interrupted, what a signal's
     * handler or a coroutine returns to */
    bool exact;
    bool hijacked; /* ip is where the runtime's trap begins: the caller that it replaced is not known */
};

enum unwind_end {
    UNWIND_END_ROOT,   /* the thread's first frame: the stack is whole */
    UNWIND_END_CUT,    /* the stack bytes ended, and the kernel's chain led no further either */
    UNWIND_END_DEPTH,  /* there was no room for more frames */
    UNWIND_END_BROKEN, /* no caller could be made out */
};

/* Spans and pointers are borrowed. */
struct unwind_sample {
    const struct unwind_registers *registers;
    struct span stack;            /* from the stack pointer up */
    const uint64_t *kernel_chain; /* the user frames that the kernel found by frame pointers, leaf first */
    size_t kernel_count;
    /* A word of memory that is not in `stack`; NULL where memory has changed since. Handlers of signals have
     * stacks of their own, what they interrupted is on another. */
    bool (*read_word)(void *user, uint64_t addr, uint64_t *out);
    /* A word of the stack behind those bytes, as memory holds it by now; NULL when it cannot be read. */
    bool (*read_later)(void *user, uint64_t addr, uint64_t *out);
    uint64_t root_sp; /* what end_sp was in other whole stacks of the thread; 0 when that is not known */
    void *user;
};

struct unwind_result {
    size_t count; /* frames that were written */
    enum unwind_end end;
    uint64_t end_ip; /* the outermost frame: where it broke, unless it is whole */
    /* Its stack pointer, of a whole stack the same for all of a thread's life; 0 when that is not known. */
    uint64_t end_sp;
};

struct unwinder;

/* `space` is copied. Remembers 2^cache_bits rules of 32 bytes. */
struct unwinder *unwinder_new(const struct unwind_space *space, unsigned cache_bits);
void unwinder_free(struct unwinder *u);
/*
 * The space changed: something was mapped or unmapped, a method appeared or was freed. How threads begin is
 * still remembered: another program needs another unwinder.
 */
void unwinder_forget(struct unwinder *u);

/* Writes the frames, leaf first; at most `max`. */
struct unwind_result unwinder_run(struct unwinder *u, const struct unwind_sample *sample,
                                  struct unwind_frame *frames, size_t max);

#endif
