#include "unwind/unwind_run.h"

enum { STACK_REACH_BYTES = 256 << 20 }; /* an address so far above the bytes may still be of this stack */

enum unwind_outcome unwind_run_other_word(const struct unwind_run *r, uint64_t addr, uint64_t *out)
{
    const struct unwind_sample *s = r->sample;
    if (s->read_word && s->read_word(s->user, addr, out))
        return OUTCOME_OK;
    if (r->later && addr >= r->stack_start && s->read_later(s->user, addr, out))
        return OUTCOME_OK;
    bool is_above = addr >= r->stack_start && addr - r->stack_start < s->stack.size + STACK_REACH_BYTES;
    return is_above ? OUTCOME_CUT : OUTCOME_FAILED;
}

bool unwind_run_code(const struct unwinder *u, uint64_t addr, uint8_t *into, size_t size)
{
    return u->space.read_code && u->space.read_code(u->space.user, addr, into, size);
}

struct unwind_code unwind_run_code_at(const struct unwinder *u, uint64_t addr)
{
    return u->space.find(u->space.user, addr);
}

bool unwind_run_is_return(const struct unwinder *u, uint64_t addr)
{
    uint8_t before[WORD_BYTES];
    return addr > sizeof before && unwind_run_code_at(u, addr - 1).kind != UNWIND_CODE_NONE &&
           unwind_run_code(u, addr - sizeof before, before, sizeof before) &&
           u->machine->is_after_call(span_of(before, sizeof before));
}
