/*
 * nettrace_stacks: the call stacks of one stream between two sequence points, by id.
 */
#ifndef CLRPERF_READ_NETTRACE_STACKS_H
#define CLRPERF_READ_NETTRACE_STACKS_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "read/nettrace_header.h"

/* Added up, those of events that are known say how many had none. */
enum nettrace_stack_kind { NETTRACE_STACK_FRAMES, NETTRACE_STACK_EMPTY, NETTRACE_STACK_UNKNOWN };

struct nettrace_stack {
    uint32_t off, size; /* in `addresses`; off UINT32_MAX: none of this id */
    uint64_t mark;      /* the consumer's */
};

struct nettrace_stacks {
    struct buffer addresses;
    struct nettrace_stack *by_id;
    size_t count, capacity;
    uint8_t *kinds; /* enum nettrace_stack_kind, by id: of all that one byte tells at least */
    size_t kind_count;
};

void nettrace_stacks_init(struct nettrace_stacks *s);
void nettrace_stacks_done(struct nettrace_stacks *s);
/* Forgets all: ids mean nothing beyond a sequence point. */
void nettrace_stacks_clear(struct nettrace_stacks *s);
/* Reads a StackBlock. *refused grows by the stacks beyond our bounds. */
bool nettrace_stacks_read(struct nettrace_stacks *s, struct span content, uint32_t pointer_size,
                          uint64_t *refused, struct error *err);
/* NULL when the id is not known. Valid until the next change. */
static inline struct nettrace_stack *nettrace_stacks_at(const struct nettrace_stacks *s, uint32_t id)
{
    return id < s->count && s->by_id[id].off != UINT32_MAX ? &s->by_id[id] : NULL;
}
/* Of id 0, which is none, EMPTY. */
static inline enum nettrace_stack_kind nettrace_stacks_kind(const struct nettrace_stacks *s, uint32_t id)
{
    return id < s->kind_count ? s->kinds[id] : NETTRACE_STACK_UNKNOWN;
}
/* The addresses of one, leaf first; none for NULL. */
static inline struct span nettrace_stacks_addresses(const struct nettrace_stacks *s,
                                                    const struct nettrace_stack *stack)
{
    return stack && stack->size ? (struct span){ s->addresses.data + stack->off, stack->size }
                                : (struct span){ 0 };
}

#endif
