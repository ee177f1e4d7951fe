/*
 * unwind_run: one sample that is being unwound: where it is, and what can be read of its stack and its code.
 *
 * Shared by what finds the rule that leaves a frame (unwind/frame_step), what applies it (unwind/frame_apply)
 * and what goes from frame to frame (unwind/unwinder). Nobody else needs it.
 */
#ifndef CLRPERF_UNWIND_UNWIND_RUN_H
#define CLRPERF_UNWIND_UNWIND_RUN_H

#include "unwind/root_tails.h"
#include "unwind/unwinder.h"

enum { WORD_BYTES = 8 };

enum frame_step_kind {
    STEP_NO_CODE,   /* nothing executable is there */
    STEP_NO_RULE,   /* code, of which nothing is known */
    STEP_CFI,       /* `rule` says how to go on */
    STEP_INFO,      /* as well */
    STEP_STACK_TOP, /* as well */
    STEP_FLOW,      /* as well: how the code goes on, which leads to a return address on this stack */
    STEP_HIJACKED,  /* the runtime's trap: the frame pointer is that of the caller it replaced */
    STEP_ROOT,      /* a thread's first frame */
};

struct frame_step {
    enum frame_step_kind kind;
    struct frame_rule rule;
    bool no_call; /* of a caller: no call leads back there, a stack was made so that it is returned to */
};

struct cached_step {
    uint64_t ip;
    struct frame_rule rule;
    uint16_t generation;
    uint8_t kind;
    bool no_call;
};

struct unwinder {
    const struct machine *machine;
    uint64_t address_mask; /* the machine's */
    struct unwind_space space;
    struct root_tails tails;
    uint16_t generation; /* never 0 */
    unsigned cache_bits;
    struct cached_step *cache;
};

/* Where the unwinding is. */
struct unwind_place {
    uint64_t ip, sp, fp;
    bool exact, hijacked, no_call;
    bool sp_at_least; /* sp may lie higher: only the frame pointer was followed */
    bool sp_assumed;  /* the runtime handles a signal there, which it may do on another stack */
};

/* A native frame that was left by its image's tables. */
struct unwind_left {
    uint64_t ip, cfa;
    bool exact;
};

enum { UNWIND_LEFT_MAX = 24 };

/* One sample under way. */
struct unwind_run {
    struct unwinder *u;
    const struct unwind_sample *sample;
    uint64_t stack_start;
    uint64_t link;            /* with has_link */
    bool has_link;            /* this frame's link register is known: it is the leaf, or was interrupted */
    bool at_leaf;             /* the registers are those of the sample */
    bool above_leaf;          /* the leaf is native code, which may have kept them for its caller */
    size_t later;             /* so many frames came of the sample; 0 while all do */
    uint64_t sample_sp;       /* SP of the outermost of those */
    struct unwind_left *left; /* UNWIND_LEFT_MAX: the first of those that were left, leaf first */
    size_t left_count;
    bool left_all; /* these are all of them so far */
};

enum unwind_outcome { OUTCOME_OK, OUTCOME_CUT, OUTCOME_FAILED };

/* A word of the stack that the sample has no bytes for. */
enum unwind_outcome unwind_run_other_word(const struct unwind_run *r, uint64_t addr, uint64_t *out);

/* A word of the stack. */
static inline enum unwind_outcome unwind_run_word(const struct unwind_run *r, uint64_t addr, uint64_t *out)
{
    uint64_t off = addr - r->stack_start, size = r->sample->stack.size;
    if (addr < r->stack_start || size < WORD_BYTES || off > size - WORD_BYTES)
        return unwind_run_other_word(r, addr, out);
    *out = load_u64le(r->sample->stack.data + off);
    return OUTCOME_OK;
}

bool unwind_run_code(const struct unwinder *u, uint64_t addr, uint8_t *into, size_t size);
struct unwind_code unwind_run_code_at(const struct unwinder *u, uint64_t addr);
/* Whether code is there, behind a call. */
bool unwind_run_is_return(const struct unwinder *u, uint64_t addr);

static inline uint64_t unwind_run_offset(uint64_t base, int32_t off)
{
    return base + (uint64_t)(int64_t)off;
}

#endif
