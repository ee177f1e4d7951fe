#include "read/unwind_info.h"

enum unwind_op {
    OP_PUSH_NONVOLATILE = 0,
    OP_ALLOC_LARGE = 1,
    OP_ALLOC_SMALL = 2,
    OP_SET_FRAME = 3,
    OP_SAVE_NONVOLATILE = 4,
    OP_SAVE_NONVOLATILE_FAR = 5,
    OP_SAVE_XMM = 8,
    OP_SAVE_XMM_FAR = 9,
    OP_MACHINE_FRAME = 10,
    OP_SET_FRAME_LARGE = 11,
};

enum {
    VERSION = 1,
    FLAG_CHAINED = 4,
    REGISTER_RBP = 5,
    WORD_BYTES = 8,
    FRAME_UNIT_BYTES = 16,
    FRAME_BYTES_MAX = 1 << 30,
};

/* UNWIND_CODE numbers registers as instructions do, DWARF in its own way; only rsp, rbp and rbx..r15 matter.
 */
static const uint8_t dwarf_numbers[16] = {
    0, 2, 1, 3, FRAME_REGISTER_SP, FRAME_REGISTER_FP, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15
};

/* The stack is taken apart from `base`, the stack pointer as it is or as the frame register gives it. */
struct frame_state {
    struct frame_rule rule;
    uint64_t size_bytes; /* undone so far, from the base up */
    uint64_t fp_off;     /* of the caller's frame pointer, from the base */
    bool fp_saved;
};

/* Operand of a code of two or three slots; counted in the slots, as 16 or 32 bits. */
static uint64_t read_operand(struct cursor *c, bool wide)
{
    return wide ? cursor_u32le(c) : cursor_u16le(c);
}

static void use_frame_register(struct frame_state *s, uint8_t number, uint64_t off)
{
    s->rule.cfa_register = dwarf_numbers[number];
    s->rule.cfa_off = -(int32_t)off;
    s->size_bytes = 0;
}

/* One code; `done`: its instruction was executed. False when it is not known. */
static bool read_code(struct cursor *c, uint8_t header_frame, bool done, struct frame_state *s)
{
    uint8_t what = cursor_u8(c), op = what & 0x0f, info = what >> 4;
    uint64_t operand = 0;
    switch (op) {
    case OP_PUSH_NONVOLATILE:
        if (done && info == REGISTER_RBP) {
            s->fp_saved = true;
            s->fp_off = s->size_bytes;
        }
        s->size_bytes += done ? WORD_BYTES : 0;
        return true;
    case OP_ALLOC_LARGE:
        operand = read_operand(c, info != 0);
        s->size_bytes += done ? (info ? operand : operand * WORD_BYTES) : 0;
        return info <= 1;
    case OP_ALLOC_SMALL:
        s->size_bytes += done ? info * (uint64_t)WORD_BYTES + WORD_BYTES : 0;
        return true;
    case OP_SET_FRAME:
        if (done)
            use_frame_register(s, header_frame & 0x0f, (uint64_t)(header_frame >> 4) * FRAME_UNIT_BYTES);
        return true;
    case OP_SET_FRAME_LARGE:
        operand = read_operand(c, true);
        if (done && operand < FRAME_BYTES_MAX / FRAME_UNIT_BYTES)
            use_frame_register(s, header_frame & 0x0f, operand * FRAME_UNIT_BYTES);
        return operand < FRAME_BYTES_MAX / FRAME_UNIT_BYTES;
    case OP_SAVE_NONVOLATILE:
    case OP_SAVE_NONVOLATILE_FAR:
        operand = read_operand(c, op == OP_SAVE_NONVOLATILE_FAR);
        if (done && info == REGISTER_RBP) {
            s->fp_saved = true;
            s->fp_off = op == OP_SAVE_NONVOLATILE ? operand * WORD_BYTES : operand;
        }
        return true;
    case OP_SAVE_XMM:
    case OP_SAVE_XMM_FAR:
        read_operand(c, op == OP_SAVE_XMM_FAR);
        return true;
    default: /* a machine frame is the kernel's doing on Windows */
        return false;
    }
}

bool unwind_info_rule(struct span info, uint32_t code_off, struct frame_rule *out)
{
    struct cursor c = cursor_over(info);
    uint8_t version = cursor_u8(&c);
    cursor_skip(&c, 1); /* bytes of prolog: the codes' own offsets tell the same */
    uint8_t count = cursor_u8(&c), frame = cursor_u8(&c);
    struct cursor codes = cursor_over(cursor_bytes(&c, 2u * count));
    if (!cursor_ok(&c) || (version & 7) != VERSION || version >> 3 & FLAG_CHAINED)
        return false;
    struct frame_state s = { .rule = { .cfa = FRAME_CFA_OFFSET, .cfa_register = FRAME_REGISTER_SP } };
    while (cursor_left(&codes)) {
        bool done = cursor_u8(&codes) <= code_off;
        if (!read_code(&codes, frame, done, &s) || s.size_bytes > FRAME_BYTES_MAX)
            return false;
    }
    if (!cursor_ok(&codes) || s.fp_off > FRAME_BYTES_MAX)
        return false;
    int32_t to_cfa = (int32_t)s.size_bytes + WORD_BYTES; /* from the base */
    s.rule.cfa_off += to_cfa;
    s.rule.ra = FRAME_AT_CFA;
    s.rule.ra_off = -WORD_BYTES;
    s.rule.fp = s.fp_saved ? FRAME_AT_CFA : FRAME_SAME;
    s.rule.fp_off = s.fp_saved ? (int32_t)s.fp_off - to_cfa : 0;
    *out = s.rule;
    return true;
}
