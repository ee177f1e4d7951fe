/*
 * layout_poll: which of many places in a structure holds what is looked for, by the votes of all that have
 * one.
 */
#ifndef CLRPERF_CLR_LAYOUT_POLL_H
#define CLRPERF_CLR_LAYOUT_POLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POLL_PLACES = 1024 };

struct layout_poll {
    uint32_t asked, votes[POLL_PLACES];
};

/* False when fewer than `least` or `per_cent` of those asked agree, or another place comes close. */
bool layout_poll_decide(const struct layout_poll *poll, uint32_t least, unsigned per_cent, size_t *out_place);

#endif
