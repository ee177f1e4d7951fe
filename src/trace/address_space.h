/*
 * address_space: what a process has mapped at the moment, by address.
 */
#ifndef CLRPERF_TRACE_ADDRESS_SPACE_H
#define CLRPERF_TRACE_ADDRESS_SPACE_H

#include <stddef.h>
#include <stdint.h>

struct address_range {
    uint64_t start, end;
    uint32_t mapping;
};

struct address_space {
    struct address_range *ranges; /* sorted, disjoint */
    size_t count, capacity;
};

void address_space_done(struct address_space *space);
void address_space_copy(struct address_space *to, const struct address_space *from);
/* Puts a mapping there; whatever overlaps it is cut back. start < end. */
void address_space_put(struct address_space *space, uint64_t start, uint64_t end, uint32_t mapping);
/* The range that covers `addr`, or NULL. Valid until the next change. */
const struct address_range *address_space_find(const struct address_space *space, uint64_t addr);
/* The first range that ends above `addr`, or NULL. */
const struct address_range *address_space_next(const struct address_space *space, uint64_t addr);

#endif
