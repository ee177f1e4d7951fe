#include "unwind/x64_flow.h"

#include <string.h>

#include "read/x64_instruction.h"

enum {
    INSTRUCTIONS_MAX = 2000,       /* read for one rule, on the way to a return */
    FUNCTION_BYTES_MAX = 32 << 10, /* from a start: of a longer function what lies behind is not known */
    WAYS_MAX = 48,                 /* places from which the code is to be followed, or was */
    WAYS_IN_MAX = 512,             /* the same from a start */
    RULES_MAX = 6,                 /* that differ, and that were not accepted */
    WINDOW_BYTES = 256,            /* of code read at once */
    FRAME_BYTES_MAX = 1 << 28,
    WORD_BYTES = 8,
};

/* Where a register's value is, in terms of the registers at the start. */
enum whence { OF_SP, OF_FP, SAVED_AT_SP, SAVED_AT_FP, LOST };

struct value {
    enum whence whence;
    int64_t off;
};

struct state {
    uint64_t addr;
    struct value sp, fp;
    struct value saved_to; /* where the code that was followed put RBP */
    struct value saved;    /* as it was then */
};

/* The way from a function's start to an address. Compilers keep one frame at each: one way there is enough.
 */
struct way_in {
    uint64_t start, until;
    bool has_switch;
    struct state at_switch; /* behind a jump through a register or memory, where the frame is largest */
    uint8_t seen[FUNCTION_BYTES_MAX / 8];
};

struct walk {
    const struct code_flow *flow;
    struct way_in *way_in; /* NULL: to a return */
    struct state *ways;
    size_t way_count, way_next, way_max;
    struct frame_rule refused[RULES_MAX];
    size_t refused_count;
    unsigned instructions_left;
    uint64_t window_addr;
    size_t window_size;
    uint8_t window[WINDOW_BYTES];
};

static bool read_instruction(struct walk *w, uint64_t addr, struct x64_instruction *out)
{
    uint64_t off = addr - w->window_addr;
    if (off >= w->window_size || w->window_size - off < X64_INSTRUCTION_MAX) {
        w->window_addr = addr;
        w->window_size = w->flow->read(w->flow->user, addr, w->window, sizeof w->window);
        off = 0;
    }
    return x64_instruction_read(span_of(w->window + off, w->window_size - (size_t)off), out);
}

static bool is_same(struct value a, struct value b)
{
    return a.whence == b.whence && a.off == b.off;
}

/* A place is followed once, in the order in which they were found: the nearest return comes first. */
static void add_way(struct walk *w, const struct state *state)
{
    for (size_t i = 0; i < w->way_count; i++)
        if (w->ways[i].addr == state->addr && is_same(w->ways[i].sp, state->sp))
            return;
    if (w->way_count < w->way_max)
        w->ways[w->way_count++] = *state;
}

static void move_sp(struct state *s, int64_t by)
{
    s->sp.off += by;
    if (s->sp.off > FRAME_BYTES_MAX || s->sp.off < -FRAME_BYTES_MAX)
        s->sp.whence = LOST;
}

static struct value place(struct value base, int64_t off)
{
    return (struct value){ base.whence, base.off + off };
}

/* From a function's start only the first is of the caller's RBP. */
static void save_fp(const struct walk *w, struct state *s, int64_t off)
{
    if (w->way_in && s->saved_to.whence != LOST)
        return;
    s->saved_to = place(s->sp, off);
    s->saved = s->fp;
}

static void load_fp(struct state *s, struct value from)
{
    if (is_same(from, s->saved_to))
        s->fp = s->saved;
    else if (from.whence == OF_SP && from.off >= 0) /* below SP nothing was kept when this began */
        s->fp = (struct value){ SAVED_AT_SP, from.off };
    else
        s->fp = (struct value){ from.whence == OF_FP ? SAVED_AT_FP : LOST, from.off };
}

static void set_sp(struct state *s, struct value from, int64_t off)
{
    s->sp = from.whence == OF_SP || from.whence == OF_FP ? place(from, off) : (struct value){ LOST, 0 };
    move_sp(s, 0);
}

/* What the instruction does to the registers. */
static void apply(const struct walk *w, struct state *s, const struct x64_instruction *i)
{
    switch (i->kind) {
    case X64_PUSH_RBP:
        save_fp(w, s, -WORD_BYTES);
        move_sp(s, -WORD_BYTES);
        break;
    case X64_PUSH:
        move_sp(s, -WORD_BYTES);
        break;
    case X64_LEAVE:
        set_sp(s, s->fp, 0);
        load_fp(s, s->sp);
        move_sp(s, WORD_BYTES);
        break;
    case X64_POP_RBP:
        load_fp(s, s->sp);
        move_sp(s, WORD_BYTES);
        break;
    case X64_POP:
        move_sp(s, WORD_BYTES);
        break;
    case X64_RSP_OF_RSP:
        move_sp(s, i->value);
        break;
    case X64_RSP_OF_RBP:
        set_sp(s, s->fp, i->value);
        break;
    case X64_RBP_OF_RSP:
        s->fp = place(s->sp, i->value);
        break;
    case X64_SAVE_RBP:
        save_fp(w, s, i->value);
        break;
    case X64_LOAD_RBP:
        load_fp(s, place(s->sp, i->value));
        break;
    case X64_RSP_LOST:
        s->sp = (struct value){ LOST, 0 };
        break;
    default:
        break;
    }
}

/* The caller's frame pointer, when the function returns with `fp`. */
static bool set_fp_rule(struct value fp, struct frame_rule *rule)
{
    rule->fp = fp.whence == SAVED_AT_SP ? FRAME_AT_SP : fp.whence == SAVED_AT_FP ? FRAME_AT_FP : FRAME_LOST;
    rule->fp_off = (int32_t)fp.off;
    if (fp.whence == OF_FP && fp.off == 0) {
        rule->fp = FRAME_SAME;
        rule->fp_off = 0;
    }
    return fp.off <= FRAME_BYTES_MAX && fp.off >= -FRAME_BYTES_MAX;
}

static bool is_refused(const struct walk *w, const struct frame_rule *rule)
{
    for (size_t i = 0; i < w->refused_count; i++)
        if (w->refused[i].cfa_register == rule->cfa_register && w->refused[i].cfa_off == rule->cfa_off)
            return true;
    return false;
}

static bool is_accepted(struct walk *w, const struct frame_rule *rule, struct frame_rule *out)
{
    if (is_refused(w, rule))
        return false;
    if (w->flow->accept(w->flow->user, rule)) {
        *out = *rule;
        return true;
    }
    if (w->refused_count < RULES_MAX)
        w->refused[w->refused_count++] = *rule;
    else
        w->instructions_left = 0;
    return false;
}

/* At a return, or where a jump takes its place. */
static bool end_way(struct walk *w, const struct state *s, struct frame_rule *out)
{
    struct frame_rule rule = { .cfa = FRAME_CFA_OFFSET, .ra = FRAME_AT_CFA, .ra_off = -WORD_BYTES };
    if (s->sp.whence == LOST || (s->sp.whence == OF_SP && s->sp.off < 0) || !set_fp_rule(s->fp, &rule))
        return false;
    rule.cfa_register = s->sp.whence == OF_SP ? FRAME_REGISTER_SP : FRAME_REGISTER_FP;
    rule.cfa_off = (int32_t)s->sp.off + WORD_BYTES;
    return is_accepted(w, &rule, out);
}

/*
 * At a jump behind which a frame is gone that RBP pointed to: it leads to another function, which takes this
 * one's place and may be code of any kind.
 */
static bool end_at_jump(struct walk *w, const struct state *s, struct frame_rule *out)
{
    bool is_gone =
        s->sp.whence == OF_FP && s->fp.whence == SAVED_AT_FP && s->sp.off == s->fp.off + WORD_BYTES;
    return !w->way_in && is_gone && end_way(w, s, out);
}

/* Where it was to go: the registers are known in terms of those at the start, where the return address is on
 * top of the stack. */
static bool end_at_address(struct walk *w, const struct state *s, struct frame_rule *out)
{
    struct frame_rule rule = { .cfa = FRAME_CFA_OFFSET, .ra = FRAME_AT_CFA, .ra_off = -WORD_BYTES };
    bool by_sp = s->sp.whence == OF_SP;
    struct value base = by_sp ? s->sp : s->fp;
    if (base.whence != OF_SP || base.off > 0)
        return false;
    rule.cfa_register = by_sp ? FRAME_REGISTER_SP : FRAME_REGISTER_FP;
    rule.cfa_off = (int32_t)-base.off + WORD_BYTES;
    /* what else is computed in RBP is not followed, so what was saved counts unless it was taken back */
    bool is_saved = s->saved_to.whence == OF_SP && s->saved.whence == OF_FP && s->saved.off == 0 &&
                    (!by_sp || s->saved_to.off >= s->sp.off);
    rule.fp = is_saved ? FRAME_AT_CFA : s->fp.whence == OF_FP && s->fp.off == 0 ? FRAME_SAME : FRAME_LOST;
    rule.fp_off = rule.fp == FRAME_AT_CFA ? (int32_t)s->saved_to.off - WORD_BYTES : 0;
    return is_accepted(w, &rule, out);
}

/* Whether the code at `addr` is of the function, and is looked at for the first time. */
static bool see(struct way_in *way, uint64_t addr)
{
    uint64_t off = addr - way->start;
    uint8_t bit = (uint8_t)(1 << off % 8);
    if (off >= FUNCTION_BYTES_MAX || (way->seen[off / 8] & bit))
        return false;
    way->seen[off / 8] |= bit;
    return true;
}

/* `s` is behind a jump, perhaps of a switch, whose cases lie there or further on. */
static void keep_switch(struct way_in *way, const struct state *s)
{
    bool is_larger = !way->has_switch || s->sp.off < way->at_switch.sp.off;
    if (s->sp.whence != OF_SP || !is_larger)
        return;
    way->has_switch = true;
    way->at_switch = *s;
}

/* From one place to where the code ends, returns, goes to a place that is known or is where it was to go.
 * True with a rule. */
static bool follow(struct walk *w, struct state s, struct frame_rule *out)
{
    struct x64_instruction i;
    for (; w->instructions_left > 0 && read_instruction(w, s.addr, &i); w->instructions_left--) {
        if (w->way_in && s.addr == w->way_in->until)
            return end_at_address(w, &s, out);
        if (w->way_in && !see(w->way_in, s.addr))
            return false;
        s.addr += i.size;
        struct state there = s;
        switch (i.kind) {
        case X64_RETURN:
        case X64_JUMP_AWAY: /* of a switch: then what it leads to has no frame */
            if (w->way_in && i.kind == X64_JUMP_AWAY)
                keep_switch(w->way_in, &s);
            return !w->way_in && end_way(w, &s, out);
        case X64_STOP:
            return false;
        case X64_JUMP:
            if (end_at_jump(w, &s, out))
                return true;
            __attribute__((fallthrough));
        case X64_BRANCH:
            there.addr += (uint64_t)i.value;
            add_way(w, &there);
            if (i.kind == X64_JUMP)
                return false;
            break;
        default:
            apply(w, &s, &i);
        }
    }
    return false;
}

static bool follow_all(struct walk *w, uint64_t from, struct frame_rule *out)
{
    struct state start = {
        .addr = from,
        .sp = { OF_SP, 0 },
        .fp = { OF_FP, 0 },
        .saved_to = { LOST, 0 },
        .saved = { LOST, 0 },
    };
    add_way(w, &start);
    for (; w->way_next < w->way_count; w->way_next++)
        if (follow(w, w->ways[w->way_next], out))
            return true;
    return false;
}

/* No way was found: through the cases of a switch one after another, each of which begins with its frame. */
static bool follow_cases(struct walk *w, struct frame_rule *out)
{
    struct x64_instruction i;
    struct state s = w->way_in->at_switch;
    for (; w->instructions_left > 0 && s.addr < w->way_in->until; w->instructions_left--) {
        if (!read_instruction(w, s.addr, &i))
            return false;
        uint64_t next = s.addr + i.size;
        bool ends =
            i.kind == X64_RETURN || i.kind == X64_JUMP || i.kind == X64_JUMP_AWAY || i.kind == X64_STOP;
        if (ends)
            s = w->way_in->at_switch;
        else
            apply(w, &s, &i);
        s.addr = next;
    }
    return s.addr == w->way_in->until && end_at_address(w, &s, out);
}

bool x64_flow_rule(const struct code_flow *flow, uint64_t addr, struct frame_rule *out)
{
    struct state ways[WAYS_MAX];
    struct walk w = {
        .flow = flow, .ways = ways, .way_max = WAYS_MAX, .instructions_left = INSTRUCTIONS_MAX
    };
    return follow_all(&w, addr, out);
}

bool x64_flow_rule_from(const struct code_flow *flow, uint64_t start, uint64_t addr, struct frame_rule *out)
{
    struct state ways[WAYS_IN_MAX];
    struct way_in way = { .start = start, .until = addr };
    struct walk w = { .flow = flow,
                      .way_in = &way,
                      .ways = ways,
                      .way_max = WAYS_IN_MAX,
                      .instructions_left = FUNCTION_BYTES_MAX };
    if (addr < start || addr - start >= FUNCTION_BYTES_MAX)
        return false;
    return follow_all(&w, start, out) || (way.has_switch && follow_cases(&w, out));
}
