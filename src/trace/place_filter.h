/*
 * place_filter: which places of processes were looked up, roughly: it can say of a range that none was in it.
 */
#ifndef CLRPERF_TRACE_PLACE_FILTER_H
#define CLRPERF_TRACE_PLACE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place_filter {
    uint64_t *bits; /* by a hash of the process and a stretch of its addresses */
    unsigned shift; /* of that hash's 64 bits */
};

/* `places`: how many it is made for; with more of them it says less often that there is none. */
void place_filter_init(struct place_filter *filter, size_t places);
void place_filter_done(struct place_filter *filter);
void place_filter_add(struct place_filter *filter, uint32_t process, uint64_t addr);
/* False: no place from `start` to below `end` was added. */
bool place_filter_may_have(const struct place_filter *filter, uint32_t process, uint64_t start, uint64_t end);

#endif
