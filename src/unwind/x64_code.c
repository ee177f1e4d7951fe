#include "unwind/x64_code.h"

#include <string.h>

enum {
    EPILOG_INSTRUCTIONS_MAX = 24,
    REGISTER_RBP = 5,
    WORD_BYTES = 8,
};

static uint8_t at(struct span code, size_t i)
{
    return i < code.size ? code.data[i] : 0;
}

static bool starts_with(struct span code, const char *bytes, size_t size)
{
    return code.size >= size && memcmp(code.data, bytes, size) == 0;
}

/* FF /2 through a register or memory, `size` bytes long, at the end of `before`. */
static bool ends_in_indirect_call(struct span before, size_t size)
{
    if (before.size < size)
        return false;
    const uint8_t *p = before.data + before.size - size;
    if ((p[0] & 0xf0) == 0x40 && size > 2) { /* a REX prefix counts as part of it */
        p++;
        size--;
    }
    if (p[0] != 0xff || (p[1] >> 3 & 7) != 2)
        return false;
    uint8_t mode = p[1] >> 6, base = p[1] & 7;
    size_t bytes = 2;
    if (mode != 3 && base == 4)
        bytes++; /* SIB */
    if (mode == 1)
        bytes += 1;
    else if (mode == 2 || (mode == 0 && base == 5))
        bytes += 4;
    else if (mode == 0 && base == 4 && size > 2 && (p[2] & 7) == 5)
        bytes += 4;
    return bytes == size;
}

bool x64_is_after_call(struct span before)
{
    if (before.size >= 5 && before.data[before.size - 5] == 0xe8)
        return true;
    for (size_t size = 2; size <= X64_CALL_BYTES + 1; size++)
        if (ends_in_indirect_call(before, size))
            return true;
    return false;
}

bool x64_is_direct_call(struct span before, uint64_t ip, uint64_t *out_target)
{
    if (before.size < 5 || before.data[before.size - 5] != 0xe8)
        return false;
    *out_target = ip + (uint64_t)(int64_t)(int32_t)load_u32le(before.data + before.size - 4);
    return true;
}

bool x64_is_after_syscall(struct span before)
{
    return before.size >= 2 && before.data[before.size - 2] == 0x0f && before.data[before.size - 1] == 0x05;
}

bool x64_is_thread_birth(struct span code)
{
    for (size_t at = 0; at + 2 <= code.size; at++)
        if (code.data[at] == 0x31 && code.data[at + 1] == 0xed) /* xor ebp, ebp */
            return true;
    return false;
}

static bool begins_with(struct span code, const void *bytes, size_t size)
{
    return code.size >= size && memcmp(code.data, bytes, size) == 0;
}

bool x64_is_signal_return(struct span code)
{
    static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 }; /* mov rax, 15; syscall */
    static const uint8_t narrow[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };
    return begins_with(code, wide, sizeof wide) || begins_with(code, narrow, sizeof narrow);
}

bool x64_is_thread_exit(struct span code)
{
    static const uint8_t musl[] = { 0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05 };
    static const uint8_t glibc[] = { 0x48, 0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
    return begins_with(code, musl, sizeof musl) || begins_with(code, glibc, sizeof glibc);
}

/* What an epilog has done so far. */
struct epilog {
    struct frame_rule rule;
    int64_t sp_off; /* from the base: SP, or FP once it was loaded from there */
    int64_t fp_off;
    bool fp_saved;
};

static int32_t load_i32(const uint8_t *bytes)
{
    return (int32_t)load_u32le(bytes);
}

/* "mov r64, [rsp+disp]", with which methods that were replaced on the stack restore registers; 0: it is not.
 */
static size_t epilog_load(struct epilog *e, struct span code)
{
    if ((at(code, 0) != 0x48 && at(code, 0) != 0x4c) || at(code, 1) != 0x8b || (at(code, 2) & 7) != 4 ||
        at(code, 3) != 0x24)
        return 0;
    uint8_t mode = at(code, 2) >> 6, number = (at(code, 2) >> 3 & 7) + (at(code, 0) == 0x4c ? 8 : 0);
    size_t bytes = mode == 1 ? 5 : mode == 2 ? 8 : 0;
    if (bytes == 0 || code.size < bytes)
        return 0;
    if (number == REGISTER_RBP) {
        e->fp_saved = true;
        e->fp_off = e->sp_off + (mode == 1 ? (int8_t)code.data[4] : load_i32(code.data + 4));
    }
    return bytes;
}

/* "lea rsp, [rbp+disp]" */
static size_t epilog_lea(struct epilog *e, struct span code)
{
    bool small = starts_with(code, "\x48\x8d\x65", 3), large = starts_with(code, "\x48\x8d\xa5", 3);
    size_t bytes = small ? 4 : large ? 7 : 0;
    if (bytes == 0 || code.size < bytes || e->fp_saved)
        return 0;
    e->rule.cfa_register = FRAME_REGISTER_FP;
    e->sp_off = small ? (int8_t)code.data[3] : load_i32(code.data + 3);
    return bytes;
}

static size_t epilog_add(struct epilog *e, struct span code)
{
    bool small = starts_with(code, "\x48\x83\xc4", 3), large = starts_with(code, "\x48\x81\xc4", 3);
    size_t bytes = small ? 4 : large ? 7 : 0;
    if (bytes == 0 || code.size < bytes)
        return 0;
    int32_t size = small ? (int8_t)code.data[3] : load_i32(code.data + 3);
    if (size < 0)
        return 0;
    e->sp_off += size;
    return bytes;
}

static size_t epilog_pop(struct epilog *e, struct span code)
{
    size_t prefix = at(code, 0) == 0x41;
    if ((at(code, prefix) & 0xf8) != 0x58)
        return 0;
    if (!prefix && code.data[0] == 0x58 + REGISTER_RBP) {
        e->fp_saved = true;
        e->fp_off = e->sp_off;
    }
    e->sp_off += WORD_BYTES;
    return prefix + 1;
}

static bool is_return(struct span code)
{
    return at(code, 0) == 0xc3 || at(code, 0) == 0xc2 || starts_with(code, "\xf3\xc3", 2);
}

/* A jump with a displacement whose target lies outside of [begin, end). */
static bool is_jump_out(struct span code, uint64_t addr, uint64_t begin, uint64_t end)
{
    if (at(code, 0) != 0xe9 || code.size < 5)
        return false;
    uint64_t target = addr + 5 + (uint64_t)(int64_t)load_i32(code.data + 1);
    return target < begin || target >= end;
}

bool x64_is_tail_jump(struct span code, uint64_t addr, uint64_t begin, uint64_t end)
{
    if (starts_with(code, "\xff\x25", 2) || is_jump_out(code, addr, begin, end))
        return true;
    uint8_t prefix = at(code, 0);
    /* "jmp rax" without a prefix is a switch */
    return (prefix == 0x48 || prefix == 0x49 || prefix == 0x41) && at(code, 1) == 0xff &&
           (at(code, 2) >> 3 & 7) == 4;
}

bool x64_epilog(struct span code, uint64_t addr, uint64_t begin, uint64_t end, struct frame_rule *out)
{
    struct epilog e = { .rule = { .cfa = FRAME_CFA_OFFSET, .cfa_register = FRAME_REGISTER_SP } };
    struct span left = code;
    for (unsigned i = 0; i < EPILOG_INSTRUCTIONS_MAX; i++) {
        if (is_return(left) || x64_is_tail_jump(left, addr + (code.size - left.size), begin, end)) {
            int32_t to_cfa = (int32_t)e.sp_off + WORD_BYTES;
            e.rule.cfa_off = to_cfa;
            e.rule.ra = FRAME_AT_CFA;
            e.rule.ra_off = -WORD_BYTES;
            e.rule.fp = e.fp_saved ? FRAME_AT_CFA : FRAME_SAME;
            e.rule.fp_off = e.fp_saved ? (int32_t)(e.fp_off - to_cfa) : 0;
            *out = e.rule;
            return true;
        }
        size_t bytes = epilog_add(&e, left);
        if (!bytes)
            bytes = epilog_pop(&e, left);
        if (!bytes && i == 0)
            bytes = epilog_lea(&e, left);
        if (!bytes)
            bytes = epilog_load(&e, left);
        if (!bytes && starts_with(left, "\xc5\xf8\x77", 3)) /* vzeroupper */
            bytes = 3;
        if (!bytes || e.sp_off > INT32_MAX / 2 || e.sp_off < INT32_MIN / 2)
            return false;
        left = (struct span){ left.data + bytes, left.size - bytes };
    }
    return false;
}

/* "mov [rsp], r64": a thunk puts where to jump over the address of a call that it made itself. */
static bool is_store_to_top(struct span code)
{
    return (at(code, 0) == 0x48 || at(code, 0) == 0x4c) && at(code, 1) == 0x89 &&
           (at(code, 2) & 0xc7) == 0x04 && at(code, 3) == 0x24;
}

/* In a thunk that keeps a processor from guessing where a jump leads ("retpoline"), past its call. */
static bool is_in_retpoline(struct span before, struct span code)
{
    if (at(code, 0) == 0xc3 && before.size >= 4)
        return is_store_to_top(span_part(before, before.size - 4, 4));
    return (is_store_to_top(code) && at(code, 4) == 0xc3) ||
           starts_with(code, "\x48\x8d\x64\x24\x08\xc3", 6); /* of a return: lea rsp, [rsp+8]; ret */
}

uint32_t x64_bare_depth(struct span before, struct span code)
{
    size_t size = before.size;
    if (is_in_retpoline(before, code))
        return WORD_BYTES;
    if (at(code, 0) == 0xe9 && size >= 5 && before.data[size - 5] == 0x68)
        return WORD_BYTES; /* the number of the import was pushed */
    if (starts_with(code, "\xff\x35", 2))
        return WORD_BYTES;
    if (starts_with(code, "\xff\x25", 2) && size >= 6 && before.data[size - 6] == 0xff &&
        before.data[size - 5] == 0x35)
        return 2 * WORD_BYTES;
    return 0;
}

bool x64_is_hijack(struct span code)
{
    return starts_with(code, "\x50\x55\x53\x41\x57\x41\x56\x41\x55\x41\x54", X64_HIJACK_BYTES);
}

bool x64_is_fault_entry(struct span code)
{
    /* mov rax, rsp; and rsp, -16 */
    return starts_with(code, "\x48\x89\xe0\x48\x83\xe4\xf0", X64_FAULT_BYTES);
}
