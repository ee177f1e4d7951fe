#include "unwind/kept_register.h"

/* From a frame's value of the register to its caller's. */
static bool leave_frame(const struct unwind_run *r, const struct unwind_left *left, uint8_t number,
                        uint64_t *value)
{
    uint64_t inside = left->ip - !left->exact;
    struct unwind_code code = unwind_run_code_at(r->u, inside);
    struct frame_rule rule;
    if (code.kind != UNWIND_CODE_ELF || !elf_unwind_register(code.elf, inside - code.bias, number, &rule))
        return false;
    uint64_t slot = unwind_run_offset(left->cfa, rule.fp_off);
    /* below SP, of an epilog: it was popped already */
    if (rule.fp == FRAME_SAME || (rule.fp == FRAME_AT_CFA && slot < r->stack_start))
        return true;
    return rule.fp == FRAME_AT_CFA && unwind_run_word(r, slot, value) == OUTCOME_OK;
}

bool kept_register(const struct unwind_run *r, uint8_t number, uint64_t *out)
{
    if (!r->left_all || number >= r->u->machine->register_count)
        return false;
    *out = r->sample->registers->numbered[number];
    for (size_t i = 0; i < r->left_count; i++)
        if (!leave_frame(r, &r->left[i], number, out))
            return false;
    return true;
}
