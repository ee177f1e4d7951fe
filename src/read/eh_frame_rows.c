#include "read/eh_frame_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "read/cfa_program.h"
#include "read/eh_frame.h"

enum {
    CIE_INSTRUCTIONS_MAX = 256,           /* bytes; they are run again whenever FDEs name two CIEs in turn */
    FUNCTION_INSTRUCTIONS_MAX = 64 << 10, /* bytes; to find a function's start its rows are gone through */
    CIES_REMEMBERED = 16,
    CIES_MAX = 4096,
    FUNCTIONS_MAX = 2 << 20,
};

/* What the FDEs of one CIE have in common. */
struct start_state {
    uint64_t cie_off;
    struct cfa_params params;
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

static uint32_t rule_hash(const struct frame_rule *r)
{
    const uint32_t words[] = { r->cfa | (uint32_t)r->cfa_register << 8 | (uint32_t)r->fp << 16 |
                                   (uint32_t)r->ra << 24,
                               r->plt_edge | (uint32_t)r->signal_frame << 8 | (uint32_t)r->cfa_index << 16 |
                                   (uint32_t)r->cfa_above << 24,
                               (uint32_t)r->cfa_off, (uint32_t)r->fp_off, (uint32_t)r->ra_off };
    uint32_t hash = 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        hash = (hash ^ words[i]) * 0x9e3779b1u + (hash >> 15);
    return hash ^ hash >> 16;
}

static bool rule_equals(const struct frame_rule *a, const struct frame_rule *b)
{
    return a->cfa == b->cfa && a->cfa_register == b->cfa_register && a->fp == b->fp && a->ra == b->ra &&
           a->plt_edge == b->plt_edge && a->signal_frame == b->signal_frame && a->cfa_index == b->cfa_index &&
           a->cfa_above == b->cfa_above && a->cfa_off == b->cfa_off && a->fp_off == b->fp_off &&
           a->ra_off == b->ra_off;
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

/* One row of the function that is being compiled. */
static void compiler_emit(void *user, uint64_t at, const struct frame_rule *rule)
{
    struct compiler *c = user;
    uint32_t index = rule_intern(c, rule);
    struct eh_row *last = &c->out.rows[c->out.count - 1]; /* the function's first row is there already */
    if (last->start == at)
        last->rule = index & 0x7fffffff;
    else if (last->rule != index)
        row_add(c, at, index, false);
}

/* The index of the state in which the FDEs of this CIE start. */
static uint32_t compile_cie(struct compiler *c, const struct eh_cie *cie, uint64_t cie_off)
{
    size_t oldest = c->cie_count > CIES_REMEMBERED ? c->cie_count - CIES_REMEMBERED : 0;
    for (size_t i = c->cie_count; i-- > oldest;)
        if (c->cies[i].cie_off == cie_off)
            return (uint32_t)i;
    struct start_state state = {
        .cie_off = cie_off,
        .params = { cie->code_align, cie->data_align, cie->return_register, c->sp, c->fp },
    };
    struct cfa_program p = { .params = &state.params, .end = UINT64_MAX };
    p.rule.cfa = FRAME_CFA_UNKNOWN;
    p.rule.signal_frame = cie->signal_frame;
    state.usable = cie->instructions.size <= CIE_INSTRUCTIONS_MAX && cfa_program_run(&p, cie->instructions);
    state.rule = p.rule;
    c->cies = mem_grow(c->cies, &c->cie_capacity, c->cie_count + 1, sizeof *c->cies);
    c->cies[c->cie_count] = state;
    return (uint32_t)c->cie_count++;
}

static void collect_function(struct compiler *c, const struct eh_fde *fde, uint64_t cie_off)
{
    /* a function the linker dropped keeps an FDE that starts at 0 */
    uint64_t start = fde->start - c->base;
    if (fde->size_bytes == 0 || fde->start <= c->base || start > UINT32_MAX ||
        fde->size_bytes > UINT32_MAX - start)
        return;
    uint32_t cie = compile_cie(c, &fde->cie, cie_off);
    c->functions = mem_grow(c->functions, &c->function_capacity, c->function_count + 1, sizeof *c->functions);
    c->functions[c->function_count++] =
        (struct function){ (uint32_t)start, (uint32_t)fde->size_bytes, cie, fde->instructions };
}

static bool collect_functions(struct compiler *c, struct span section, uint64_t section_addr,
                              struct error *err)
{
    struct eh_frame_iterator it = eh_frame_over(section, section_addr);
    for (struct eh_fde fde; eh_frame_next(&it, &fde);) {
        if (c->function_count == FUNCTIONS_MAX || c->cie_count == CIES_MAX)
            return error_set(err, ERROR_LIMIT, "unwind information of more than %d functions or %d CIEs",
                             FUNCTIONS_MAX, CIES_MAX);
        collect_function(c, &fde, it.cie_off);
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
    struct cfa_program p = {
        .params = &cie->params,
        .initial = &cie->rule,
        .rule = cie->rule,
        .at = f->start,
        .end = (uint64_t)f->start + f->size_bytes,
        .emit = compiler_emit,
        .user = c,
    };
    row_add(c, f->start, 0, true);
    if (!cie->usable || f->instructions.size > FUNCTION_INSTRUCTIONS_MAX ||
        !cfa_program_run(&p, f->instructions)) {
        p.rule.cfa = FRAME_CFA_UNKNOWN; /* from where it stopped making sense */
        c->out.skipped++;
    }
    if (p.at < p.end)
        compiler_emit(c, p.at, &p.rule);
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

static struct compiler compiler_for(uint64_t base, uint16_t machine)
{
    bool arm = machine == ELF_AARCH64;
    struct compiler c = { .base = base, .sp = arm ? 31 : 7, .fp = arm ? 29 : 6, .out = { .base = base } };
    c.out.rules = mem_grow(NULL, &c.rule_capacity, 64, sizeof *c.out.rules);
    c.out.rules[c.out.rule_count++] = (struct frame_rule){ 0 };
    return c;
}

static void compiler_done(struct compiler *c)
{
    free(c->cies);
    free(c->functions);
    free(c->rule_slots);
}

bool eh_rows_compile(struct span section, uint64_t section_addr, uint64_t base, uint16_t machine,
                     struct eh_rows *out, struct error *err)
{
    struct compiler c = compiler_for(base, machine);
    bool ok = collect_functions(&c, section, section_addr, err);
    sort_functions(c.functions, c.function_count);
    ok = ok && compile_all(&c, err);
    compiler_done(&c);
    if (!ok) {
        eh_rows_done(&c.out);
        return false;
    }
    if (c.out.count)
        c.out.rows = mem_resize(c.out.rows, c.out.count, sizeof *c.out.rows);
    *out = c.out;
    return true;
}

static void compile_at(struct compiler c, struct span section, uint64_t section_addr, uint64_t fde_off,
                       struct eh_rows *out)
{
    struct eh_frame_iterator it = eh_frame_over(section, section_addr);
    struct eh_fde fde;
    cursor_seek(&it.c, fde_off);
    if (cursor_ok(&it.c) && eh_frame_next(&it, &fde))
        collect_function(&c, &fde, it.cie_off);
    compile_all(&c, NULL);
    compiler_done(&c);
    c.out.rows = mem_resize(c.out.rows, c.out.count, sizeof *c.out.rows);
    c.out.rules = mem_resize(c.out.rules, c.out.rule_count, sizeof *c.out.rules);
    *out = c.out;
}

void eh_rows_compile_at(struct span section, uint64_t section_addr, uint64_t fde_off, uint64_t base,
                        uint16_t machine, struct eh_rows *out)
{
    compile_at(compiler_for(base, machine), section, section_addr, fde_off, out);
}

void eh_rows_compile_register_at(struct span section, uint64_t section_addr, uint64_t fde_off, uint64_t base,
                                 uint16_t machine, uint8_t number, struct eh_rows *out)
{
    struct compiler c = compiler_for(base, machine);
    c.fp = number;
    compile_at(c, section, section_addr, fde_off, out);
}

bool eh_rows_read(const struct elf *e, struct eh_rows *out, struct error *err)
{
    struct buffer bytes;
    uint64_t addr;
    bool ok = eh_frame_load(e, &bytes, &addr, err) &&
              eh_rows_compile(buffer_span(&bytes), addr, elf_base_addr(e), e->machine, out, err);
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
