#include "unwind/unwinder.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "unwind/chain_splice.h"
#include "unwind/root_tails.h"
#include "unwind/x64_flow.h"

enum {
    WORD_BYTES = 8,
    PAGE_BYTES = 4096,
    STACK_REACH_BYTES = 256 << 20, /* an address so far above the bytes may still be of this stack */
    ENTRY_BYTES = 0x40,            /* of ld.so's entry, which has no unwind information */
    SCAN_FRAME_BYTES = 64,
    CALL_REACH_BYTES = 128,      /* below a frame, of where its call has put the return address */
    EPILOG_BYTES = 96,           /* of code that tells whether an epilog is under way */
    SAVED_SP_REACH_BYTES = 2048, /* above SP, of the place where hand-written code keeps what SP was */
    SAVED_SP_FRAME_BYTES = 4096, /* of its frame from there on, which is aligned */
    RED_ZONE_BYTES = 128, /* below SP, that a function may use: System V ABI, AMD64 supplement, 3.2.2 */
};

enum step_kind {
    STEP_NO_CODE,   /* nothing executable is there */
    STEP_NO_RULE,   /* code, of which nothing is known */
    STEP_CFI,       /* `rule` says how to go on */
    STEP_INFO,      /* as well */
    STEP_STACK_TOP, /* as well */
    STEP_FLOW,      /* as well: how the code goes on, which leads to a return address on this stack */
    STEP_HIJACKED,  /* the runtime's trap: the frame pointer is that of the caller it replaced */
    STEP_ROOT,      /* a thread's first frame */
};

struct step {
    enum step_kind kind;
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
struct place {
    uint64_t ip, sp, fp;
    bool exact, hijacked, no_call;
    bool sp_at_least; /* sp may lie higher: only the frame pointer was followed */
};

/* One sample under way. */
struct run {
    struct unwinder *u;
    const struct unwind_sample *sample;
    uint64_t stack_start;
    uint64_t link;   /* with has_link */
    bool has_link;   /* this frame's link register is known: it is the leaf, or was interrupted */
    bool at_leaf;    /* the registers are those of the sample */
    bool above_leaf; /* the leaf is native code, which may have kept them for its caller */
    size_t later;    /* so many frames came of the sample; 0 while all do */
};

enum outcome { OUTCOME_OK, OUTCOME_CUT, OUTCOME_FAILED };

/* Where code is followed. */
struct flow_place {
    const struct run *run;
    const struct place *at;
};

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

/* A word of the stack. */
static enum outcome stack_read(const struct run *r, uint64_t addr, uint64_t *out)
{
    const struct unwind_sample *s = r->sample;
    uint64_t off = addr - r->stack_start, size = s->stack.size;
    if (addr >= r->stack_start && size >= WORD_BYTES && off <= size - WORD_BYTES) {
        *out = load_u64le(s->stack.data + off);
        return OUTCOME_OK;
    }
    if (s->read_word && s->read_word(s->user, addr, out))
        return OUTCOME_OK;
    if (r->later && addr >= r->stack_start && s->read_later(s->user, addr, out))
        return OUTCOME_OK;
    return addr >= r->stack_start && off < size + STACK_REACH_BYTES ? OUTCOME_CUT : OUTCOME_FAILED;
}

static bool read_code(const struct unwinder *u, uint64_t addr, uint8_t *into, size_t size)
{
    return u->space.read_code && u->space.read_code(u->space.user, addr, into, size);
}

static enum outcome rule_apply(const struct run *r, const struct frame_rule *rule, const struct place *at,
                               struct place *out);

static struct unwind_code code_at(const struct unwinder *u, uint64_t addr)
{
    return u->space.find(u->space.user, addr);
}

static bool is_return_address(const struct unwinder *u, uint64_t addr)
{
    uint8_t before[WORD_BYTES];
    return addr > sizeof before && code_at(u, addr - 1).kind != UNWIND_CODE_NONE &&
           read_code(u, addr - sizeof before, before, sizeof before) &&
           u->machine->is_after_call(span_of(before, sizeof before));
}

/* The return address is where a call puts it, but for `depth` bytes that were pushed since. */
static struct step step_stack_top(const struct unwinder *u, int32_t depth)
{
    struct step step = { STEP_STACK_TOP,
                         { .cfa = FRAME_CFA_OFFSET, .cfa_register = FRAME_REGISTER_SP, .cfa_off = depth } };
    if (!u->machine->has_link) {
        step.rule.cfa_off += WORD_BYTES;
        step.rule.ra = FRAME_AT_CFA;
        step.rule.ra_off = -WORD_BYTES;
    }
    return step;
}

/* `addr` is as linked; the trap's information is off by the word it reserves for the real return address. */
static struct step step_cfi(const struct elf_unwind *elf, uint64_t addr)
{
    const struct frame_rule *rule = elf_unwind_rule(elf, addr);
    if (rule->cfa == FRAME_CFA_NONE) {
        bool entering = elf->entry && addr >= elf->entry && addr - elf->entry < ENTRY_BYTES;
        return (struct step){ entering ? STEP_ROOT : STEP_NO_RULE, *rule };
    }
    if (rule->ra == FRAME_UNDEFINED)
        return (struct step){ STEP_ROOT, *rule };
    if (rule->cfa == FRAME_CFA_UNKNOWN)
        return (struct step){ STEP_NO_RULE, *rule };
    struct step step = { STEP_CFI, *rule };
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

static struct step step_info(const struct unwind_function *function, uint64_t addr)
{
    struct step step = { STEP_INFO, { 0 } };
    uint64_t off = addr - function->begin;
    if (!function->format->rule(function->info, off < UINT32_MAX ? (uint32_t)off : UINT32_MAX, &step.rule))
        step.kind = STEP_NO_RULE;
    return step;
}

/* What a signal handler returns to, where its tables do not tell. */
static bool is_signal_return(const struct unwinder *u, uint64_t ip)
{
    uint8_t code[MACHINE_SIGNAL_RETURN_BYTES];
    return u->machine->is_signal_return && read_code(u, ip, code, sizeof code) &&
           u->machine->is_signal_return(span_of(code, sizeof code));
}

/* `step` is what tables tell of `ip`; of what a handler returns to they tell nothing, or nothing that is
 * right. */
static struct step or_signal(const struct unwinder *u, uint64_t ip, struct step step)
{
    bool told = step.kind > STEP_NO_RULE && !step.rule.signal_frame;
    return told || !is_signal_return(u, ip) ? step : (struct step){ STEP_CFI, u->machine->signal_rule };
}

/* The call of a thread's function, behind which the thread ends: in musl's clone(). */
static bool is_thread_root(const struct unwinder *u, uint64_t ip)
{
    uint8_t code[MACHINE_CODE_BYTES];
    return read_code(u, ip, code, sizeof code) && u->machine->is_thread_exit(span_of(code, sizeof code));
}

/*
 * Where a function begins that no call was made from: whoever made this stack had it return there. So glibc's
 * coroutines begin (makecontext(3)).
 */
static bool is_made_root(const struct unwinder *u, const struct unwind_code *code, uint64_t ip)
{
    uint64_t begin, end;
    return elf_unwind_function(code->elf, ip - code->bias, &begin, &end) && begin == ip - code->bias &&
           !is_return_address(u, ip);
}

static struct step resolve_native(const struct unwinder *u, const struct unwind_code *code, uint64_t ip)
{
    if (code->elf->hijack && ip - code->bias == code->elf->hijack)
        return (struct step){ STEP_HIJACKED, { 0 } };
    struct step step = or_signal(u, ip, step_cfi(code->elf, ip - 1 - code->bias));
    if (step.kind == STEP_NO_RULE && step.rule.cfa == FRAME_CFA_NONE && is_made_root(u, code, ip))
        return (struct step){ STEP_ROOT, { 0 }, .no_call = true };
    if (step.kind == STEP_NO_RULE && step.rule.cfa == FRAME_CFA_NONE && is_thread_root(u, ip))
        return (struct step){ STEP_ROOT, { 0 } };
    return step;
}

/* The frame of a caller: `ip` is what its call returns to. Kept out of caller_step(), whose registers it
 * would take. */
__attribute__((noinline)) static struct step resolve_caller(const struct unwinder *u, uint64_t ip)
{
    struct unwind_code code = code_at(u, ip - 1);
    struct unwind_function function;
    uint64_t addr;
    switch (code.kind) {
    case UNWIND_CODE_NONE:
        if (code_at(u, ip).kind == UNWIND_CODE_NONE)
            return (struct step){ STEP_NO_CODE, { 0 } };
        return or_signal(u, ip, (struct step){ STEP_NO_CODE, { 0 } }); /* the first thing in its mapping */
    case UNWIND_CODE_ELF:
        return resolve_native(u, &code, ip);
    case UNWIND_CODE_PE:
    case UNWIND_CODE_JITTED:
        if (managed_function(&code, ip - 1, &function, &addr))
            return step_info(&function, addr + 1);
        return (struct step){ STEP_NO_RULE, { 0 } };
    default:
        return or_signal(u, ip, (struct step){ STEP_NO_RULE, { 0 } });
    }
}

static struct cached_step *cache_slot(const struct unwinder *u, uint64_t ip)
{
    return &u->cache[(ip * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - u->cache_bits)];
}

/* Remembered, unless nothing is known: that can change without anything known becoming wrong. */
static struct step caller_step(struct unwinder *u, uint64_t ip)
{
    struct cached_step *cached = cache_slot(u, ip);
    if (cached->ip == ip && cached->generation == u->generation)
        return (struct step){ (enum step_kind)cached->kind, cached->rule, cached->no_call };
    struct step step = resolve_caller(u, ip);
    step.no_call |= step.rule.signal_frame; /* a handler returns there */
    if (step.kind != STEP_NO_CODE && step.kind != STEP_NO_RULE)
        *cached = (struct cached_step){ ip, step.rule, u->generation, (uint8_t)step.kind, step.no_call };
    return step;
}

/* Whether the link register is that of the call that led here: a method of which nothing is known calls, too.
 */
static bool is_link_of_caller(const struct run *r, const struct place *at)
{
    return is_return_address(r->u, r->link) && (code_at(r->u, at->ip).kind != UNWIND_CODE_OTHER ||
                                                code_at(r->u, r->link - 1).kind != UNWIND_CODE_OTHER);
}

/* In a stub the return address is where the call put it, or below one word that the stub pushed. */
static struct step step_stub(const struct run *r, const struct place *at)
{
    uint64_t word;
    if (r->has_link)
        return is_link_of_caller(r, at) ? step_stack_top(r->u, 0) : (struct step){ STEP_NO_RULE, { 0 } };
    if (stack_read(r, at->sp, &word) == OUTCOME_OK && is_return_address(r->u, word))
        return step_stack_top(r->u, 0);
    /* the frame of a method looks the same: saved frame pointer, return address */
    bool has_frame = at->fp >= at->sp && at->fp - at->sp < SCAN_FRAME_BYTES;
    if (!has_frame && stack_read(r, at->sp + WORD_BYTES, &word) == OUTCOME_OK &&
        is_return_address(r->u, word))
        return step_stack_top(r->u, WORD_BYTES);
    return (struct step){ STEP_NO_RULE, { 0 } };
}

/* Code at `addr` up to the end of its page, when what lies behind cannot be read. */
static size_t flow_read(void *user, uint64_t addr, uint8_t *into, size_t size)
{
    const struct flow_place *of = user;
    size_t in_page = PAGE_BYTES - (size_t)(addr % PAGE_BYTES);
    if (read_code(of->run->u, addr, into, size))
        return size;
    return in_page < size && read_code(of->run->u, addr, into, in_page) ? in_page : 0;
}

static bool flow_accept(void *user, const struct frame_rule *rule)
{
    const struct flow_place *of = user;
    struct place next;
    return rule_apply(of->run, rule, of->at, &next) == OUTCOME_OK && is_return_address(of->run->u, next.ip);
}

/* Native code of which no table tells: it is followed from its start, where that is known, or to its return.
 */
static struct step step_flow(const struct run *r, const struct place *at, const struct unwind_code *code)
{
    struct flow_place of = { r, at };
    struct code_flow flow = { flow_read, flow_accept, &of };
    struct step step = { STEP_NO_RULE, { 0 } };
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
static struct step step_caller_flow(const struct run *r, const struct place *at, const struct step *known)
{
    struct flow_place of = { r, at };
    if (known->kind == STEP_FLOW && flow_accept(&of, &known->rule))
        return *known;
    struct unwind_code code = code_at(r->u, at->ip - 1);
    if (code.kind != UNWIND_CODE_ELF)
        return (struct step){ STEP_NO_RULE, { 0 } };
    struct step step = step_flow(r, at, &code);
    if (step.kind == STEP_FLOW)
        *cache_slot(r->u, at->ip) =
            (struct cached_step){ at->ip, step.rule, r->u->generation, STEP_FLOW, false };
    return step;
}

/* Native code without unwind information: linkage tables, thunks for indirect jumps, what follows a system
 * call at a function's end, and libraries that were built without. */
static struct step step_without_cfi(const struct run *r, const struct place *at,
                                    const struct unwind_code *code)
{
    const struct machine *machine = r->u->machine;
    uint8_t around[2 * MACHINE_CODE_BYTES] = { 0 };
    struct span before = { around, MACHINE_CODE_BYTES },
                behind = { around + MACHINE_CODE_BYTES, MACHINE_CODE_BYTES };
    if (!read_code(r->u, at->ip - MACHINE_CODE_BYTES, around, sizeof around))
        return step_stack_top(r->u, 0);
    if (machine->is_after_syscall(before)) {
        if (r->at_leaf && r->sample->registers->numbered[0] == 0 && machine->is_thread_birth(behind))
            return (struct step){ STEP_ROOT, { 0 } };
        struct step step = step_cfi(code->elf, at->ip - code->bias - 1);
        if (step.kind != STEP_NO_RULE)
            return step;
    }
    uint32_t depth = machine->bare_depth(before, behind);
    struct step step = depth ? (struct step){ STEP_NO_RULE, { 0 } } : step_flow(r, at, code);
    return step.kind == STEP_FLOW ? step : step_stack_top(r->u, (int32_t)depth);
}

/* A tail jump whose frame is gone, though the tables do not say so. */
static bool is_bare_tail_jump(const struct run *r, const struct place *at, const struct unwind_code *code,
                              const struct frame_rule *rule)
{
    const struct machine *machine = r->u->machine;
    uint8_t bytes[WORD_BYTES];
    uint64_t begin, end, top, told;
    if (!machine->is_tail_jump || rule->cfa != FRAME_CFA_OFFSET || rule->cfa_register != FRAME_REGISTER_SP ||
        rule->cfa_off == WORD_BYTES || !read_code(r->u, at->ip, bytes, sizeof bytes) ||
        !elf_unwind_function(code->elf, at->ip - code->bias, &begin, &end) ||
        !machine->is_tail_jump(span_of(bytes, sizeof bytes), at->ip - code->bias, begin, end))
        return false;
    /* gcc jumps to the cold part of a function too, with its frame in place: then the tables are right */
    if (stack_read(r, at->sp + (uint64_t)(int64_t)(rule->cfa_off + rule->ra_off), &told) != OUTCOME_OK ||
        is_return_address(r->u, told))
        return false;
    return stack_read(r, at->sp, &top) == OUTCOME_OK && is_return_address(r->u, top);
}

static struct step exact_cfi(const struct run *r, const struct place *at, const struct unwind_code *code)
{
    struct step step = or_signal(r->u, at->ip, step_cfi(code->elf, at->ip - code->bias));
    if (step.kind == STEP_NO_RULE && step.rule.cfa == FRAME_CFA_NONE)
        return step_without_cfi(r, at, code);
    if (step.kind == STEP_CFI && is_bare_tail_jump(r, at, code, &step.rule))
        return step_stack_top(r->u, 0);
    return step;
}

/* Whether an epilog is under way that the function's info does not tell of; `addr` as the function has it. */
static bool is_epilog(const struct run *r, const struct place *at, const struct unwind_function *function,
                      uint64_t addr, struct frame_rule *out)
{
    uint8_t bytes[EPILOG_BYTES];
    uint64_t left = function->end - addr;
    size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;
    if (!r->u->machine->epilog)
        return false;
    bool in_prolog = function->info.size > 1 && addr - function->begin < function->info.data[1];
    return !in_prolog && read_code(r->u, at->ip, bytes, size) &&
           r->u->machine->epilog(span_of(bytes, size), addr, function->begin, function->end, out);
}

static struct step exact_managed(const struct run *r, const struct place *at, const struct unwind_code *code)
{
    struct unwind_function function;
    uint64_t addr;
    if (!managed_function(code, at->ip, &function, &addr))
        return step_stub(r, at);
    struct step step = step_info(&function, addr);
    if (is_epilog(r, at, &function, addr, &step.rule))
        step.kind = STEP_INFO;
    return step;
}

/* The frame of the leaf, or of what a signal interrupted: it can be anywhere in its function. */
static struct step exact_step(const struct run *r, const struct place *at)
{
    struct unwind_code code = code_at(r->u, at->ip);
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

static bool base_value(const struct run *r, const struct place *at, uint8_t number, uint64_t *out)
{
    if (number == FRAME_REGISTER_SP && !at->sp_at_least)
        *out = at->sp;
    else if (number == FRAME_REGISTER_FP)
        *out = at->fp;
    else if ((r->at_leaf || r->above_leaf) && number < r->u->machine->register_count)
        *out = r->sample->registers->numbered[number];
    else
        return false;
    return true;
}

static uint64_t offset(uint64_t base, int32_t off)
{
    return base + (uint64_t)(int64_t)off;
}

/*
 * A copy of the stack pointer that was saved: what is told to lie below SP, where a sample has no bytes, was
 * moved there from further up (OpenSSL, crypto/sha/asm). It leads to a return address.
 */
static bool find_saved_sp(const struct run *r, uint64_t sp, uint64_t *out)
{
    uint64_t saved, top;
    for (uint64_t addr = sp; addr < sp + SAVED_SP_REACH_BYTES; addr += WORD_BYTES) {
        if (stack_read(r, addr, &saved) != OUTCOME_OK)
            return false;
        if (saved > addr && saved - addr < SAVED_SP_FRAME_BYTES && saved % WORD_BYTES == 0 &&
            stack_read(r, saved, &top) == OUTCOME_OK && is_return_address(r->u, top)) {
            *out = saved;
            return true;
        }
    }
    return false;
}

static enum outcome saved_sp(const struct run *r, const struct frame_rule *rule, const struct place *at,
                             uint64_t addr, uint64_t *out)
{
    enum outcome outcome = stack_read(r, addr, out);
    if (outcome != OUTCOME_OK && r->at_leaf && addr < at->sp && rule->cfa_above == WORD_BYTES &&
        find_saved_sp(r, at->sp, out))
        outcome = OUTCOME_OK;
    *out += rule->cfa_above;
    return outcome;
}

static enum outcome rule_cfa(const struct run *r, const struct frame_rule *rule, const struct place *at,
                             uint64_t *out)
{
    uint64_t base, index = 0;
    switch (rule->cfa) {
    case FRAME_CFA_PLT:
        *out = offset(at->sp, rule->cfa_off) + ((at->ip & 15) >= rule->plt_edge ? WORD_BYTES : 0);
        return OUTCOME_OK;
    case FRAME_CFA_OFFSET:
    case FRAME_CFA_DEREF:
        if (!base_value(r, at, rule->cfa_register, &base) ||
            (rule->cfa_index && !base_value(r, at, rule->cfa_index - 1, &index)))
            return OUTCOME_FAILED;
        *out = offset(base, rule->cfa_off) + WORD_BYTES * index;
        return rule->cfa == FRAME_CFA_DEREF ? saved_sp(r, rule, at, *out, out) : OUTCOME_OK;
    default:
        return OUTCOME_FAILED;
    }
}

/* The word that a place names. A register that is still where it was fails: the caller knows it. */
static enum outcome rule_word(const struct run *r, uint8_t place, int32_t off, uint64_t cfa,
                              const struct place *at, uint64_t *out)
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
    return stack_read(r, offset(base, off), out);
}

/* Where a call leaves the return address in a register, and it still is there. */
static enum outcome link_word(const struct run *r, uint64_t *out)
{
    *out = r->link;
    return r->has_link ? OUTCOME_OK : OUTCOME_FAILED;
}

/* Where the caller goes on. */
static enum outcome return_word(const struct run *r, const struct frame_rule *rule, uint64_t cfa,
                                const struct place *at, uint64_t *out)
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
static bool is_above_interrupted(const struct run *r, const struct frame_rule *rule)
{
    return !r->u->machine->has_link && rule->ra == FRAME_AT_CFA &&
           rule->ra_off <= -(RED_ZONE_BYTES + WORD_BYTES);
}

/* The stack that a signal interrupted need not be the one on which it is handled. */
static bool is_interrupted(const struct run *r, const struct place *at)
{
    return at->exact && !r->at_leaf;
}

/* Of the leaf's caller: whether the leaf kept the register is not told. */
static bool is_by_kept_register(const struct run *r, const struct frame_rule *rule)
{
    return !r->at_leaf && rule->cfa != FRAME_CFA_PLT &&
           (rule->cfa_register < FRAME_REGISTER_SP || rule->cfa_index || rule->ra == FRAME_IN_REGISTER);
}

static enum outcome rule_apply(const struct run *r, const struct frame_rule *rule, const struct place *at,
                               struct place *out)
{
    struct place next = { .fp = at->fp, .exact = rule->signal_frame || is_above_interrupted(r, rule) };
    enum outcome outcome = rule_cfa(r, rule, at, &next.sp);
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
    if (is_by_kept_register(r, rule) && !is_return_address(r->u, next.ip))
        return OUTCOME_FAILED;
    /* clang's epilogs keep the rule of a register that was popped already: its slot is below SP then */
    bool popped = rule->fp == FRAME_AT_CFA && !leaves_stack && offset(next.sp, rule->fp_off) < at->sp;
    if (rule->fp != FRAME_SAME && rule->fp != FRAME_LOST && !popped) {
        outcome = rule_word(r, rule->fp, rule->fp_off, next.sp, at, &next.fp);
        if (outcome != OUTCOME_OK)
            return outcome;
    }
    *out = next;
    return OUTCOME_OK;
}

static enum outcome pointer_apply(const struct run *r, const struct place *at, struct place *out)
{
    struct place next = { .sp = at->fp + 2 * WORD_BYTES, .sp_at_least = !r->u->machine->record_ends_frame };
    if ((at->fp < at->sp && !is_interrupted(r, at)) || at->fp % WORD_BYTES)
        return OUTCOME_FAILED;
    enum outcome outcome = stack_read(r, at->fp + WORD_BYTES, &next.ip);
    if (outcome != OUTCOME_OK || (outcome = stack_read(r, at->fp, &next.fp)) != OUTCOME_OK)
        return outcome;
    next.ip &= r->u->address_mask;
    *out = next;
    return OUTCOME_OK;
}

/* Whether a direct call of native code leads to another function than the one that would have been called. */
static bool is_other_call(const struct run *r, const struct place *at, uint64_t ip)
{
    const struct machine *machine = r->u->machine;
    uint8_t before[WORD_BYTES];
    uint64_t target, begin, end, called, called_end;
    struct unwind_code callee = code_at(r->u, at->ip - !at->exact), code;
    if (callee.kind != UNWIND_CODE_ELF || !read_code(r->u, ip - sizeof before, before, sizeof before) ||
        !machine->is_direct_call(span_of(before, sizeof before), ip, &target))
        return false;
    code = code_at(r->u, target);
    return code.kind == UNWIND_CODE_ELF && code.elf == callee.elf && code.bias == callee.bias &&
           elf_unwind_function(code.elf, target - code.bias, &called, &called_end) &&
           called == target - code.bias &&
           elf_unwind_function(code.elf, at->ip - !at->exact - code.bias, &begin, &end) && begin != called;
}

/* Whether `next` called what is at `at`, for all that is known: its thread may have gone on. */
static bool is_call_still(const struct run *r, const struct place *at, const struct place *next)
{
    return !r->later || next->exact || (is_return_address(r->u, next->ip) && !is_other_call(r, at, next->ip));
}

static bool is_code(struct run *r, struct place *next)
{
    uint64_t top;
    if (next->exact && code_at(r->u, next->ip).kind != UNWIND_CODE_NONE)
        return true;
    if (next->exact) /* a call of what is no code was interrupted */
        return stack_read(r, next->sp, &top) == OUTCOME_OK && is_return_address(r->u, top);
    struct step step = caller_step(r->u, next->ip);
    next->hijacked = step.kind == STEP_HIJACKED;
    next->no_call = step.no_call;
    return step.kind != STEP_NO_CODE;
}

static enum unwind_found found_by(enum step_kind kind)
{
    return kind == STEP_CFI    ? UNWIND_FOUND_CFI
           : kind == STEP_INFO ? UNWIND_FOUND_UNWIND_INFO
           : kind == STEP_FLOW ? UNWIND_FOUND_FLOW
                               : UNWIND_FOUND_STACK_TOP;
}

/* From a signal's frame to what was interrupted: there the link register is known again. */
static void take_interrupted_link(struct run *r, const struct place *at)
{
    const struct machine *machine = r->u->machine;
    r->has_link =
        machine->has_link && stack_read(r, offset(at->sp, machine->signal_link_off), &r->link) == OUTCOME_OK;
    r->link &= machine->address_mask;
}

/* From a frame to its caller. False at the end, which *out_end names. */
static bool run_advance(struct run *r, struct place *at, enum unwind_found *out_found,
                        enum unwind_end *out_end)
{
    struct step step = at->exact ? exact_step(r, at) : caller_step(r->u, at->ip);
    struct place next;
    if ((step.kind == STEP_NO_RULE || step.kind == STEP_FLOW) && !at->exact)
        step = step_caller_flow(r, at, &step);
    enum outcome outcome = OUTCOME_FAILED;
    if (step.kind == STEP_ROOT) {
        *out_end = UNWIND_END_ROOT;
        return false;
    }
    if (step.kind == STEP_CFI || step.kind == STEP_INFO || step.kind == STEP_STACK_TOP ||
        step.kind == STEP_FLOW) {
        outcome = rule_apply(r, &step.rule, at, &next);
        *out_found = found_by(step.kind);
        if (outcome == OUTCOME_OK && next.ip == 0 && step.kind == STEP_CFI && !next.exact) {
            *out_end = UNWIND_END_ROOT; /* so a thread's first function without a mark of its own is called */
            return false;
        }
        if (outcome == OUTCOME_OK && (!is_code(r, &next) || !is_call_still(r, at, &next)))
            outcome = OUTCOME_FAILED;
    }
    if (outcome == OUTCOME_FAILED) {
        outcome = pointer_apply(r, at, &next);
        *out_found = UNWIND_FOUND_FRAME_POINTER;
        if (outcome == OUTCOME_OK && (!is_code(r, &next) || !is_call_still(r, at, &next)))
            outcome = OUTCOME_FAILED;
    }
    if (outcome != OUTCOME_OK) {
        *out_end = outcome == OUTCOME_CUT ? UNWIND_END_CUT : UNWIND_END_BROKEN;
        return false;
    }
    r->above_leaf = r->at_leaf && !next.exact && code_at(r->u, at->ip).kind == UNWIND_CODE_ELF;
    r->at_leaf = r->has_link = false;
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
static bool is_call_under_way(const struct run *r, const struct place *at)
{
    uint64_t then, now;
    for (uint64_t addr = at->sp - WORD_BYTES; at->sp - addr <= CALL_REACH_BYTES; addr -= WORD_BYTES) {
        if (stack_read(r, addr, &then) != OUTCOME_OK)
            return false;
        if ((then & r->u->address_mask) == at->ip)
            return r->sample->read_later(r->sample->user, addr, &now) && now == then;
    }
    return false;
}

static bool run_later(struct run *r, const struct place *at, const struct unwind_result *result)
{
    if (result->end != UNWIND_END_CUT || r->later || !r->sample->read_later || !is_call_under_way(r, at))
        return false;
    r->later = result->count;
    return true;
}

/* Whether all that the kernel found behind the sample's bytes is among what memory told later. */
static bool is_as_kernel_says(const struct run *r, const struct unwind_frame *frames, size_t count)
{
    const struct unwind_sample *s = r->sample;
    size_t i = chain_splice(frames, r->later, s->kernel_chain, s->kernel_count), at = r->later;
    for (; i > 0 && i < s->kernel_count; i++) {
        while (at < count && frames[at].ip != s->kernel_chain[i])
            at++;
        if (at == count)
            return caller_step(r->u, s->kernel_chain[i]).kind == STEP_NO_CODE; /* it went astray */
    }
    return true;
}

/* What was read later counts if it led to where the thread begins. */
static void run_judge_later(const struct run *r, const struct unwind_frame *frames,
                            struct unwind_result *result)
{
    bool is_root = result->end == UNWIND_END_ROOT && result->end_sp &&
                   (!r->sample->root_sp || r->sample->root_sp == result->end_sp);
    if (!r->later || (is_root && is_as_kernel_says(r, frames, result->count)))
        return;
    result->count = r->later;
    result->end = UNWIND_END_CUT;
}

static void run_end_by_tails(struct run *r, struct unwind_frame *frames, size_t max,
                             struct unwind_result *result)
{
    for (unsigned i = 0; i < ROOT_TAIL_FRAMES && result->count < max; i++) {
        uint64_t caller = root_tails_caller(&r->u->tails, frames[result->count - 1].ip);
        if (!caller)
            return;
        frames[result->count++] = (struct unwind_frame){ caller, UNWIND_FOUND_ROOT_TAIL };
        if (caller_step(r->u, caller).kind == STEP_ROOT) {
            result->end = UNWIND_END_ROOT;
            return;
        }
    }
}

/* What the kernel found beyond the frames that we have. */
static void run_splice(struct run *r, struct unwind_frame *frames, size_t max, struct unwind_result *result)
{
    const struct unwind_sample *s = r->sample;
    size_t i = chain_splice(frames, result->count, s->kernel_chain, s->kernel_count);
    for (; i > 0 && i < s->kernel_count; i++) {
        struct place next = { .ip = s->kernel_chain[i] };
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
    if (last->found == UNWIND_FOUND_KERNEL && caller_step(r->u, last->ip).kind == STEP_ROOT)
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
        __builtin_prefetch(cache_slot(u, sample->kernel_chain[i]));
}

struct unwind_result unwinder_run(struct unwinder *u, const struct unwind_sample *sample,
                                  struct unwind_frame *frames, size_t max)
{
    const struct unwind_registers *registers = sample->registers;
    struct run r = { .u = u,
                     .sample = sample,
                     .stack_start = registers->sp,
                     .link = registers->link & u->address_mask,
                     .has_link = u->machine->has_link,
                     .at_leaf = true };
    struct place at = { .ip = registers->ip, .sp = registers->sp, .fp = registers->fp, .exact = true };
    struct unwind_result result = { .end = UNWIND_END_DEPTH, .end_ip = at.ip };
    enum unwind_found found = UNWIND_FOUND_LEAF;
    expect_frames(u, sample);
    while (result.count < max) {
        frames[result.count++] =
            (struct unwind_frame){ at.ip, (uint8_t)found, at.exact || at.no_call, at.hijacked };
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
