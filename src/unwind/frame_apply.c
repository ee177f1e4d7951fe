#include "unwind/frame_apply.h"

#include "unwind/kept_register.h"

enum {
    SAVED_SP_REACH_BYTES = 2048, /* above SP, of the place where hand-written code keeps what SP was */
    SAVED_SP_FRAME_BYTES = 4096, /* of its frame from there on, which is aligned */
    RED_ZONE_BYTES = 128, /* below SP, that a function may use: System V ABI, AMD64 supplement, 3.2.2 */
};

static bool base_value(const struct unwind_run *r, const struct unwind_place *at, uint8_t number,
                       uint64_t *out)
{
    if (number == FRAME_REGISTER_SP && !at->sp_at_least)
        *out = at->sp;
    else if (number == FRAME_REGISTER_FP)
        *out = at->fp;
    else if ((r->at_leaf || r->above_leaf) && number < r->u->machine->register_count)
        *out = r->sample->registers->numbered[number];
    else
        return kept_register(r, number, out);
    return true;
}

/*
 * A copy of the stack pointer that was saved: what is told to lie below SP, where a sample has no bytes, was
 * moved there from further up (OpenSSL, crypto/sha/asm). It leads to a return address.
 */
static bool find_saved_sp(const struct unwind_run *r, uint64_t sp, uint64_t *out)
{
    uint64_t saved, top;
    for (uint64_t addr = sp; addr < sp + SAVED_SP_REACH_BYTES; addr += WORD_BYTES) {
        if (unwind_run_word(r, addr, &saved) != OUTCOME_OK)
            return false;
        if (saved > addr && saved - addr < SAVED_SP_FRAME_BYTES && saved % WORD_BYTES == 0 &&
            unwind_run_word(r, saved, &top) == OUTCOME_OK && unwind_run_is_return(r->u, top)) {
            *out = saved;
            return true;
        }
    }
    return false;
}

static enum unwind_outcome saved_sp(const struct unwind_run *r, const struct frame_rule *rule,
                                    const struct unwind_place *at, uint64_t addr, uint64_t *out)
{
    enum unwind_outcome outcome = unwind_run_word(r, addr, out);
    if (outcome != OUTCOME_OK && r->at_leaf && addr < at->sp && rule->cfa_above == WORD_BYTES &&
        find_saved_sp(r, at->sp, out))
        outcome = OUTCOME_OK;
    *out += rule->cfa_above;
    return outcome;
}

static enum unwind_outcome rule_cfa(const struct unwind_run *r, const struct frame_rule *rule,
                                    const struct unwind_place *at, uint64_t *out)
{
    uint64_t base, index = 0;
    switch (rule->cfa) {
    case FRAME_CFA_PLT:
        *out = unwind_run_offset(at->sp, rule->cfa_off) + ((at->ip & 15) >= rule->plt_edge ? WORD_BYTES : 0);
        return OUTCOME_OK;
    case FRAME_CFA_OFFSET:
    case FRAME_CFA_DEREF:
        if (!base_value(r, at, rule->cfa_register, &base) ||
            (rule->cfa_index && !base_value(r, at, rule->cfa_index - 1, &index)))
            return OUTCOME_FAILED;
        *out = unwind_run_offset(base, rule->cfa_off) + WORD_BYTES * index;
        return rule->cfa == FRAME_CFA_DEREF ? saved_sp(r, rule, at, *out, out) : OUTCOME_OK;
    default:
        return OUTCOME_FAILED;
    }
}

/* The word that a place names. A register that is still where it was fails: the caller knows it. */
static enum unwind_outcome rule_word(const struct unwind_run *r, uint8_t place, int32_t off, uint64_t cfa,
                                     const struct unwind_place *at, uint64_t *out)
{
    uint64_t base;
    switch (place) {
    case FRAME_AT_CFA:
        base = cfa;
        break;
    case FRAME_AT_SP:
        if (at->sp_at_least)
            return OUTCOME_FAILED;
        base = at->sp;
        break;
    case FRAME_AT_FP:
        base = at->fp;
        break;
    default:
        return OUTCOME_FAILED;
    }
    return unwind_run_word(r, unwind_run_offset(base, off), out);
}

/* Where a call leaves the return address in a register, and it still is there. */
static enum unwind_outcome link_word(const struct unwind_run *r, uint64_t *out)
{
    *out = r->link;
    return r->has_link ? OUTCOME_OK : OUTCOME_FAILED;
}

/* Where the caller goes on. */
static enum unwind_outcome return_word(const struct unwind_run *r, const struct frame_rule *rule,
                                       uint64_t cfa, const struct unwind_place *at, uint64_t *out)
{
    switch (rule->ra) {
    case FRAME_SAME:
        return link_word(r, out);
    case FRAME_IN_REGISTER:
        return base_value(r, at, (uint8_t)rule->ra_off, out) ? OUTCOME_OK : OUTCOME_FAILED;
    default:
        return rule_word(r, rule->ra, rule->ra_off, cfa, at, out);
    }
}

/*
 * Skips the red zone, which a call does not leave: the .NET runtime made this frame under the one in which a
 * signal came, to handle that there (PAL, CallSignalHandlerWrapper), and has it return to where that was.
 */
static bool is_above_interrupted(const struct unwind_run *r, const struct frame_rule *rule)
{
    return !r->u->machine->has_link && rule->ra == FRAME_AT_CFA &&
           rule->ra_off <= -(RED_ZONE_BYTES + WORD_BYTES);
}

/* The stack that a signal interrupted need not be the one on which it is handled. */
static bool is_interrupted(const struct unwind_run *r, const struct unwind_place *at)
{
    return at->exact && !r->at_leaf;
}

/* Of the leaf's caller: whether the leaf kept the register is not told. */
static bool is_by_kept_register(const struct unwind_run *r, const struct frame_rule *rule)
{
    return !r->at_leaf && rule->cfa != FRAME_CFA_PLT &&
           (rule->cfa_register < FRAME_REGISTER_SP || rule->cfa_index || rule->ra == FRAME_IN_REGISTER);
}

static enum unwind_outcome apply(const struct unwind_run *r, const struct frame_rule *rule,
                                 const struct unwind_place *at, struct unwind_place *out)
{
    struct unwind_place next = { .fp = at->fp, .sp_assumed = is_above_interrupted(r, rule) };
    next.exact = rule->signal_frame || next.sp_assumed;
    enum unwind_outcome outcome = rule_cfa(r, rule, at, &next.sp);
    if (outcome != OUTCOME_OK)
        return outcome;
    /* a handler may run on a stack of its own, else stacks only grow towards their root */
    bool leaves_stack =
        rule->signal_frame || (is_interrupted(r, at) && rule->cfa_register == FRAME_REGISTER_FP);
    bool keeps_stack = rule->ra == FRAME_SAME || rule->ra == FRAME_IN_REGISTER;
    if (next.sp <= at->sp && !leaves_stack && (next.sp < at->sp || !keeps_stack))
        return OUTCOME_FAILED;
    outcome = return_word(r, rule, next.sp, at, &next.ip);
    if (outcome != OUTCOME_OK)
        return outcome;
    next.ip &= r->u->address_mask;
    if (is_by_kept_register(r, rule) && !unwind_run_is_return(r->u, next.ip))
        return OUTCOME_FAILED;
    /* clang's epilogs keep the rule of a register that was popped already: its slot is below SP then */
    bool popped =
        rule->fp == FRAME_AT_CFA && !leaves_stack && unwind_run_offset(next.sp, rule->fp_off) < at->sp;
    if (rule->fp != FRAME_SAME && rule->fp != FRAME_LOST && !popped) {
        outcome = rule_word(r, rule->fp, rule->fp_off, next.sp, at, &next.fp);
        if (outcome != OUTCOME_OK)
            return outcome;
    }
    *out = next;
    return OUTCOME_OK;
}

enum unwind_outcome frame_apply_rule(const struct unwind_run *r, const struct frame_rule *rule,
                                     const struct unwind_place *at, struct unwind_place *out)
{
    enum unwind_outcome outcome = apply(r, rule, at, out);
    if (outcome != OUTCOME_FAILED || !r->above_leaf || !is_by_kept_register(r, rule))
        return outcome;
    struct unwind_run by_tables = *r; /* the leaf has changed the register */
    by_tables.above_leaf = false;
    return apply(&by_tables, rule, at, out);
}

enum unwind_outcome frame_apply_pointer(const struct unwind_run *r, const struct unwind_place *at,
                                        struct unwind_place *out)
{
    struct unwind_place next = { .sp = at->fp + 2 * WORD_BYTES,
                                 .sp_at_least = !r->u->machine->record_ends_frame };
    if ((at->fp < at->sp && !is_interrupted(r, at)) || at->fp % WORD_BYTES)
        return OUTCOME_FAILED;
    enum unwind_outcome outcome = unwind_run_word(r, at->fp + WORD_BYTES, &next.ip);
    if (outcome != OUTCOME_OK || (outcome = unwind_run_word(r, at->fp, &next.fp)) != OUTCOME_OK)
        return outcome;
    next.ip &= r->u->address_mask;
    *out = next;
    return OUTCOME_OK;
}
