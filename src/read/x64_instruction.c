#include "read/x64_instruction.h"

enum {
    RSP = 4,
    RBP = 5,
    MAP_ONE_BYTE = 0, /* of opcodes; the others as VEX numbers them */
    MAP_0F = 1,
    MAP_0F38 = 2,
    MAP_0F3A = 3,
    MAP_LAST = 6, /* of EVEX */
    WORD_BYTES = 8,
};

/* An instruction under way: its prefixes, and the parts of its operand. */
struct parts {
    struct cursor c;
    bool narrow;                                /* 66: operands of 16 bits */
    bool short_address;                         /* 67 */
    bool wide, reg_high, index_high, base_high; /* the bits of REX, VEX and EVEX */
    uint8_t map, opcode;
    bool has_modrm;
    uint8_t mode, reg, rm; /* with their high bits */
    bool has_sib;
    uint8_t base, index; /* of the SIB byte */
    int32_t displacement;
};

static void read_rex(struct parts *p, uint8_t rex)
{
    p->wide = rex & 8;
    p->reg_high = rex & 4;
    p->index_high = rex & 2;
    p->base_high = rex & 1;
}

/* C5, C4 or 62, and the two, three or four bytes that such a prefix has; the high bits are inverted there. */
static bool read_vector_prefix(struct parts *p, uint8_t first)
{
    uint8_t bits = cursor_u8(&p->c);
    p->reg_high = !(bits & 0x80);
    p->map = MAP_0F;
    if (first == 0xc5)
        return true;
    p->index_high = !(bits & 0x40);
    p->base_high = !(bits & 0x20);
    p->map = first == 0xc4 ? bits & 0x1f : bits & 7;
    p->wide = cursor_u8(&p->c) & 0x80;
    if (first == 0x62)
        cursor_u8(&p->c);
    return p->map >= MAP_0F && p->map <= (first == 0xc4 ? MAP_0F3A : MAP_LAST);
}

/* Up to the opcode; *out_vector: it is one of VEX or EVEX. */
static bool read_opcode(struct parts *p, bool *out_vector)
{
    for (unsigned i = 0; i < X64_INSTRUCTION_MAX && cursor_ok(&p->c); i++) {
        uint8_t byte = cursor_u8(&p->c);
        *out_vector = byte == 0xc4 || byte == 0xc5 || byte == 0x62;
        if (*out_vector) {
            bool known = read_vector_prefix(p, byte);
            p->opcode = cursor_u8(&p->c);
            return known;
        }
        if (byte >= 0x40 && byte <= 0x4f) {
            read_rex(p, byte);
            byte = cursor_u8(&p->c);
        } else if (byte == 0x66 || byte == 0x67 || byte == 0x2e || byte == 0x36 || byte == 0x3e ||
                   byte == 0x26 || byte == 0x64 || byte == 0x65 || byte == 0xf0 || byte == 0xf2 ||
                   byte == 0xf3) {
            p->narrow |= byte == 0x66;
            p->short_address |= byte == 0x67;
            continue;
        }
        if (byte == 0x0f) {
            byte = cursor_u8(&p->c);
            p->map = byte == 0x38 ? MAP_0F38 : byte == 0x3a ? MAP_0F3A : MAP_0F;
            if (p->map != MAP_0F)
                byte = cursor_u8(&p->c);
        }
        p->opcode = byte;
        return true;
    }
    return false;
}

static bool one_byte_has_modrm(uint8_t op)
{
    if (op < 0x40)
        return (op & 7) < 4;
    return op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8f) || op == 0xc0 || op == 0xc1 ||
           op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) || (op >= 0xd8 && op <= 0xdf) ||
           op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

static bool map_0f_has_modrm(uint8_t op)
{
    bool bare = (op >= 0x05 && op <= 0x0b) || op == 0x0e || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
                (op >= 0x80 && op <= 0x8f) || (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) ||
                (op >= 0xc8 && op <= 0xcf);
    return !bare;
}

static int64_t read_immediate(struct parts *p, size_t size)
{
    switch (size) {
    case 0:
        return 0;
    case 1:
        return (int8_t)cursor_u8(&p->c);
    case 2:
        return (int16_t)cursor_u16le(&p->c);
    case 4:
        return (int32_t)cursor_u32le(&p->c);
    default:
        cursor_skip(&p->c, size);
        return 0;
    }
}

static void read_modrm(struct parts *p)
{
    uint8_t modrm = cursor_u8(&p->c), low = modrm & 7;
    p->mode = modrm >> 6;
    p->reg = (uint8_t)((modrm >> 3 & 7) | p->reg_high << 3);
    p->rm = (uint8_t)(low | p->base_high << 3);
    if (p->mode == 3)
        return;
    bool wide_displacement = p->mode == 2 || (p->mode == 0 && low == RBP);
    p->has_sib = low == RSP;
    if (p->has_sib) {
        uint8_t sib = cursor_u8(&p->c);
        p->base = (uint8_t)((sib & 7) | p->base_high << 3);
        p->index = (uint8_t)((sib >> 3 & 7) | p->index_high << 3);
        wide_displacement |= p->mode == 0 && (sib & 7) == RBP;
    }
    if (wide_displacement)
        p->displacement = (int32_t)read_immediate(p, 4);
    else if (p->mode == 1)
        p->displacement = (int32_t)read_immediate(p, 1);
}

static size_t full_size(const struct parts *p)
{
    return p->narrow && !p->wide ? 2 : 4;
}

/* Of an opcode that is not followed by anything else than its number. */
static size_t bare_immediate_size(const struct parts *p)
{
    uint8_t op = p->opcode;
    if (op == 0xe8 || op == 0xe9)
        return 4;
    if (op < 0x40)
        return (op & 7) == 4 ? 1 : (op & 7) == 5 ? full_size(p) : 0;
    if (op == 0x68 || op == 0xa9)
        return full_size(p);
    if (op >= 0xb8 && op <= 0xbf)
        return p->wide ? 8 : full_size(p);
    if (op >= 0xa0 && op <= 0xa3)
        return p->short_address ? 4 : 8;
    if (op == 0xc8)
        return 3;
    if (op == 0xc2 || op == 0xca)
        return 2;
    bool byte = op == 0x6a || (op >= 0x70 && op <= 0x7f) || op == 0xa8 || (op >= 0xb0 && op <= 0xb7) ||
                op == 0xcd || (op >= 0xe0 && op <= 0xe7) || op == 0xeb;
    return byte ? 1 : 0;
}

static size_t one_byte_immediate_size(const struct parts *p)
{
    uint8_t op = p->opcode;
    if (!p->has_modrm)
        return bare_immediate_size(p);
    if (op == 0x69 || op == 0x81 || op == 0xc7)
        return full_size(p);
    if (op == 0x6b || op == 0x80 || op == 0x82 || op == 0x83 || op == 0xc0 || op == 0xc1 || op == 0xc6)
        return 1;
    if ((op == 0xf6 || op == 0xf7) && (p->reg & 7) < 2) /* test */
        return op == 0xf6 ? 1 : full_size(p);
    return 0;
}

static size_t immediate_size(const struct parts *p)
{
    uint8_t op = p->opcode;
    switch (p->map) {
    case MAP_ONE_BYTE:
        return one_byte_immediate_size(p);
    case MAP_0F:
        if (op >= 0x80 && op <= 0x8f)
            return 4;
        return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
               (op >= 0xc4 && op <= 0xc6);
    default:
        return op != 0 && p->map == MAP_0F3A;
    }
}

static struct x64_instruction of_kind(enum x64_kind kind, int64_t value)
{
    return (struct x64_instruction){ .kind = kind, .value = value };
}

static bool is_base(const struct parts *p, uint8_t number)
{
    if (p->mode == 3 || (p->mode == 0 && (p->rm & 7) == RBP))
        return false;
    if (!p->has_sib)
        return p->rm == number;
    return p->base == number && p->index == RSP && (p->mode != 0 || (p->base & 7) != RBP);
}

static struct x64_instruction of_mov_to_memory(const struct parts *p)
{
    if (p->mode == 3 && p->rm == RSP)
        return p->reg == RBP ? of_kind(X64_RSP_OF_RBP, 0) : of_kind(X64_RSP_LOST, 0);
    if (p->mode == 3 && p->rm == RBP && p->reg == RSP)
        return of_kind(X64_RBP_OF_RSP, 0);
    if (p->reg == RBP && is_base(p, RSP))
        return of_kind(X64_SAVE_RBP, p->displacement);
    return of_kind(X64_PLAIN, 0);
}

static struct x64_instruction of_mov_to_register(const struct parts *p)
{
    if (p->reg == RSP)
        return p->mode == 3 && p->rm == RBP ? of_kind(X64_RSP_OF_RBP, 0) : of_kind(X64_RSP_LOST, 0);
    if (p->reg == RBP && p->mode == 3 && p->rm == RSP)
        return of_kind(X64_RBP_OF_RSP, 0);
    if (p->reg == RBP && is_base(p, RSP))
        return of_kind(X64_LOAD_RBP, p->displacement);
    return of_kind(X64_PLAIN, 0);
}

static struct x64_instruction of_lea(const struct parts *p)
{
    if (p->reg == RSP)
        return is_base(p, RSP)   ? of_kind(X64_RSP_OF_RSP, p->displacement)
               : is_base(p, RBP) ? of_kind(X64_RSP_OF_RBP, p->displacement)
                                 : of_kind(X64_RSP_LOST, 0);
    if (p->reg == RBP && is_base(p, RSP))
        return of_kind(X64_RBP_OF_RSP, p->displacement);
    if (p->mode == 0 && (p->rm & 7) == RBP) /* from RIP */
        return of_kind(X64_ADDRESS_OF, p->displacement);
    return of_kind(X64_PLAIN, 0);
}

/* 81 and 83: a number is added to a register or memory, compared with it, ... */
static struct x64_instruction of_arithmetic(const struct parts *p, int64_t value)
{
    enum { ADD = 0, SUB = 5, CMP = 7 };
    uint8_t operation = p->reg & 7;
    if (p->mode != 3 || p->rm != RSP || operation == CMP)
        return of_kind(X64_PLAIN, 0);
    if (operation == ADD || operation == SUB)
        return of_kind(X64_RSP_OF_RSP, operation == ADD ? value : -value);
    return of_kind(X64_RSP_LOST, 0);
}

/* FF: calls, jumps and pushes through a register or memory */
static struct x64_instruction of_group5(const struct parts *p)
{
    enum { JUMP = 4, JUMP_FAR = 5, PUSH = 6 };
    uint8_t operation = p->reg & 7;
    return operation == PUSH                            ? of_kind(X64_PUSH, 0)
           : operation == JUMP || operation == JUMP_FAR ? of_kind(X64_JUMP_AWAY, 0)
                                                        : of_kind(X64_PLAIN, 0);
}

static struct x64_instruction of_push_or_pop(const struct parts *p)
{
    bool push = p->opcode < 0x58;
    uint8_t number = (uint8_t)((p->opcode & 7) | p->base_high << 3);
    if (p->narrow || (!push && number == RSP))
        return of_kind(X64_RSP_LOST, 0);
    if (number == RBP)
        return of_kind(push ? X64_PUSH_RBP : X64_POP_RBP, 0);
    return of_kind(push ? X64_PUSH : X64_POP, 0);
}

/* Arithmetic and logic between a register and a register or memory, which gives RSP what is not known here */
static bool is_other_write_of_rsp(const struct parts *p)
{
    uint8_t op = p->opcode;
    bool compares = op >= 0x38 && op <= 0x3b;
    if (op >= 0x40 || !p->has_modrm || compares)
        return false;
    return (op & 2) ? p->reg == RSP && (op & 1) : p->mode == 3 && p->rm == RSP && (op & 1);
}

static struct x64_instruction of_one_byte(const struct parts *p, int64_t value)
{
    uint8_t op = p->opcode;
    if (op >= 0x50 && op <= 0x5f)
        return of_push_or_pop(p);
    if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3))
        return of_kind(X64_BRANCH, value);
    switch (op) {
    case 0x68:
    case 0x6a:
    case 0x9c: /* the flags */
        return of_kind(p->narrow && op == 0x9c ? X64_RSP_LOST : X64_PUSH, 0);
    case 0x8f:
    case 0x9d:
        return of_kind(p->narrow ? X64_RSP_LOST : X64_POP, 0);
    case 0x81:
    case 0x83:
        return of_arithmetic(p, value);
    case 0x89:
        return p->wide ? of_mov_to_memory(p) : of_kind(X64_PLAIN, 0);
    case 0x8b:
        return p->wide ? of_mov_to_register(p) : of_kind(X64_PLAIN, 0);
    case 0x8d:
        return p->wide ? of_lea(p) : of_kind(X64_PLAIN, 0);
    case 0xc2:
        return of_kind(X64_RETURN, value & UINT16_MAX);
    case 0xc3:
        return of_kind(X64_RETURN, 0);
    case 0xc8: /* enter, which no compiler writes */
        return of_kind(X64_RSP_LOST, 0);
    case 0xc9:
        return of_kind(X64_LEAVE, 0);
    case 0xca:
    case 0xcb:
    case 0xcc:
    case 0xcf:
    case 0xf4:
        return of_kind(X64_STOP, 0);
    case 0xe8:
        return of_kind(X64_CALL, value);
    case 0xe9:
    case 0xeb:
        return of_kind(X64_JUMP, value);
    case 0xff:
        return of_group5(p);
    default:
        return of_kind(is_other_write_of_rsp(p) ? X64_RSP_LOST : X64_PLAIN, 0);
    }
}

static struct x64_instruction of_0f(const struct parts *p, int64_t value)
{
    enum { UD2 = 0x0b, UD1 = 0xb9, UD0 = 0xff };
    if (p->opcode >= 0x80 && p->opcode <= 0x8f)
        return of_kind(X64_BRANCH, value);
    bool stops = p->opcode == UD2 || p->opcode == UD1 || p->opcode == UD0;
    return of_kind(stops ? X64_STOP : X64_PLAIN, 0);
}

/* Opcodes that mean nothing in 64-bit code: what is read there is no code. */
static bool is_no_opcode(uint8_t op)
{
    bool segments = op < 0x40 && (op & 7) >= 6;
    return segments || (op >= 0x60 && op <= 0x62) || op == 0x82 || op == 0x9a || op == 0xce || op == 0xd4 ||
           op == 0xd5 || op == 0xd6 || op == 0xea;
}

bool x64_instruction_read(struct span code, struct x64_instruction *out)
{
    struct parts p = { .c = cursor_over(code) };
    bool vector;
    if (!read_opcode(&p, &vector) || (p.map == MAP_ONE_BYTE && is_no_opcode(p.opcode)))
        return false;
    p.has_modrm = p.map == MAP_ONE_BYTE ? one_byte_has_modrm(p.opcode)
                  : p.map == MAP_0F     ? vector ? p.opcode != 0x77 : map_0f_has_modrm(p.opcode)
                                        : true;
    if (p.has_modrm)
        read_modrm(&p);
    int64_t value = read_immediate(&p, immediate_size(&p));
    if (!cursor_ok(&p.c) || p.c.pos > X64_INSTRUCTION_MAX)
        return false;
    struct x64_instruction read = vector || p.map > MAP_0F ? of_kind(X64_PLAIN, 0)
                                  : p.map == MAP_0F        ? of_0f(&p, value)
                                                           : of_one_byte(&p, value);
    read.size = (uint8_t)p.c.pos;
    *out = read;
    return true;
}
