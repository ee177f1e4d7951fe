#include "trace/place_filter.h"

#include <stdlib.h>

#include "base/mem.h"

/* A stretch is smaller than most methods, whose neighbours have others then. */
enum { STRETCH_SHIFT = 8, STRETCHES_MAX = 256, BITS_OF_A_PLACE = 16, BITS_MIN = 10, BITS_MAX = 22 };

void place_filter_init(struct place_filter *filter, size_t places)
{
    unsigned bits = BITS_MIN;
    while (bits < BITS_MAX && (size_t)1 << bits < places * BITS_OF_A_PLACE)
        bits++;
    *filter = (struct place_filter){ mem_alloc((size_t)1 << (bits - 6), sizeof *filter->bits), 64 - bits };
}

void place_filter_done(struct place_filter *filter)
{
    free(filter->bits);
    *filter = (struct place_filter){ 0 };
}

static uint64_t bit_of(const struct place_filter *filter, uint32_t process, uint64_t stretch)
{
    return ((stretch ^ (uint64_t)process << 32) * 0x9e3779b97f4a7c15ull) >> filter->shift;
}

void place_filter_add(struct place_filter *filter, uint32_t process, uint64_t addr)
{
    uint64_t bit = bit_of(filter, process, addr >> STRETCH_SHIFT);
    filter->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

bool place_filter_may_have(const struct place_filter *filter, uint32_t process, uint64_t start, uint64_t end)
{
    if (start >= end)
        return false;
    uint64_t first = start >> STRETCH_SHIFT, last = (end - 1) >> STRETCH_SHIFT;
    if (last - first >= STRETCHES_MAX)
        return true;
    for (uint64_t stretch = first; stretch <= last; stretch++) {
        uint64_t bit = bit_of(filter, process, stretch);
        if (filter->bits[bit / 64] >> bit % 64 & 1)
            return true;
    }
    return false;
}
