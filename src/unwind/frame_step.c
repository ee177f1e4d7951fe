#include "unwind/frame_step.h"

#include "unwind/frame_apply.h"
#include "unwind/x64_flow.h"

enum {
    PAGE_BYTES = 4096,
    ENTRY_BYTES = 0x40, /* of ld.so's entry, which has no unwind information */
    SCAN_FRAME_BYTES = 64,
    EPILOG_BYTES = 96, /* of code that tells whether an epilog is under way */
};

/* Where code is followed. */
struct flow_place {
    const struct unwind_run *run;
    const struct unwind_place *at;
};

/* The return address is where a call puts it, but for `depth` bytes that were pushed since. */
static struct frame_step step_stack_top(const struct unwinder *u, int32_t depth)
{
    struct frame_step step = {
        STEP_STACK_TOP, { .cfa = FRAME_CFA_OFFSET, .cfa_register = FRAME_REGISTER_SP, .cfa_off = depth }
    };
    if (!u->machine->has_link) {
        step.rule.cfa_off += WORD_BYTES;
        step.rule.ra = FRAME_AT_CFA;
        step.rule.ra_off = -WORD_BYTES;
    }
    return step;
}

/* `addr` is as linked; the trap's information is off by the word it reserves for the real return address. */
static struct frame_step step_cfi(const struct elf_unwind *elf, uint64_t addr)
{
    const struct frame_rule *rule = elf_unwind_rule(elf, addr);
    if (rule->cfa == FRAME_CFA_NONE) {
        bool entering = elf->entry && addr >= elf->entry && addr - elf->entry < ENTRY_BYTES;
        return (struct frame_step){ entering ? STEP_ROOT : STEP_NO_RULE, *rule };
    }
    if (rule->ra == FRAME_UNDEFINED)
        return (struct frame_step){ STEP_ROOT, *rule };
    if (rule->cfa == FRAME_CFA_UNKNOWN)
        return (struct frame_step){ STEP_NO_RULE, *rule };
    struct frame_step step = { STEP_CFI, *rule };
    if (elf->hijack && addr >= elf->hijack && addr < elf->hijack_end && rule->cfa == FRAME_CFA_OFFSET) {
        step.rule.cfa_off -= WORD_BYTES;
        step.rule.fp_off += rule->fp == FRAME_AT_CFA ? WORD_BYTES : 0;
    }
    return step;
}

/* The function around an address, in whose terms its begin and end are: *out_off is the address there. */
static bool managed_function(const struct unwind_code *code, uint64_t addr, struct unwind_function *out,
                             uint64_t *out_off)
{
    *out_off = code->kind == UNWIND_CODE_PE ? addr - code->bias : addr;
    return code->kind == UNWIND_CODE_PE ? pe_unwind_find(code->pe, *out_off, out)
                                        : jit_unwind_find(code->jit, *out_off, out);
}

static struct frame_step step_info(const struct unwind_function *function, uint64_t addr)
{
    struct frame_step step = { STEP_INFO, { 0 } };
    uint64_t off = addr - function->begin;
    if (!function->format->rule(function->info, off < UINT32_MAX ? (uint32_t)off : UINT32_MAX, &step.rule))
        step.kind = STEP_NO_RULE;
    return step;
}

/* What a signal handler returns to, where its tables do not tell. */
static bool is_signal_return(const struct unwinder *u, uint64_t ip)
{
    uint8_t code[MACHINE_SIGNAL_RETURN_BYTES];
    return u->machine->is_signal_return && unwind_run_code(u, ip, code, sizeof code) &&
           u->machine->is_signal_return(span_of(code, sizeof code));
}

/* `step` is what tables tell of `ip`; of what a handler returns to they tell nothing, or nothing that is
 * right. */
static struct frame_step or_signal(const struct unwinder *u, uint64_t ip, struct frame_step step)
{
    bool told = step.kind > STEP_NO_RULE && !step.rule.signal_frame;
    return told || !is_signal_return(u, ip) ? step : (struct frame_step){ STEP_CFI, u->machine->signal_rule };
}

static bool is_fault_entry(const struct unwinder *u, const struct unwind_code *code, uint64_t addr)
{
    uint8_t bytes[MACHINE_FAULT_BYTES];
    uint64_t begin, end;
    return code->elf->ahead && u->machine->is_fault_entry &&
           elf_unwind_function(code->elf, addr, &begin, &end) &&
           unwind_run_code(u, begin + code->bias, bytes, sizeof bytes) &&
           u->machine->is_fault_entry(span_of(bytes, sizeof bytes));
}

/* `step` is what tables tell of `addr`; of what a fault leads into they take the fault for a call. */
static struct frame_step or_fault(const struct unwinder *u, const struct unwind_code *code, uint64_t addr,
                                  struct frame_step step)
{
    if (step.kind != STEP_CFI || !is_fault_entry(u, code, addr))
        return step;
    int32_t record = step.rule.cfa_off - u->machine->fault_record;
    if (record < 0) /* not pushed yet */
        return (struct frame_step){ STEP_NO_RULE, step.rule };
    step.rule = (struct frame_rule){ .cfa = FRAME_CFA_DEREF,
                                     .cfa_register = FRAME_REGISTER_SP,
                                     .fp = FRAME_AT_SP,
                                     .ra = FRAME_AT_SP,
                                     .signal_frame = true,
                                     .cfa_off = record + WORD_BYTES,
                                     .fp_off = record + 2 * WORD_BYTES,
                                     .ra_off = record };
    return step;
}

/* The call of a thread's function, behind which the thread ends: in musl's clone(). */
static bool is_thread_root(const struct unwinder *u, uint64_t ip)
{
    uint8_t code[MACHINE_CODE_BYTES];
    return unwind_run_code(u, ip, code, sizeof code) &&
           u->machine->is_thread_exit(span_of(code, sizeof code));
}

/*
 * Where a function begins that no call was made from: whoever made this stack had it return there. So glibc's
 * coroutines begin (makecontext(3)).
 */
static bool is_made_root(const struct unwinder *u, const struct unwind_code *code, uint64_t ip)
{
    uint64_t begin, end;
    return elf_unwind_function(code->elf, ip - code->bias, &begin, &end) && begin == ip - code->bias &&
           !unwind_run_is_return(u, ip);
}

static struct frame_step resolve_native(const struct unwinder *u, const struct unwind_code *code, uint64_t ip)
{
    if (code->elf->hijack && ip - code->bias == code->elf->hijack)
        return (struct frame_step){ STEP_HIJACKED, { 0 } };
    uint64_t addr = ip - 1 - code->bias;
    struct frame_step step = or_fault(u, code, addr, or_signal(u, ip, step_cfi(code->elf, addr)));
    if (step.kind == STEP_NO_RULE && step.rule.cfa == FRAME_CFA_NONE && is_made_root(u, code, ip))
        return (struct frame_step){ STEP_ROOT, { 0 }, .no_call = true };
    if (step.kind == STEP_NO_RULE && step.rule.cfa == FRAME_CFA_NONE && is_thread_root(u, ip))
        return (struct frame_step){ STEP_ROOT, { 0 } };
    return step;
}

/* The frame of a caller: `ip` is what its call returns to. */
static struct frame_step resolve_caller(const struct unwinder *u, uint64_t ip)
{
    struct unwind_code code = unwind_run_code_at(u, ip - 1);
    struct unwind_function function;
    uint64_t addr;
    switch (code.kind) {
    case UNWIND_CODE_NONE:
        if (unwind_run_code_at(u, ip).kind == UNWIND_CODE_NONE)
            return (struct frame_step){ STEP_NO_CODE, { 0 } };
        return or_signal(u, ip,
                         (struct frame_step){ STEP_NO_CODE, { 0 } }); /* the first thing in its mapping */
    case UNWIND_CODE_ELF:
        return resolve_native(u, &code, ip);
    case UNWIND_CODE_PE:
    case UNWIND_CODE_JITTED:
        if (managed_function(&code, ip - 1, &function, &addr))
            return step_info(&function, addr + 1);
        return (struct frame_step){ STEP_NO_RULE, { 0 } };
    default:
        return or_signal(u, ip, (struct frame_step){ STEP_NO_RULE, { 0 } });
    }
}

/* Remembered, unless nothing is known: that can change without anything known becoming wrong. */
struct frame_step frame_step_caller_new(struct unwinder *u, uint64_t ip)
{
    struct frame_step step = resolve_caller(u, ip);
    step.no_call |= step.rule.signal_frame; /* a handler returns there */
    if (step.kind != STEP_NO_CODE && step.kind != STEP_NO_RULE)
        *frame_step_slot(u, ip) =
            (struct cached_step){ ip, step.rule, u->generation, (uint8_t)step.kind, step.no_call };
    return step;
}

/* Whether the link register is that of the call that led here: a method of which nothing is known calls, too.
 */
static bool is_link_of_caller(const struct unwind_run *r, const struct unwind_place *at)
{
    return unwind_run_is_return(r->u, r->link) &&
           (unwind_run_code_at(r->u, at->ip).kind != UNWIND_CODE_OTHER ||
            unwind_run_code_at(r->u, r->link - 1).kind != UNWIND_CODE_OTHER);
}

/* In a stub the return address is where the call put it, or below one word that the stub pushed. */
static struct frame_step step_stub(const struct unwind_run *r, const struct unwind_place *at)
{
    uint64_t word;
    if (r->has_link)
        return is_link_of_caller(r, at) ? step_stack_top(r->u, 0)
                                        : (struct frame_step){ STEP_NO_RULE, { 0 } };
    if (unwind_run_word(r, at->sp, &word) == OUTCOME_OK && unwind_run_is_return(r->u, word))
        return step_stack_top(r->u, 0);
    /* the frame of a method looks the same: saved frame pointer, return address */
    bool has_frame = at->fp >= at->sp && at->fp - at->sp < SCAN_FRAME_BYTES;
    if (!has_frame && unwind_run_word(r, at->sp + WORD_BYTES, &word) == OUTCOME_OK &&
        unwind_run_is_return(r->u, word))
        return step_stack_top(r->u, WORD_BYTES);
    return (struct frame_step){ STEP_NO_RULE, { 0 } };
}

/* Code at `addr` up to the end of its page, when what lies behind cannot be read. */
static size_t flow_read(void *user, uint64_t addr, uint8_t *into, size_t size)
{
    const struct flow_place *of = user;
    size_t in_page = PAGE_BYTES - (size_t)(addr % PAGE_BYTES);
    if (unwind_run_code(of->run->u, addr, into, size))
        return size;
    return in_page < size && unwind_run_code(of->run->u, addr, into, in_page) ? in_page : 0;
}

static bool flow_accept(void *user, const struct frame_rule *rule)
{
    const struct flow_place *of = user;
    struct unwind_place next;
    return frame_apply_rule(of->run, rule, of->at, &next) == OUTCOME_OK &&
           unwind_run_is_return(of->run->u, next.ip);
}

/* Native code of which no table tells: it is followed from its start, where that is known, or to its return.
 */
static struct frame_step step_flow(const struct unwind_run *r, const struct unwind_place *at,
                                   const struct unwind_code *code)
{
    struct flow_place of = { r, at };
    struct code_flow flow = { flow_read, flow_accept, &of };
    struct frame_step step = { STEP_NO_RULE, { 0 } };
    uint64_t start;
    if (!r->u->machine->follows_flow)
        return step;
    if ((elf_unwind_start(code->elf, at->ip - !at->exact - code->bias, &start) &&
         x64_flow_rule_from(&flow, start + code->bias, at->ip, &step.rule)) ||
        x64_flow_rule(&flow, at->ip, &step.rule))
        step.kind = STEP_FLOW;
    return step;
}

/* Of a caller the rule is remembered, and judged again on each stack; `known` is what is remembered. */
struct frame_step frame_step_caller_flow(const struct unwind_run *r, const struct unwind_place *at,
                                         const struct frame_step *known)
{
    struct flow_place of = { r, at };
    if (known->kind == STEP_FLOW && flow_accept(&of, &known->rule))
        return *known;
    struct unwind_code code = unwind_run_code_at(r->u, at->ip - 1);
    if (code.kind != UNWIND_CODE_ELF)
        return (struct frame_step){ STEP_NO_RULE, { 0 } };
    struct frame_step step = step_flow(r, at, &code);
    if (step.kind == STEP_FLOW)
        *frame_step_slot(r->u, at->ip) =
            (struct cached_step){ at->ip, step.rule, r->u->generation, STEP_FLOW, false };
    return step;
}

/* Where the word there is native code's, and no return address, the code has a frame, which a frame pointer
 * may tell of. */
static struct frame_step step_top_return(const struct unwind_run *r, const struct unwind_place *at,
                                         int32_t depth)
{
    uint64_t word;
    if (!r->u->machine->has_link && unwind_run_word(r, at->sp + (uint32_t)depth, &word) == OUTCOME_OK &&
        unwind_run_code_at(r->u, word).kind == UNWIND_CODE_ELF && !unwind_run_is_return(r->u, word))
        return (struct frame_step){ STEP_NO_RULE, { 0 } };
    return step_stack_top(r->u, depth);
}

/* Native code without unwind information: linkage tables, thunks for indirect jumps, what follows a system
 * call at a function's end, and libraries that were built without. */
static struct frame_step step_without_cfi(const struct unwind_run *r, const struct unwind_place *at,
                                          const struct unwind_code *code)
{
    const struct machine *machine = r->u->machine;
    uint8_t around[2 * MACHINE_CODE_BYTES] = { 0 };
    struct span before = { around, MACHINE_CODE_BYTES },
                behind = { around + MACHINE_CODE_BYTES, MACHINE_CODE_BYTES };
    if (!unwind_run_code(r->u, at->ip - MACHINE_CODE_BYTES, around, sizeof around))
        return step_stack_top(r->u, 0);
    if (machine->is_after_syscall(before)) {
        if (r->at_leaf && r->sample->registers->numbered[0] == 0 && machine->is_thread_birth(behind))
            return (struct frame_step){ STEP_ROOT, { 0 } };
        struct frame_step step = step_cfi(code->elf, at->ip - code->bias - 1);
        if (step.kind != STEP_NO_RULE)
            return step;
    }
    uint32_t depth = machine->bare_depth(before, behind);
    struct frame_step step = depth ? (struct frame_step){ STEP_NO_RULE, { 0 } } : step_flow(r, at, code);
    return step.kind == STEP_FLOW ? step : step_top_return(r, at, (int32_t)depth);
}

/* A tail jump whose frame is gone, though the tables do not say so. */
static bool is_bare_tail_jump(const struct unwind_run *r, const struct unwind_place *at,
                              const struct unwind_code *code, const struct frame_rule *rule)
{
    const struct machine *machine = r->u->machine;
    uint8_t bytes[WORD_BYTES];
    uint64_t begin, end, top, told;
    if (!machine->is_tail_jump || rule->cfa != FRAME_CFA_OFFSET || rule->cfa_register != FRAME_REGISTER_SP ||
        rule->cfa_off == WORD_BYTES || !unwind_run_code(r->u, at->ip, bytes, sizeof bytes) ||
        !elf_unwind_function(code->elf, at->ip - code->bias, &begin, &end) ||
        !machine->is_tail_jump(span_of(bytes, sizeof bytes), at->ip - code->bias, begin, end))
        return false;
    /* gcc jumps to the cold part of a function too, with its frame in place: then the tables are right */
    if (unwind_run_word(r, at->sp + (uint64_t)(int64_t)(rule->cfa_off + rule->ra_off), &told) != OUTCOME_OK ||
        unwind_run_is_return(r->u, told))
        return false;
    return unwind_run_word(r, at->sp, &top) == OUTCOME_OK && unwind_run_is_return(r->u, top);
}

/* Whether an epilog of the function [begin, end) is under way; `addr` in its terms. */
static bool is_epilog_in(const struct unwind_run *r, const struct unwind_place *at, uint64_t addr,
                         uint64_t begin, uint64_t end, struct frame_rule *out)
{
    uint8_t bytes[EPILOG_BYTES];
    size_t size = end - addr < sizeof bytes ? (size_t)(end - addr) : sizeof bytes;
    return r->u->machine->epilog && unwind_run_code(r->u, at->ip, bytes, size) &&
           r->u->machine->epilog(span_of(bytes, size), addr, begin, end, out);
}

/* Of a method compiled ahead. */
static bool is_ahead_epilog(const struct unwind_run *r, const struct unwind_place *at,
                            const struct unwind_code *code, struct frame_rule *out)
{
    uint64_t addr = at->ip - code->bias, begin, end;
    return addr >= code->elf->ahead && addr < code->elf->ahead_end &&
           elf_unwind_function(code->elf, addr, &begin, &end) && is_epilog_in(r, at, addr, begin, end, out);
}

static struct frame_step exact_cfi(const struct unwind_run *r, const struct unwind_place *at,
                                   const struct unwind_code *code)
{
    uint64_t addr = at->ip - code->bias;
    struct frame_step step = or_fault(r->u, code, addr, or_signal(r->u, at->ip, step_cfi(code->elf, addr)));
    if (step.kind == STEP_NO_RULE && step.rule.cfa == FRAME_CFA_NONE)
        return step_without_cfi(r, at, code);
    if (step.kind == STEP_CFI && is_ahead_epilog(r, at, code, &step.rule))
        step.kind = STEP_INFO;
    if (step.kind == STEP_CFI && is_bare_tail_jump(r, at, code, &step.rule))
        return step_stack_top(r->u, 0);
    return step;
}

/* Whether an epilog is under way that the function's info does not tell of; `addr` as the function has it. */
static bool is_epilog(const struct unwind_run *r, const struct unwind_place *at,
                      const struct unwind_function *function, uint64_t addr, struct frame_rule *out)
{
    bool in_prolog = function->info.size > 1 && addr - function->begin < function->info.data[1];
    return !in_prolog && is_epilog_in(r, at, addr, function->begin, function->end, out);
}

static struct frame_step exact_managed(const struct unwind_run *r, const struct unwind_place *at,
                                       const struct unwind_code *code)
{
    struct unwind_function function;
    uint64_t addr;
    if (!managed_function(code, at->ip, &function, &addr))
        return step_stub(r, at);
    struct frame_step step = step_info(&function, addr);
    if (is_epilog(r, at, &function, addr, &step.rule))
        step.kind = STEP_INFO;
    return step;
}

/* The frame of the leaf, or of what a signal interrupted: it can be anywhere in its function. */
struct frame_step frame_step_exact(const struct unwind_run *r, const struct unwind_place *at)
{
    struct unwind_code code = unwind_run_code_at(r->u, at->ip);
    switch (code.kind) {
    case UNWIND_CODE_ELF:
        return exact_cfi(r, at, &code);
    case UNWIND_CODE_PE:
    case UNWIND_CODE_JITTED:
        return exact_managed(r, at, &code);
    default: /* a jump into nothing leaves the return address where it was as well */
        return or_signal(r->u, at->ip, step_stub(r, at));
    }
}
