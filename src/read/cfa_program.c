#include "read/cfa_program.h"

#include <string.h>

#include "read/eh_frame.h"

enum { PLT_EXPRESSION_BYTES = 11 };

/* DWARF 5, table 7.29; the two uppermost bits select the first three, which have an operand in the rest. */
enum cfa_instruction {
    CFA_ADVANCE_LOC = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum {
    OP_DEREF = 0x06,
    OP_MUL = 0x1e,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_LIT0 = 0x30,
    OP_LIT8 = 0x38,
    OP_LIT15 = 0x3f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
};

static void advance(struct cfa_program *p, uint64_t delta)
{
    if (!p->emit || delta == 0)
        return;
    p->emit(p->user, p->at, &p->rule);
    uint64_t bytes;
    if (__builtin_mul_overflow(delta, p->params->code_align, &bytes) || bytes >= p->end - p->at) {
        p->at = p->end; /* what follows is about no code of this function */
        return;
    }
    p->at += bytes;
}

static uint8_t register_number(const struct cfa_params *m, uint64_t dwarf)
{
    if (dwarf == m->sp)
        return FRAME_REGISTER_SP;
    if (dwarf == m->fp)
        return FRAME_REGISTER_FP;
    return dwarf < FRAME_REGISTER_SP ? (uint8_t)dwarf : UINT8_MAX;
}

static bool fits_int32(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

static void set_cfa(struct cfa_program *p, enum frame_cfa kind, uint8_t number, int64_t off)
{
    bool known = number != UINT8_MAX && fits_int32(off);
    p->rule.cfa = known ? kind : FRAME_CFA_UNKNOWN;
    p->rule.cfa_register = known ? number : 0;
    p->rule.cfa_off = known ? (int32_t)off : 0;
    p->rule.plt_edge = p->rule.cfa_index = p->rule.cfa_above = 0;
}

static void set_place(struct cfa_program *p, uint64_t dwarf, enum frame_place place, int64_t off)
{
    if (!fits_int32(off)) {
        place = FRAME_LOST;
        off = 0;
    }
    if (dwarf == p->params->fp) {
        p->rule.fp = place;
        p->rule.fp_off = (int32_t)off;
    } else if (dwarf == p->params->return_register) {
        p->rule.ra = place;
        p->rule.ra_off = (int32_t)off;
    }
}

/* An offset that does not fit comes out as one that is refused later. */
static int64_t factored_off(const struct cfa_program *p, int64_t factored)
{
    int64_t off;
    return __builtin_mul_overflow(factored, p->params->data_align, &off) ? INT64_MAX : off;
}

static void set_factored(struct cfa_program *p, uint64_t dwarf, int64_t factored)
{
    set_place(p, dwarf, FRAME_AT_CFA, factored_off(p, factored));
}

static void restore_place(struct cfa_program *p, uint64_t dwarf)
{
    const struct frame_rule *initial = p->initial ? p->initial : &(struct frame_rule){ 0 };
    if (dwarf == p->params->fp)
        set_place(p, dwarf, initial->fp, initial->fp_off);
    else if (dwarf == p->params->return_register)
        set_place(p, dwarf, initial->ra, initial->ra_off);
}

/* "register + offset"; *out_rest is what follows. */
static bool read_base(const struct cfa_params *m, struct span expression, uint8_t *out_register,
                      int64_t *out_off, struct span *out_rest)
{
    struct cursor e = cursor_over(expression);
    uint8_t op = cursor_u8(&e);
    if (op < OP_BREG0 || op > OP_BREG31)
        return false;
    *out_register = register_number(m, op - OP_BREG0);
    *out_off = cursor_sleb64(&e);
    *out_rest = cursor_bytes(&e, cursor_left(&e));
    return cursor_ok(&e);
}

/* SP + 8 + ((IP & 15) >= edge) * 8: what ld writes for the whole of a procedure linkage table. */
static bool is_plt(struct span e, uint8_t *out_edge)
{
    static const uint8_t plt[PLT_EXPRESSION_BYTES] = { 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a,
                                                       0,    0x2a, 0x33, 0x24, 0x22 };
    if (e.size != sizeof plt || e.data[6] < OP_LIT0 || e.data[6] > OP_LIT15 || memcmp(e.data, plt, 6) != 0 ||
        memcmp(e.data + 7, plt + 7, sizeof plt - 7) != 0)
        return false;
    *out_edge = e.data[6] - OP_LIT0;
    return true;
}

/* "+ 8 * register"; *rest is moved behind it. False when it begins so, but is not that. */
static bool read_index(const struct cfa_params *m, struct span *rest, uint8_t *out_index)
{
    uint8_t number;
    int64_t off;
    struct span tail;
    *out_index = 0;
    if (!read_base(m, *rest, &number, &off, &tail))
        return true;
    struct cursor e = cursor_over(tail);
    if (off != 0 || number >= FRAME_REGISTER_SP || cursor_u8(&e) != OP_LIT8 || cursor_u8(&e) != OP_MUL ||
        cursor_u8(&e) != OP_PLUS)
        return false;
    *out_index = number + 1;
    *rest = cursor_bytes(&e, cursor_left(&e));
    return cursor_ok(&e);
}

/*
 * What follows "register + offset" where the stack pointer was saved there: hand-written code keeps it in its
 * frame, aligned for its instructions, and what the caller had lies some bytes above it (OpenSSL,
 * crypto/bn/asm).
 */
static void set_cfa_saved(struct cfa_program *p, uint8_t number, int64_t off, struct span rest)
{
    uint8_t index;
    uint64_t above = 0;
    bool known = read_index(p->params, &rest, &index);
    struct cursor e = cursor_over(rest);
    known = known && cursor_u8(&e) == OP_DEREF;
    if (known && cursor_left(&e) > 0)
        known = cursor_u8(&e) == OP_PLUS_UCONST && (above = cursor_varuint64(&e)) <= UINT8_MAX;
    known = known && cursor_ok(&e) && cursor_left(&e) == 0;
    set_cfa(p, known ? FRAME_CFA_DEREF : FRAME_CFA_UNKNOWN, known ? number : 0, known ? off : 0);
    if (p->rule.cfa == FRAME_CFA_DEREF) {
        p->rule.cfa_index = index;
        p->rule.cfa_above = (uint8_t)above;
    }
}

static void set_cfa_expression(struct cfa_program *p, struct span expression)
{
    uint8_t number, edge;
    int64_t off;
    struct span rest;
    if (p->params->sp == 7 && is_plt(expression, &edge)) {
        set_cfa(p, FRAME_CFA_PLT, FRAME_REGISTER_SP, 8);
        p->rule.plt_edge = edge;
    } else if (!read_base(p->params, expression, &number, &off, &rest)) {
        set_cfa(p, FRAME_CFA_UNKNOWN, 0, 0);
    } else if (rest.size == 0) {
        set_cfa(p, FRAME_CFA_OFFSET, number, off);
    } else {
        set_cfa_saved(p, number, off, rest);
    }
}

static void set_place_expression(struct cfa_program *p, uint64_t dwarf, struct span expression)
{
    uint8_t number;
    int64_t off;
    struct span rest;
    bool known = read_base(p->params, expression, &number, &off, &rest) && rest.size == 0;
    if (known && number == FRAME_REGISTER_SP)
        set_place(p, dwarf, FRAME_AT_SP, off);
    else if (known && number == FRAME_REGISTER_FP)
        set_place(p, dwarf, FRAME_AT_FP, off);
    else
        set_place(p, dwarf, FRAME_LOST, 0);
}

/* As vfork() of libc has it, which cannot leave the return address on a stack that two processes share. */
static void set_in_register(struct cfa_program *p, uint64_t dwarf, uint64_t in)
{
    bool known = dwarf == p->params->return_register && in < FRAME_REGISTER_SP;
    set_place(p, dwarf, known ? FRAME_IN_REGISTER : FRAME_LOST, known ? register_number(p->params, in) : 0);
}

static void define_cfa(struct cfa_program *p, uint64_t dwarf, int64_t off)
{
    set_cfa(p, FRAME_CFA_OFFSET, register_number(p->params, dwarf), off);
}

/* A part of "register + offset"; what the other part of any other rule is, nobody knows. */
static void redefine_cfa(struct cfa_program *p, uint8_t number, int64_t off)
{
    bool known = p->rule.cfa == FRAME_CFA_OFFSET;
    set_cfa(p, FRAME_CFA_OFFSET, known ? number : UINT8_MAX, off);
}

/* The instructions about the CFA and locations. False: it is another one. */
static bool run_cfa(struct cfa_program *p, struct cursor *c, uint8_t op)
{
    uint64_t number;
    switch (op) {
    case CFA_ADVANCE_LOC1:
        advance(p, cursor_u8(c));
        return true;
    case CFA_ADVANCE_LOC2:
        advance(p, cursor_u16le(c));
        return true;
    case CFA_ADVANCE_LOC4:
        advance(p, cursor_u32le(c));
        return true;
    case CFA_DEF_CFA:
        number = cursor_varuint64(c);
        define_cfa(p, number, (int64_t)cursor_varuint64(c));
        return true;
    case CFA_DEF_CFA_SF:
        number = cursor_varuint64(c);
        define_cfa(p, number, factored_off(p, cursor_sleb64(c)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        redefine_cfa(p, register_number(p->params, cursor_varuint64(c)), p->rule.cfa_off);
        return true;
    case CFA_DEF_CFA_OFFSET:
        redefine_cfa(p, p->rule.cfa_register, (int64_t)cursor_varuint64(c));
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        redefine_cfa(p, p->rule.cfa_register, factored_off(p, cursor_sleb64(c)));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        set_cfa_expression(p, cursor_bytes(c, cursor_varuint64(c)));
        return true;
    case CFA_REMEMBER_STATE:
        if (p->depth == CFA_STATE_DEPTH_MAX)
            p->failed = true;
        else
            p->remembered[p->depth++] = p->rule;
        return true;
    case CFA_RESTORE_STATE:
        if (p->depth == 0)
            p->failed = true;
        else
            p->rule = p->remembered[--p->depth];
        return true;
    default:
        return false;
    }
}

/* The instructions about one register; an unknown one ends the program. */
static void run_register(struct cfa_program *p, struct cursor *c, uint8_t op)
{
    uint64_t number = op == CFA_AARCH64_NEGATE_RA_STATE || op == CFA_NOP ? 0 : cursor_varuint64(c);
    switch (op) {
    case CFA_NOP:
    case CFA_AARCH64_NEGATE_RA_STATE: /* the address is signed: its upper bits are not of it */
    case CFA_GNU_ARGS_SIZE:
        break;
    case CFA_OFFSET_EXTENDED:
        set_factored(p, number, (int64_t)cursor_varuint64(c));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        set_factored(p, number, cursor_sleb64(c));
        break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        set_factored(p, number, (int64_t)(0 - cursor_varuint64(c)));
        break;
    case CFA_RESTORE_EXTENDED:
        restore_place(p, number);
        break;
    case CFA_UNDEFINED:
        set_place(p, number, FRAME_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        set_place(p, number, FRAME_SAME, 0);
        break;
    case CFA_EXPRESSION:
        set_place_expression(p, number, cursor_bytes(c, cursor_varuint64(c)));
        break;
    case CFA_REGISTER:
        set_in_register(p, number, cursor_varuint64(c));
        break;
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        cursor_varuint64(c);
        set_place(p, number, FRAME_LOST, 0);
        break;
    case CFA_VAL_EXPRESSION:
        cursor_bytes(c, cursor_varuint64(c));
        set_place(p, number, FRAME_LOST, 0);
        break;
    default: /* DW_CFA_set_loc among them: nobody writes it */
        p->failed = true;
    }
}

bool cfa_program_run(struct cfa_program *p, struct span instructions)
{
    struct cursor c = cursor_over(instructions);
    while (cursor_left(&c) && !p->failed && p->at < p->end) {
        uint8_t op = cursor_u8(&c), operand = op & 0x3f;
        switch (op & 0xc0) {
        case CFA_ADVANCE_LOC:
            advance(p, operand);
            break;
        case CFA_OFFSET:
            set_factored(p, operand, (int64_t)cursor_varuint64(&c));
            break;
        case CFA_RESTORE:
            restore_place(p, operand);
            break;
        default:
            if (!run_cfa(p, &c, op))
                run_register(p, &c, op);
        }
    }
    return !p->failed && cursor_ok(&c);
}
