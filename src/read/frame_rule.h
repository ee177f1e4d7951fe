/*
 * frame_rule: how a function's caller is found from the registers inside it.
 *
 * What eh_frame (CFI), UNWIND_INFO and machine code say is brought to this one form. Only the stack pointer,
 * the frame pointer and the return address are followed: nothing else is needed to find the next caller.
 * "CFA" is DWARF's canonical frame address: the stack pointer of the caller once the call has returned.
 */
#ifndef CLRPERF_READ_FRAME_RULE_H
#define CLRPERF_READ_FRAME_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum frame_cfa {
    FRAME_CFA_NONE,    /* no function is known here */
    FRAME_CFA_UNKNOWN, /* a function, but how it keeps its frame is not understood */
    FRAME_CFA_OFFSET,  /* register + cfa_off */
    FRAME_CFA_DEREF,   /* the word at register + cfa_off + 8 * the register cfa_index, and cfa_above more */
    FRAME_CFA_PLT,     /* SP + cfa_off, 8 more when the low four bits of the IP are at least plt_edge */
};

enum frame_place {
    FRAME_SAME,        /* the register still has it; of the return address: the link register has it */
    FRAME_AT_CFA,      /* in the word at CFA + offset */
    FRAME_AT_SP,       /* in the word at SP + offset */
    FRAME_AT_FP,       /* in the word at FP + offset */
    FRAME_IN_REGISTER, /* of the return address: in the register numbered `offset` */
    FRAME_UNDEFINED,   /* of the return address: this is a thread's first frame */
    FRAME_LOST,        /* kept in a way that is not understood */
};

/* Registers by their DWARF number (below 0x80), but for the two that have the same use on every machine. */
enum { FRAME_REGISTER_SP = 0x80, FRAME_REGISTER_FP = 0x81 };

struct frame_rule {
    uint8_t cfa;          /* enum frame_cfa */
    uint8_t cfa_register; /* of OFFSET and DEREF */
    uint8_t fp, ra;       /* enum frame_place: where the caller's frame pointer and the return address are */
    uint8_t plt_edge;
    bool signal_frame; /* the kernel called: the "return address" is the very instruction to be executed next
                        */
    uint8_t cfa_index; /* of DEREF: a register's number + 1; 0: none */
    uint8_t cfa_above; /* of DEREF: bytes */
    int32_t cfa_off, fp_off, ra_off;
};

#endif
