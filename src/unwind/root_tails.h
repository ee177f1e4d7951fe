/*
 * root_tails: how the threads of a process begin, learned from stacks that are whole.
 *
 * A thread's outermost frames are few and always the same: a function there has one caller. So a stack that
 * lost just its end (the kernel's chains stop in the C library's first function) can be ended as others were.
 */
#ifndef CLRPERF_UNWIND_ROOT_TAILS_H
#define CLRPERF_UNWIND_ROOT_TAILS_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/unwinder.h"

enum { ROOT_TAILS_MAX = 64, ROOT_TAIL_FRAMES = 3 };

struct root_tail {
    uint64_t ip, caller; /* caller 0: there were several */
};

/* Zero at first. */
struct root_tails {
    struct root_tail tails[ROOT_TAILS_MAX];
    size_t count;
};

/* `frames` is a whole stack, leaf first. */
void root_tails_learn(struct root_tails *t, const struct unwind_frame *frames, size_t count);
/* What a function near the root returns to; 0 when that is not known. */
uint64_t root_tails_caller(const struct root_tails *t, uint64_t ip);

#endif
