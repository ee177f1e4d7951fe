/*
 * x64_flow: the frame of code that has no unwind information, by what that code does.
 *
 * Many a library is built without tables (-fno-asynchronous-unwind-tables), musl's C library among them. But
 * a function gives back what it took before it returns: so its instructions are followed from an address to a
 * return, along jumps and past calls, and what they do to the stack pointer and RBP is added up. Where it is
 * known where a function begins, they are followed from there to the address, which also serves functions
 * that never return. A rule that comes of it can be wrong, where a call never returned and other code
 * follows, where a start is none: who asks judges it by what lies on the stack.
 */
#ifndef CLRPERF_UNWIND_X64_FLOW_H
#define CLRPERF_UNWIND_X64_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/frame_rule.h"

struct code_flow {
    /* What can be read of the code at `addr`, at most `size` bytes; returns how many. */
    size_t (*read)(void *user, uint64_t addr, uint8_t *into, size_t size);
    /* Whether `rule` leads to a caller. */
    bool (*accept)(void *user, const struct frame_rule *rule);
    void *user;
};

/* The first rule at `addr`, the instruction to be executed next, that is accepted. False when there is none.
 */
bool x64_flow_rule(const struct code_flow *flow, uint64_t addr, struct frame_rule *out);
/* The same by how the code comes from `start`, its function's first instruction, to `addr`. */
bool x64_flow_rule_from(const struct code_flow *flow, uint64_t start, uint64_t addr, struct frame_rule *out);

#endif
