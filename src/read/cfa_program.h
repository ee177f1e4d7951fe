/*
 * cfa_program: the instructions of a CIE or FDE, run.
 *
 * They build the rule of a function's frame address by address. Specified in DWARF 5, 6.4.2 and 7.24, and by
 * GNU's and Arm's additions. Of all registers only the frame pointer and the return address are followed.
 */
#ifndef CLRPERF_READ_CFA_PROGRAM_H
#define CLRPERF_READ_CFA_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/frame_rule.h"

enum { CFA_STATE_DEPTH_MAX = 16 /* of DW_CFA_remember_state */ };

/* What the machine and the CIE say. */
struct cfa_params {
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    uint64_t sp, fp; /* the machine's DWARF numbers */
};

/* The caller fills what has no comment, and `rule` with what to begin with. */
struct cfa_program {
    const struct cfa_params *params;
    const struct frame_rule *initial; /* after the CIE's instructions; NULL while those run */
    struct frame_rule rule;           /* in the end: what counts from `at` on */
    uint64_t at, end;                 /* the function's addresses left */
    /* Told the rule from `at` on, before the address advances; NULL for a CIE, which has no addresses. */
    void (*emit)(void *user, uint64_t at, const struct frame_rule *rule);
    void *user;
    struct frame_rule remembered[CFA_STATE_DEPTH_MAX]; /* zero at first, as what follows */
    unsigned depth;
    bool failed;
};

/*
 * Runs until the end of the instructions or of the function. False when they are damaged, or one is not
 * known: what was emitted before is right, `rule` is not.
 */
bool cfa_program_run(struct cfa_program *p, struct span instructions);

#endif
