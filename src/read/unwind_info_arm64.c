#include "read/unwind_info_arm64.h"

/* First bytes of codes; smaller ones hold a part of their operand. */
enum unwind_code {
    CODE_ALLOC_SMALL = 0x00,
    CODE_SAVE_R19R20_X = 0x20,
    CODE_SAVE_FPLR = 0x40,
    CODE_SAVE_FPLR_X = 0x80,
    CODE_ALLOC_MEDIUM = 0xc0,
    CODE_SAVE_REGP = 0xc8,
    CODE_SAVE_REGP_X = 0xcc,
    CODE_SAVE_REG = 0xd0,
    CODE_SAVE_REG_X = 0xd4,
    CODE_SAVE_LRPAIR = 0xd6,
    CODE_SAVE_FREGP = 0xd8,
    CODE_SAVE_FREGP_X = 0xda,
    CODE_SAVE_FREG = 0xdc,
    CODE_SAVE_FREG_X = 0xde,
    CODE_ALLOC_SVE = 0xdf,
    CODE_ALLOC_LARGE = 0xe0,
    CODE_SET_FP = 0xe1,
    CODE_ADD_FP = 0xe2,
    CODE_NOP = 0xe3,
    CODE_END = 0xe4,
    CODE_END_CHAINED = 0xe5,
    CODE_SAVE_NEXT = 0xe6,
    CODE_SAVE_ANY = 0xe7,
    CODE_PAC_SIGN_LR = 0xfc,
};

enum {
    INSTRUCTION_BYTES = 4,
    WORD_BYTES = 8,
    ALLOC_UNIT_BYTES = 16,
    FIRST_SAVED_REGISTER = 19,
    REGISTER_FP = 29,
    REGISTER_LR = 30,
    FRAME_BYTES_MAX = 1 << 30,
};

/* A record, taken apart. */
struct record {
    uint32_t function_bytes;
    bool one_epilog; /* at the function's end; its codes begin at epilog_index */
    uint32_t epilog_index;
    struct span epilogs; /* else one word each */
    struct span codes;
};

/* The stack is taken apart from a base: the stack pointer as it is, or as the frame pointer gives it. */
struct frame_state {
    bool from_fp;
    int64_t sp_off; /* of the stack pointer, from the base: so much is undone */
    int64_t fp_off, lr_off;
    bool fp_saved, lr_saved;
};

static bool has_extension(uint32_t word)
{
    return word >> 22 == 0;
}

static uint32_t epilog_words(uint32_t word, uint32_t extension)
{
    if (has_extension(word))
        return extension & 0xffff;
    return word >> 21 & 1 ? 0 : word >> 22 & 0x1f;
}

static uint32_t code_words(uint32_t word, uint32_t extension)
{
    return has_extension(word) ? extension >> 16 & 0xff : word >> 27;
}

uint32_t unwind_info_arm64_bytes(const uint8_t header[UNWIND_INFO_ARM64_HEADER_BYTES])
{
    uint32_t word = load_u32le(header), extension = load_u32le(header + 4);
    uint32_t epilogs = epilog_words(word, extension);
    if (epilogs > UNWIND_INFO_ARM64_EPILOGS_MAX)
        return 0;
    return 4 * ((has_extension(word) ? 2 : 1) + epilogs + code_words(word, extension));
}

static bool read_record(struct span bytes, struct record *out)
{
    struct cursor c = cursor_over(bytes);
    uint32_t word = cursor_u32le(&c), extension = has_extension(word) ? cursor_u32le(&c) : 0;
    uint32_t version = word >> 18 & 3, epilogs = epilog_words(word, extension);
    out->function_bytes = unwind_info_arm64_function_bytes(word);
    out->one_epilog = word >> 21 & 1;
    out->epilog_index = word >> 22 & 0x1f;
    out->epilogs = cursor_bytes(&c, 4u * epilogs);
    out->codes = cursor_bytes(&c, 4u * code_words(word, extension));
    return cursor_ok(&c) && version == 0 && epilogs <= UNWIND_INFO_ARM64_EPILOGS_MAX;
}

/* Bytes of a code behind its first one. */
static uint32_t operand_bytes(uint8_t first)
{
    if (first < CODE_ALLOC_MEDIUM)
        return 0;
    if (first < CODE_ALLOC_LARGE || first == CODE_ADD_FP)
        return 1;
    if (first == CODE_SAVE_ANY)
        return 2;
    return first == CODE_ALLOC_LARGE ? 3 : 0;
}

static bool is_end(uint8_t first)
{
    return first == CODE_END || first == CODE_END_CHAINED;
}

/* Instructions from the code at `index` to the end of its sequence, which is not counted. */
static bool count_codes(struct span codes, uint32_t index, uint32_t *out)
{
    struct cursor c = cursor_over(codes);
    uint32_t count = 0;
    cursor_seek(&c, index);
    while (cursor_left(&c)) {
        uint8_t first = cursor_u8(&c);
        if (is_end(first)) {
            *out = count;
            return true;
        }
        cursor_skip(&c, operand_bytes(first));
        count++;
    }
    return false;
}

/* The offset from the base at which register `number` was saved. */
static void save(struct frame_state *s, uint32_t number, int64_t off)
{
    if (number == REGISTER_FP) {
        s->fp_saved = true;
        s->fp_off = off;
    } else if (number == REGISTER_LR) {
        s->lr_saved = true;
        s->lr_off = off;
    }
}

/* `pre`: the store made room first, of `off` bytes; it stored at the new stack pointer. */
static void save_at(struct frame_state *s, uint32_t number, bool pair, bool pre, int64_t off)
{
    int64_t at = s->sp_off + (pre ? 0 : off);
    save(s, number, at);
    if (pair)
        save(s, number + 1, at + WORD_BYTES);
    s->sp_off += pre ? off : 0;
}

static void save_fp_lr(struct frame_state *s, uint8_t first)
{
    bool pre = first >= CODE_SAVE_FPLR_X;
    save_at(s, REGISTER_FP, true, pre, ((first & 0x3f) + pre) * WORD_BYTES);
}

/* The codes of two bytes about general registers: part of a number, and a distance. */
static void save_general(struct frame_state *s, uint8_t first, uint8_t second)
{
    bool alone = first >= CODE_SAVE_REG, alone_pre = first >= CODE_SAVE_REG_X;
    if (first >= CODE_SAVE_LRPAIR) { /* any register, and the link register above it */
        save(s, REGISTER_LR, s->sp_off + (second & 0x3f) * WORD_BYTES + WORD_BYTES);
        return;
    }
    bool pre = alone_pre || (first >= CODE_SAVE_REGP_X && !alone);
    uint32_t number = alone_pre ? (first & 1u) << 3 | second >> 5 : (first & 3u) << 2 | second >> 6;
    int64_t words = (second & (alone_pre ? 0x1f : 0x3f)) + pre;
    save_at(s, FIRST_SAVED_REGISTER + number, !alone, pre, words * WORD_BYTES);
}

/* Floating-point registers are not followed; saving them can move the stack pointer. */
static void save_floating(struct frame_state *s, uint8_t first, uint8_t second)
{
    if (first == CODE_SAVE_FREGP_X || first == CODE_SAVE_FREGP_X + 1)
        s->sp_off += ((second & 0x3f) + 1) * WORD_BYTES;
    else if (first == CODE_SAVE_FREG_X)
        s->sp_off += ((second & 0x1f) + 1) * WORD_BYTES;
}

/* The stack pointer was `off` bytes below the frame pointer. What was saved relative to it before is lost. */
static bool use_frame_pointer(struct frame_state *s, int64_t off)
{
    if (s->fp_saved || s->lr_saved)
        return false;
    s->from_fp = true;
    s->sp_off = -off;
    return true;
}

/* Undoes one instruction. False when its code is not known. */
static bool undo(struct frame_state *s, uint8_t first, struct cursor *c)
{
    if (first < CODE_SAVE_R19R20_X) {
        s->sp_off += first * ALLOC_UNIT_BYTES;
    } else if (first < CODE_SAVE_FPLR) {
        s->sp_off += (first & 0x1f) * WORD_BYTES;
    } else if (first < CODE_ALLOC_MEDIUM) {
        save_fp_lr(s, first);
    } else if (first < CODE_SAVE_REGP) {
        s->sp_off += ((int64_t)(first & 7) << 8 | cursor_u8(c)) * ALLOC_UNIT_BYTES;
    } else if (first < CODE_SAVE_FREGP) {
        save_general(s, first, cursor_u8(c));
    } else if (first < CODE_ALLOC_SVE) {
        save_floating(s, first, cursor_u8(c));
    } else if (first == CODE_ALLOC_LARGE) {
        uint32_t high = cursor_u8(c), middle = cursor_u8(c), low = cursor_u8(c);
        s->sp_off += (int64_t)(high << 16 | middle << 8 | low) * ALLOC_UNIT_BYTES;
    } else if (first == CODE_SET_FP || first == CODE_ADD_FP) {
        return use_frame_pointer(s, first == CODE_ADD_FP ? cursor_u8(c) * WORD_BYTES : 0);
    } else { /* a signed return address is stripped by whoever reads it */
        return first == CODE_NOP || first == CODE_SAVE_NEXT || first == CODE_PAC_SIGN_LR ||
               first == CODE_END_CHAINED;
    }
    return true;
}

/* Undoes the instructions from the code at `index` on but the first `skip`, through those of parent
 * fragments. */
static bool undo_all(struct span codes, uint32_t index, uint32_t skip, struct frame_state *s)
{
    struct cursor c = cursor_over(codes);
    cursor_seek(&c, index);
    for (uint32_t i = 0; cursor_left(&c) && s->sp_off <= FRAME_BYTES_MAX; i++) {
        uint8_t first = cursor_u8(&c);
        if (first == CODE_END)
            return cursor_ok(&c);
        if (i < skip)
            cursor_skip(&c, operand_bytes(first));
        else if (!undo(s, first, &c))
            return false;
    }
    return false;
}

/* Whether `code_off` is in the epilog that starts at `start`: then so many of its instructions are done. */
static bool in_epilog(uint32_t code_off, uint32_t start, uint32_t codes, uint32_t *out_done)
{
    if (code_off < start || code_off - start >= (codes + 1) * INSTRUCTION_BYTES)
        return false;
    *out_done = (code_off - start) / INSTRUCTION_BYTES;
    return true;
}

/* Where in the codes to begin, and how many to leave out. False when the record is damaged. */
static bool find_start(const struct record *r, uint32_t code_off, uint32_t *out_index, uint32_t *out_skip)
{
    uint32_t count;
    *out_index = *out_skip = 0;
    if (!count_codes(r->codes, 0, &count))
        return false;
    if (code_off / INSTRUCTION_BYTES < count) {
        *out_skip = count - code_off / INSTRUCTION_BYTES;
        return true;
    }
    if (r->one_epilog) {
        if (!count_codes(r->codes, r->epilog_index, &count))
            return false;
        uint32_t bytes = (count + 1) * INSTRUCTION_BYTES;
        if (bytes <= r->function_bytes && in_epilog(code_off, r->function_bytes - bytes, count, out_skip))
            *out_index = r->epilog_index;
        return true;
    }
    for (size_t at = 0; at < r->epilogs.size; at += 4) {
        uint32_t word = load_u32le(r->epilogs.data + at), index = word >> 22;
        uint32_t start = (word & 0x3ffff) * INSTRUCTION_BYTES;
        if (start > code_off) /* in the order of their addresses */
            break;
        if (!count_codes(r->codes, index, &count))
            return false;
        if (in_epilog(code_off, start, count, out_skip)) {
            *out_index = index;
            break;
        }
    }
    return true;
}

bool unwind_info_arm64_rule(struct span record, uint32_t code_off, struct frame_rule *out)
{
    struct record r;
    struct frame_state s = { 0 };
    uint32_t index, skip;
    if (!read_record(record, &r) || !find_start(&r, code_off, &index, &skip) ||
        !undo_all(r.codes, index, skip, &s))
        return false;
    *out = (struct frame_rule){
        .cfa = FRAME_CFA_OFFSET,
        .cfa_register = s.from_fp ? FRAME_REGISTER_FP : FRAME_REGISTER_SP,
        .cfa_off = (int32_t)s.sp_off,
        .fp = s.fp_saved ? FRAME_AT_CFA : FRAME_SAME,
        .fp_off = s.fp_saved ? (int32_t)(s.fp_off - s.sp_off) : 0,
        .ra = s.lr_saved ? FRAME_AT_CFA : FRAME_SAME,
        .ra_off = s.lr_saved ? (int32_t)(s.lr_off - s.sp_off) : 0,
    };
    return true;
}
