/*
 * stack_mark: what a stack of a nettrace stream became in the trace, in the mark that its reader keeps for
 * it.
 *
 * A sample's leaf is exact, an event's is not, and what an address means depends on the process: a mark holds
 * for one of these. Inline, as a stream has millions of samples.
 */
#ifndef CLRPERF_IMPORT_STACK_MARK_H
#define CLRPERF_IMPORT_STACK_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The process's row, the stack and whether it is a sample's. Never 0 for a stack. */
static inline uint64_t stack_mark_of(uint32_t process, bool is_sample, uint32_t stack)
{
    return (uint64_t)process << 33 | (uint64_t)stack << 1 | is_sample;
}

/* The stack, or 0: none, or another's. `mark` may be NULL. */
static inline uint32_t stack_mark_get(const uint64_t *mark, uint32_t process, bool is_sample)
{
    const uint64_t others = ~((uint64_t)UINT32_MAX << 1);
    return mark && (*mark & others) == stack_mark_of(process, is_sample, 0) ? (uint32_t)(*mark >> 1) : 0;
}

#endif
