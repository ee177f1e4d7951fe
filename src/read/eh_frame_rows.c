#include "read/eh_frame_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/eh_frame.h"

enum {
    SECTION_BYTES_MAX = 128 << 20,
    STATE_DEPTH_MAX = 16,       /* of DW_CFA_remember_state */
    CIE_INSTRUCTIONS_MAX = 256, /* bytes; they are run again whenever FDEs name two CIEs in turn */
    CIES_REMEMBERED = 16,
    CIES_MAX = 4096,
    FUNCTIONS_MAX = 2 << 20,
    PLT_EXPRESSION_BYTES = 11,
    ADDRESS_BYTES = 8,
};

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

enum { OP_DEREF = 0x06, OP_BREG0 = 0x70, OP_BREG31 = 0x8f, OP_LIT0 = 0x30, OP_LIT15 = 0x3f };

/* What the FDEs of one CIE have in common. */
struct start_state {
    uint64_t cie_off;
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    struct frame_rule rule; /* after the CIE's instructions */
    bool usable;
};

struct function {
    uint32_t start, size_bytes;
    uint32_t cie; /* index of its start state */
    struct span instructions;
};

struct compiler {
    uint64_t base;
    uint64_t sp, fp; /* the machine's DWARF numbers */
    struct start_state *cies;
    size_t cie_count, cie_capacity;
    struct function *functions;
    size_t function_count, function_capacity;
    uint32_t *rule_slots; /* open addressing; 0 is free, else rule index */
    size_t slot_count;
    size_t row_capacity, rule_capacity;
    struct eh_rows out;
};

/* The instructions of one CIE or FDE under way. */
struct program {
    struct compiler *compiler;
    const struct start_state *cie; /* NULL while its own instructions run */
    struct start_state params;
    struct frame_rule rule;
    struct frame_rule remembered[STATE_DEPTH_MAX];
    unsigned depth;
    uint64_t at, end; /* from the table's base */
    bool ok;
};

static uint32_t rule_hash(const struct frame_rule *r)
{
    const uint32_t words[] = { r->cfa | (uint32_t)r->cfa_register << 8 | (uint32_t)r->fp << 16 |
                                   (uint32_t)r->ra << 24,
                               r->plt_edge | (uint32_t)r->signal_frame << 8, (uint32_t)r->cfa_off,
                               (uint32_t)r->fp_off, (uint32_t)r->ra_off };
    uint32_t hash = 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        hash = (hash ^ words[i]) * 0x9e3779b1u + (hash >> 15);
    return hash ^ hash >> 16;
}

static bool rule_equals(const struct frame_rule *a, const struct frame_rule *b)
{
    return a->cfa == b->cfa && a->cfa_register == b->cfa_register && a->fp == b->fp && a->ra == b->ra &&
           a->plt_edge == b->plt_edge && a->signal_frame == b->signal_frame && a->cfa_off == b->cfa_off &&
           a->fp_off == b->fp_off && a->ra_off == b->ra_off;
}

static void rules_rehash(struct compiler *c)
{
    c->slot_count = c->slot_count ? c->slot_count * 2 : 256;
    free(c->rule_slots);
    c->rule_slots = mem_alloc(c->slot_count, sizeof *c->rule_slots);
    for (size_t i = 1; i < c->out.rule_count; i++) {
        size_t at = rule_hash(&c->out.rules[i]) & (c->slot_count - 1);
        while (c->rule_slots[at])
            at = (at + 1) & (c->slot_count - 1);
        c->rule_slots[at] = (uint32_t)i;
    }
}

/* The index of an equal rule. At the ceiling the function counts as not understood. */
static uint32_t rule_intern(struct compiler *c, const struct frame_rule *rule)
{
    if (c->out.rule_count * 2 >= c->slot_count)
        rules_rehash(c);
    size_t at = rule_hash(rule) & (c->slot_count - 1);
    for (uint32_t i; (i = c->rule_slots[at]); at = (at + 1) & (c->slot_count - 1))
        if (rule_equals(&c->out.rules[i], rule))
            return i;
    if (c->out.rule_count >= EH_RULES_MAX)
        return 0;
    c->out.rules = mem_grow(c->out.rules, &c->rule_capacity, c->out.rule_count + 1, sizeof *c->out.rules);
    c->out.rules[c->out.rule_count] = *rule;
    c->rule_slots[at] = (uint32_t)c->out.rule_count;
    return (uint32_t)c->out.rule_count++;
}

static void row_add(struct compiler *c, uint64_t start, uint32_t rule, bool function)
{
    c->out.rows = mem_grow(c->out.rows, &c->row_capacity, c->out.count + 1, sizeof *c->out.rows);
    c->out.rows[c->out.count++] = (struct eh_row){ (uint32_t)start, rule, function };
}

/* The rule as it is now counts from here on. */
static void program_emit(struct program *p)
{
    struct compiler *c = p->compiler;
    uint32_t rule = rule_intern(c, &p->rule);
    struct eh_row *last =
        &c->out.rows[c->out.count - 1]; /* of this function: its first row is there already */
    if (last->start == p->at)
        last->rule = rule & 0x7fffffff;
    else if (last->rule != rule)
        row_add(c, p->at, rule, false);
}

static void program_advance(struct program *p, uint64_t delta)
{
    if (!p->cie || delta == 0)
        return;
    program_emit(p);
    uint64_t bytes;
    if (__builtin_mul_overflow(delta, p->params.code_align, &bytes) || bytes >= p->end - p->at) {
        p->at = p->end; /* what follows is about no code of this function */
        return;
    }
    p->at += bytes;
}

static uint8_t register_number(const struct compiler *c, uint64_t dwarf)
{
    if (dwarf == c->sp)
        return FRAME_REGISTER_SP;
    if (dwarf == c->fp)
        return FRAME_REGISTER_FP;
    return dwarf < FRAME_REGISTER_SP ? (uint8_t)dwarf : UINT8_MAX;
}

static bool fits_int32(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

static void set_cfa(struct program *p, enum frame_cfa kind, uint8_t number, int64_t off)
{
    bool known = number != UINT8_MAX && fits_int32(off);
    p->rule.cfa = known ? kind : FRAME_CFA_UNKNOWN;
    p->rule.cfa_register = known ? number : 0;
    p->rule.cfa_off = known ? (int32_t)off : 0;
    p->rule.plt_edge = 0;
}

static void set_place(struct program *p, uint64_t dwarf, enum frame_place place, int64_t off)
{
    if (!fits_int32(off)) {
        place = FRAME_LOST;
        off = 0;
    }
    if (dwarf == p->compiler->fp) {
        p->rule.fp = place;
        p->rule.fp_off = (int32_t)off;
    } else if (dwarf == p->params.return_register) {
        p->rule.ra = place;
        p->rule.ra_off = (int32_t)off;
    }
}

/* An offset that does not fit comes out as one that is refused later. */
static int64_t factored_off(const struct program *p, int64_t factored)
{
    int64_t off;
    return __builtin_mul_overflow(factored, p->params.data_align, &off) ? INT64_MAX : off;
}

static void set_factored(struct program *p, uint64_t dwarf, int64_t factored)
{
    set_place(p, dwarf, FRAME_AT_CFA, factored_off(p, factored));
}

static void restore_place(struct program *p, uint64_t dwarf)
{
    const struct frame_rule *initial = p->cie ? &p->cie->rule : &(struct frame_rule){ 0 };
    if (dwarf == p->compiler->fp)
        set_place(p, dwarf, initial->fp, initial->fp_off);
    else if (dwarf == p->params.return_register)
        set_place(p, dwarf, initial->ra, initial->ra_off);
}

/* "register + offset"; *out_rest is what follows. */
static bool read_base(const struct compiler *c, struct span expression, uint8_t *out_register,
                      int64_t *out_off, struct span *out_rest)
{
    struct cursor e = cursor_over(expression);
    uint8_t op = cursor_u8(&e);
    if (op < OP_BREG0 || op > OP_BREG31)
        return false;
    *out_register = register_number(c, op - OP_BREG0);
    *out_off = eh_read_sleb(&e);
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

static void set_cfa_expression(struct program *p, struct span expression)
{
    uint8_t number, edge;
    int64_t off;
    struct span rest;
    if (p->compiler->sp == 7 && is_plt(expression, &edge)) {
        set_cfa(p, FRAME_CFA_PLT, FRAME_REGISTER_SP, 8);
        p->rule.plt_edge = edge;
    } else if (!read_base(p->compiler, expression, &number, &off, &rest)) {
        set_cfa(p, FRAME_CFA_UNKNOWN, 0, 0);
    } else if (rest.size == 0) {
        set_cfa(p, FRAME_CFA_OFFSET, number, off);
    } else if (rest.size == 1 && rest.data[0] == OP_DEREF) {
        set_cfa(p, FRAME_CFA_DEREF, number, off);
    } else {
        set_cfa(p, FRAME_CFA_UNKNOWN, 0, 0);
    }
}

static void set_place_expression(struct program *p, uint64_t dwarf, struct span expression)
{
    uint8_t number;
    int64_t off;
    struct span rest;
    bool known = read_base(p->compiler, expression, &number, &off, &rest) && rest.size == 0;
    if (known && number == FRAME_REGISTER_SP)
        set_place(p, dwarf, FRAME_AT_SP, off);
    else if (known && number == FRAME_REGISTER_FP)
        set_place(p, dwarf, FRAME_AT_FP, off);
    else
        set_place(p, dwarf, FRAME_LOST, 0);
}

static void define_cfa(struct program *p, uint64_t dwarf, int64_t off)
{
    set_cfa(p, FRAME_CFA_OFFSET, register_number(p->compiler, dwarf), off);
}

/* The instructions about the CFA and locations. False: it is another one. */
static bool run_cfa(struct program *p, struct cursor *c, uint8_t op)
{
    uint64_t number;
    switch (op) {
    case CFA_ADVANCE_LOC1:
        program_advance(p, cursor_u8(c));
        return true;
    case CFA_ADVANCE_LOC2:
        program_advance(p, cursor_u16le(c));
        return true;
    case CFA_ADVANCE_LOC4:
        program_advance(p, cursor_u32le(c));
        return true;
    case CFA_DEF_CFA:
        number = cursor_varuint64(c);
        define_cfa(p, number, (int64_t)cursor_varuint64(c));
        return true;
    case CFA_DEF_CFA_SF:
        number = cursor_varuint64(c);
        define_cfa(p, number, factored_off(p, eh_read_sleb(c)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        set_cfa(p, FRAME_CFA_OFFSET, register_number(p->compiler, cursor_varuint64(c)), p->rule.cfa_off);
        return true;
    case CFA_DEF_CFA_OFFSET:
        set_cfa(p, FRAME_CFA_OFFSET, p->rule.cfa_register, (int64_t)cursor_varuint64(c));
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        set_cfa(p, FRAME_CFA_OFFSET, p->rule.cfa_register, factored_off(p, eh_read_sleb(c)));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        set_cfa_expression(p, cursor_bytes(c, cursor_varuint64(c)));
        return true;
    case CFA_REMEMBER_STATE:
        if (p->depth == STATE_DEPTH_MAX)
            p->ok = false;
        else
            p->remembered[p->depth++] = p->rule;
        return true;
    case CFA_RESTORE_STATE:
        if (p->depth == 0)
            p->ok = false;
        else
            p->rule = p->remembered[--p->depth];
        return true;
    default:
        return false;
    }
}

/* The instructions about one register; an unknown one ends the program. */
static void run_register(struct program *p, struct cursor *c, uint8_t op)
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
        set_factored(p, number, eh_read_sleb(c));
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
        p->ok = false;
    }
}

/* False when the instructions are damaged, or one is not known. */
static bool program_run(struct program *p, struct span instructions)
{
    struct cursor c = cursor_over(instructions);
    while (cursor_left(&c) && p->ok && p->at < p->end) {
        uint8_t op = cursor_u8(&c), operand = op & 0x3f;
        switch (op & 0xc0) {
        case CFA_ADVANCE_LOC:
            program_advance(p, operand);
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
    return p->ok && cursor_ok(&c);
}

/* The index of the state in which the FDEs of this CIE start. */
static uint32_t compile_cie(struct compiler *c, const struct eh_cie *cie, uint64_t cie_off)
{
    size_t oldest = c->cie_count > CIES_REMEMBERED ? c->cie_count - CIES_REMEMBERED : 0;
    for (size_t i = c->cie_count; i-- > oldest;)
        if (c->cies[i].cie_off == cie_off)
            return (uint32_t)i;
    struct start_state state = {
        cie_off, cie->code_align, cie->data_align, cie->return_register, { 0 }, false
    };
    struct program p = { .compiler = c, .params = state, .end = UINT64_MAX, .ok = true };
    p.rule.cfa = FRAME_CFA_UNKNOWN;
    p.rule.signal_frame = cie->signal_frame;
    state.usable = cie->instructions.size <= CIE_INSTRUCTIONS_MAX && program_run(&p, cie->instructions);
    state.rule = p.rule;
    c->cies = mem_grow(c->cies, &c->cie_capacity, c->cie_count + 1, sizeof *c->cies);
    c->cies[c->cie_count] = state;
    return (uint32_t)c->cie_count++;
}

static bool collect_functions(struct compiler *c, struct span section, uint64_t section_addr,
                              struct error *err)
{
    struct eh_frame_iterator it = eh_frame_over(section, section_addr);
    for (struct eh_fde fde; eh_frame_next(&it, &fde);) {
        /* a function the linker dropped keeps an FDE that starts at 0 */
        uint64_t start = fde.start - c->base;
        if (fde.size_bytes == 0 || fde.start <= c->base || start > UINT32_MAX ||
            fde.size_bytes > UINT32_MAX - start)
            continue;
        if (c->function_count == FUNCTIONS_MAX || c->cie_count == CIES_MAX)
            return error_set(err, ERROR_LIMIT, "unwind information of more than %d functions", FUNCTIONS_MAX);
        uint32_t cie = compile_cie(c, &fde.cie, it.cie_off);
        c->functions =
            mem_grow(c->functions, &c->function_capacity, c->function_count + 1, sizeof *c->functions);
        c->functions[c->function_count++] =
            (struct function){ (uint32_t)start, (uint32_t)fde.size_bytes, cie, fde.instructions };
    }
    c->out.skipped += it.skipped;
    return true;
}

static int compare_functions(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->size_bytes < y->size_bytes) - (x->size_bytes > y->size_bytes);
}

/* Linkers write functions in the order of their addresses, mostly. */
static void sort_functions(struct function *functions, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare_functions(&functions[i - 1], &functions[i]) > 0) {
            qsort(functions, count, sizeof *functions, compare_functions);
            return;
        }
}

static void compile_function(struct compiler *c, const struct function *f)
{
    const struct start_state *cie = &c->cies[f->cie];
    struct program p = { .compiler = c,
                         .cie = cie,
                         .params = *cie,
                         .rule = cie->rule,
                         .at = f->start,
                         .end = (uint64_t)f->start + f->size_bytes,
                         .ok = cie->usable };
    row_add(c, f->start, 0, true);
    if (!program_run(&p, f->instructions)) {
        p.rule.cfa = FRAME_CFA_UNKNOWN; /* from where it stopped making sense */
        c->out.skipped++;
    }
    if (p.at < p.end)
        program_emit(&p);
}

static bool compile_all(struct compiler *c, struct error *err)
{
    uint64_t end = 0;
    for (size_t i = 0; i < c->function_count; i++) {
        const struct function *f = &c->functions[i];
        if (f->start < end) {
            c->out.skipped++;
            continue;
        }
        if (f->start > end)
            row_add(c, end, 0, false);
        /* a function has at most one row for each byte of its instructions */
        if (c->out.count + f->instructions.size > EH_ROWS_MAX)
            return error_set(err, ERROR_LIMIT, "unwind information with more than %d rows", EH_ROWS_MAX);
        compile_function(c, f);
        end = (uint64_t)f->start + f->size_bytes;
    }
    if (end <= UINT32_MAX)
        row_add(c, end, 0, false);
    return true;
}

bool eh_rows_compile(struct span section, uint64_t section_addr, uint64_t base, uint16_t machine,
                     struct eh_rows *out, struct error *err)
{
    bool arm = machine == ELF_AARCH64;
    struct compiler c = { .base = base, .sp = arm ? 31 : 7, .fp = arm ? 29 : 6, .out = { .base = base } };
    c.out.rules = mem_grow(NULL, &c.rule_capacity, 64, sizeof *c.out.rules);
    c.out.rules[c.out.rule_count++] = (struct frame_rule){ 0 };
    bool ok = collect_functions(&c, section, section_addr, err);
    sort_functions(c.functions, c.function_count);
    ok = ok && compile_all(&c, err);
    free(c.cies);
    free(c.functions);
    free(c.rule_slots);
    if (!ok) {
        eh_rows_done(&c.out);
        return false;
    }
    if (c.out.count)
        c.out.rows = mem_resize(c.out.rows, c.out.count, sizeof *c.out.rows);
    *out = c.out;
    return true;
}

bool eh_rows_read(const struct elf *e, struct eh_rows *out, struct error *err)
{
    const struct elf_section *section = elf_section_named(e, ".eh_frame");
    if (!section)
        return error_set(err, ERROR_INPUT, "no .eh_frame section");
    struct buffer bytes;
    buffer_init(&bytes, SECTION_BYTES_MAX);
    bool ok = elf_section_load(e, section, &bytes, err) &&
              eh_rows_compile(buffer_span(&bytes), section->addr, elf_base_addr(e), e->machine, out, err);
    buffer_done(&bytes);
    return ok;
}

void eh_rows_done(struct eh_rows *rows)
{
    free(rows->rows);
    free(rows->rules);
    *rows = (struct eh_rows){ 0 };
}

/* The row that counts at an address, or NULL below the first. */
static const struct eh_row *find_row(const struct eh_rows *rows, uint64_t addr)
{
    if (addr < rows->base || addr - rows->base > UINT32_MAX)
        return NULL;
    uint32_t wanted = (uint32_t)(addr - rows->base);
    const struct eh_row *first = rows->rows;
    size_t left = rows->count; /* of rows from `first` on; those before start at or before `wanted` */
    while (left > 0) {
        size_t half = left / 2;
        bool after = first[half].start <= wanted;
        first = after ? first + half + 1 : first;
        left = after ? left - half - 1 : half;
    }
    return first == rows->rows ? NULL : first - 1;
}

const struct frame_rule *eh_rows_find(const struct eh_rows *rows, uint64_t addr)
{
    static const struct frame_rule none = { 0 };
    const struct eh_row *row = find_row(rows, addr);
    return row ? &rows->rules[row->rule] : &none;
}

bool eh_rows_function(const struct eh_rows *rows, uint64_t addr, uint64_t *out_start, uint64_t *out_end)
{
    const struct eh_row *row = find_row(rows, addr);
    if (!row || row->rule == 0)
        return false;
    const struct eh_row *next = row + 1, *end = rows->rows + rows->count;
    while (!row->function)
        row--;
    while (next < end && !next->function && next->rule != 0)
        next++;
    *out_start = rows->base + row->start;
    *out_end = rows->base + (next < end ? next->start : UINT32_MAX);
    return true;
}
