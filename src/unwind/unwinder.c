#include "unwind/unwinder.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "unwind/chain_splice.h"
#include "unwind/frame_apply.h"
#include "unwind/frame_step.h"

enum { CALL_REACH_BYTES = 128 }; /* below a frame, of where its call has put the return address */

struct unwinder *unwinder_new(const struct unwind_space *space, unsigned cache_bits)
{
    struct unwinder *u = mem_alloc(1, sizeof *u);
    u->machine = space->machine;
    u->address_mask = space->machine->address_mask;
    u->space = *space;
    u->generation = 1;
    u->cache_bits = cache_bits;
    _Static_assert(MEM_LINE_BYTES % sizeof *u->cache == 0, "none lies in two lines");
    u->cache = mem_alloc_lines((size_t)1 << cache_bits, sizeof *u->cache);
    return u;
}

void unwinder_free(struct unwinder *u)
{
    if (!u)
        return;
    free(u->cache);
    free(u);
}

void unwinder_forget(struct unwinder *u)
{
    if (++u->generation == 0) { /* once in 65,536 times the old ones could pass for new */
        memset(u->cache, 0, ((size_t)1 << u->cache_bits) * sizeof *u->cache);
        u->generation = 1;
    }
}

/* Whether a direct call of native code leads to another function than the one that would have been called. */
static bool is_other_call(const struct unwind_run *r, const struct unwind_place *at, uint64_t ip)
{
    const struct machine *machine = r->u->machine;
    uint8_t before[WORD_BYTES];
    uint64_t target, begin, end, called, called_end;
    struct unwind_code callee = unwind_run_code_at(r->u, at->ip - !at->exact), code;
    if (callee.kind != UNWIND_CODE_ELF || !unwind_run_code(r->u, ip - sizeof before, before, sizeof before) ||
        !machine->is_direct_call(span_of(before, sizeof before), ip, &target))
        return false;
    code = unwind_run_code_at(r->u, target);
    return code.kind == UNWIND_CODE_ELF && code.elf == callee.elf && code.bias == callee.bias &&
           elf_unwind_function(code.elf, target - code.bias, &called, &called_end) &&
           called == target - code.bias &&
           elf_unwind_function(code.elf, at->ip - !at->exact - code.bias, &begin, &end) && begin != called;
}

/* Whether `next` called what is at `at`, for all that is known: its thread may have gone on. */
static bool is_call_still(const struct unwind_run *r, const struct unwind_place *at,
                          const struct unwind_place *next)
{
    return !r->later || next->exact ||
           (unwind_run_is_return(r->u, next->ip) && !is_other_call(r, at, next->ip));
}

static bool is_code(struct unwind_run *r, struct unwind_place *next)
{
    uint64_t top;
    if (next->exact && unwind_run_code_at(r->u, next->ip).kind != UNWIND_CODE_NONE)
        return true;
    if (next->exact) /* a call of what is no code was interrupted */
        return unwind_run_word(r, next->sp, &top) == OUTCOME_OK && unwind_run_is_return(r->u, top);
    struct frame_step step = frame_step_caller(r->u, next->ip);
    next->hijacked = step.kind == STEP_HIJACKED;
    next->no_call = step.no_call;
    return step.kind != STEP_NO_CODE;
}

static bool is_caller(struct unwind_run *r, const struct unwind_place *at, struct unwind_place *next)
{
    return is_code(r, next) && is_call_still(r, at, next);
}

static enum unwind_found found_by(enum frame_step_kind kind)
{
    return kind == STEP_CFI    ? UNWIND_FOUND_CFI
           : kind == STEP_INFO ? UNWIND_FOUND_UNWIND_INFO
           : kind == STEP_FLOW ? UNWIND_FOUND_FLOW
                               : UNWIND_FOUND_STACK_TOP;
}

/* From a signal's frame to what was interrupted: there the link register is known again. */
static void take_interrupted_link(struct unwind_run *r, const struct unwind_place *at)
{
    const struct machine *machine = r->u->machine;
    r->has_link = machine->has_link && unwind_run_word(r, unwind_run_offset(at->sp, machine->signal_link_off),
                                                       &r->link) == OUTCOME_OK;
    r->link &= machine->address_mask;
}

static void note_left(struct unwind_run *r, const struct unwind_place *at, const struct unwind_place *next,
                      enum unwind_found found)
{
    r->left_all = found == UNWIND_FOUND_CFI && r->left_count < UNWIND_LEFT_MAX;
    if (r->left_all)
        r->left[r->left_count++] = (struct unwind_left){ at->ip, next->sp, at->exact };
}

/* From a frame to its caller. False at the end, which *out_end names. */
static bool run_advance(struct unwind_run *r, struct unwind_place *at, enum unwind_found *out_found,
                        enum unwind_end *out_end)
{
    struct frame_step step = at->exact ? frame_step_exact(r, at) : frame_step_caller(r->u, at->ip);
    struct unwind_place next;
    if ((step.kind == STEP_NO_RULE || step.kind == STEP_FLOW) && !at->exact)
        step = frame_step_caller_flow(r, at, &step);
    enum unwind_outcome outcome = OUTCOME_FAILED;
    if (step.kind == STEP_ROOT) {
        *out_end = UNWIND_END_ROOT;
        return false;
    }
    if (step.kind == STEP_CFI || step.kind == STEP_INFO || step.kind == STEP_STACK_TOP ||
        step.kind == STEP_FLOW) {
        outcome = frame_apply_rule(r, &step.rule, at, &next);
        *out_found = found_by(step.kind);
        if (outcome == OUTCOME_OK && next.ip == 0 && step.kind == STEP_CFI && !next.exact) {
            *out_end = UNWIND_END_ROOT; /* so a thread's first function without a mark of its own is called */
            return false;
        }
        if (outcome == OUTCOME_OK && !is_caller(r, at, &next))
            outcome = OUTCOME_FAILED;
    }
    if (outcome == OUTCOME_FAILED || (outcome == OUTCOME_CUT && at->sp_assumed)) {
        enum unwind_outcome by_pointer = frame_apply_pointer(r, at, &next);
        *out_found = UNWIND_FOUND_FRAME_POINTER;
        if (by_pointer == OUTCOME_OK && !is_caller(r, at, &next))
            by_pointer = OUTCOME_FAILED;
        if (by_pointer != OUTCOME_FAILED)
            outcome = by_pointer;
    }
    if (outcome != OUTCOME_OK) {
        *out_end = outcome == OUTCOME_CUT ? UNWIND_END_CUT : UNWIND_END_BROKEN;
        return false;
    }
    r->above_leaf = r->at_leaf && !next.exact && unwind_run_code_at(r->u, at->ip).kind == UNWIND_CODE_ELF;
    r->at_leaf = r->has_link = false;
    if (r->left_all)
        note_left(r, at, &next, *out_found);
    if (next.exact)
        take_interrupted_link(r, at);
    if (r->later)
        *out_found = UNWIND_FOUND_LATER;
    *at = next;
    return true;
}

/*
 * Where the sample's bytes have ended: whether memory tells what called the frame there. It does while the
 * call that this frame had under way is there still.
 */
static bool is_call_under_way(const struct unwind_run *r, const struct unwind_place *at)
{
    uint64_t then, now;
    for (uint64_t addr = at->sp - WORD_BYTES; at->sp - addr <= CALL_REACH_BYTES; addr -= WORD_BYTES) {
        if (unwind_run_word(r, addr, &then) != OUTCOME_OK)
            return false;
        if ((then & r->u->address_mask) == at->ip)
            return r->sample->read_later(r->sample->user, addr, &now) && now == then;
    }
    return false;
}

static bool run_later(struct unwind_run *r, const struct unwind_place *at, const struct unwind_result *result)
{
    if (result->end != UNWIND_END_CUT || r->later || !r->sample->read_later || !is_call_under_way(r, at))
        return false;
    r->later = result->count;
    return true;
}

/*
 * How many of its frames the kernel found below `sp`, as far as the stack still tells. Where our frames are
 * some of them can be none of ours, and no callers at all: it follows frame pointers, and above that of a
 * method which replaced its first version while it ran (OSR) is a word that was left over, in place of the
 * method's caller.
 */
static size_t kernel_frames_below(const struct unwind_run *r, uint64_t sp)
{
    const struct unwind_sample *s = r->sample;
    uint64_t fp = s->registers->fp, caller;
    size_t count = 1;
    while (count < s->kernel_count && fp < sp && sp - fp > WORD_BYTES &&
           unwind_run_word(r, fp + WORD_BYTES, &caller) == OUTCOME_OK &&
           (caller & r->u->address_mask) == s->kernel_chain[count] &&
           unwind_run_word(r, fp, &fp) == OUTCOME_OK)
        count++;
    return count;
}

/* The index in the kernel's chain behind the frames that came of the sample; 0 when it has none of them. */
static size_t kernel_goes_on(const struct unwind_run *r, const struct unwind_frame *frames, size_t count)
{
    const struct unwind_sample *s = r->sample;
    size_t i = chain_splice(frames, count, s->kernel_chain, s->kernel_count);
    size_t below = i ? kernel_frames_below(r, r->sample_sp) : 0;
    return below > i ? below : i;
}

/*
 * Whether all that the kernel found behind the sample's bytes is among what memory told later, or is there
 * still where the kernel found it.
 */
static bool is_as_kernel_says(const struct unwind_run *r, const struct unwind_frame *frames, size_t count)
{
    const struct unwind_sample *s = r->sample;
    size_t i = kernel_goes_on(r, frames, r->later), at = r->later;
    for (; i > 0 && i < s->kernel_count; i++) {
        while (at < count && frames[at].ip != s->kernel_chain[i])
            at++;
        if (at == count)
            return frame_step_caller(r->u, s->kernel_chain[i]).kind == STEP_NO_CODE || /* it went astray */
                   kernel_frames_below(r, UINT64_MAX) == s->kernel_count;
    }
    return true;
}

/* What was read later counts if it led to where the thread begins. */
static void run_judge_later(const struct unwind_run *r, const struct unwind_frame *frames,
                            struct unwind_result *result)
{
    bool is_root = result->end == UNWIND_END_ROOT && result->end_sp &&
                   (!r->sample->root_sp || r->sample->root_sp == result->end_sp);
    if (!r->later || (is_root && is_as_kernel_says(r, frames, result->count)))
        return;
    result->count = r->later;
    result->end = UNWIND_END_CUT;
}

static void run_end_by_tails(struct unwind_run *r, struct unwind_frame *frames, size_t max,
                             struct unwind_result *result)
{
    for (unsigned i = 0; i < ROOT_TAIL_FRAMES && result->count < max; i++) {
        uint64_t caller = root_tails_caller(&r->u->tails, frames[result->count - 1].ip);
        if (!caller)
            return;
        frames[result->count++] = (struct unwind_frame){ caller, UNWIND_FOUND_ROOT_TAIL };
        if (frame_step_caller(r->u, caller).kind == STEP_ROOT) {
            result->end = UNWIND_END_ROOT;
            return;
        }
    }
}

/* What the kernel found beyond the frames that we have. */
static void run_splice(struct unwind_run *r, struct unwind_frame *frames, size_t max,
                       struct unwind_result *result)
{
    const struct unwind_sample *s = r->sample;
    size_t i = kernel_goes_on(r, frames, result->count);
    for (; i > 0 && i < s->kernel_count; i++) {
        struct unwind_place next = { .ip = s->kernel_chain[i] };
        if (!is_code(r, &next))
            break;
        if (result->count == max) {
            result->end = UNWIND_END_DEPTH;
            return;
        }
        frames[result->count++] =
            (struct unwind_frame){ next.ip, UNWIND_FOUND_KERNEL, next.no_call, next.hijacked };
    }
    const struct unwind_frame *last = &frames[result->count - 1];
    if (last->found == UNWIND_FOUND_KERNEL && frame_step_caller(r->u, last->ip).kind == STEP_ROOT)
        result->end = UNWIND_END_ROOT;
    else if (last->found == UNWIND_FOUND_KERNEL ||
             result->end == UNWIND_END_CUT) /* in a thread's first frames, too */
        run_end_by_tails(r, frames, max, result);
}

/* Most frames are in the kernel's chain, too: what is remembered of them is fetched at once, not one after
 * another. */
static void expect_frames(const struct unwinder *u, const struct unwind_sample *sample)
{
    for (size_t i = 0; i < sample->kernel_count; i++)
        __builtin_prefetch(frame_step_slot(u, sample->kernel_chain[i]));
}

struct unwind_result unwinder_run(struct unwinder *u, const struct unwind_sample *sample,
                                  struct unwind_frame *frames, size_t max)
{
    const struct unwind_registers *registers = sample->registers;
    __attribute__((uninitialized)) struct unwind_left left[UNWIND_LEFT_MAX]; /* mostly not needed */
    struct unwind_run r = { .u = u,
                            .sample = sample,
                            .stack_start = registers->sp,
                            .link = registers->link & u->address_mask,
                            .has_link = u->machine->has_link,
                            .at_leaf = true,
                            .left = left,
                            .left_all = true };
    struct unwind_place at = { .ip = registers->ip, .sp = registers->sp, .fp = registers->fp, .exact = true };
    struct unwind_result result = { .end = UNWIND_END_DEPTH, .end_ip = at.ip };
    enum unwind_found found = UNWIND_FOUND_LEAF;
    expect_frames(u, sample);
    while (result.count < max) {
        frames[result.count++] =
            (struct unwind_frame){ at.ip, (uint8_t)found, at.exact || at.no_call, at.hijacked };
        if (!r.later)
            r.sample_sp = at.sp;
        bool advanced = run_advance(&r, &at, &found, &result.end);
        if (!advanced && run_later(&r, &at, &result))
            advanced = run_advance(&r, &at, &found, &result.end);
        if (!advanced)
            break;
        result.end = UNWIND_END_DEPTH;
    }
    result.end_sp = at.sp_at_least ? 0 : at.sp;
    run_judge_later(&r, frames, &result);
    if (result.end == UNWIND_END_CUT || result.end == UNWIND_END_BROKEN)
        run_splice(&r, frames, max, &result);
    else if (result.end == UNWIND_END_ROOT && !r.later)
        root_tails_learn(&u->tails, frames, result.count);
    if (result.count)
        result.end_ip = frames[result.count - 1].ip;
    return result;
}
