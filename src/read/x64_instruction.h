/*
 * x64_instruction: one machine instruction, as far as it tells where a function's frame is.
 *
 * How long it is, where it leads, and what it does to the stack pointer and to RBP. What operands are
 * computed is of no interest. Specified in Intel's manual, volume 2: chapter 2 for the form, appendix A for
 * the opcode maps.
 */
#ifndef CLRPERF_READ_X64_INSTRUCTION_H
#define CLRPERF_READ_X64_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

enum { X64_INSTRUCTION_MAX = 15 /* bytes */ };

enum x64_kind {
    X64_PLAIN,      /* nothing of the below */
    X64_CALL,       /* of what is at `value` from the next instruction */
    X64_ADDRESS_OF, /* a register gets the address of what is there */
    X64_PUSH,       /* of a register but RBP, of a number, of memory */
    X64_PUSH_RBP,
    X64_POP, /* into a register but RBP, into memory */
    X64_POP_RBP,
    X64_RSP_OF_RSP, /* RSP = RSP + value */
    X64_RSP_OF_RBP, /* RSP = RBP + value */
    X64_RBP_OF_RSP, /* RBP = RSP + value */
    X64_SAVE_RBP,   /* to RSP + value */
    X64_LOAD_RBP,   /* from RSP + value */
    X64_LEAVE,
    X64_RSP_LOST,  /* RSP depends on what is not followed */
    X64_JUMP,      /* to `value` from the next instruction */
    X64_BRANCH,    /* there, or on */
    X64_JUMP_AWAY, /* through a register or memory */
    X64_RETURN,    /* and drops `value` bytes */
    X64_STOP,      /* no instruction follows: a trap, or what user code cannot do */
};

struct x64_instruction {
    enum x64_kind kind;
    uint8_t size; /* bytes */
    int64_t value;
};

/* False where `code`, which begins with the instruction, ends early, or holds none that is known. */
bool x64_instruction_read(struct span code, struct x64_instruction *out);

#endif
