/*
 * sorted: numbers that ascend.
 */
#ifndef CLRPERF_BASE_SORTED_H
#define CLRPERF_BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>

/* The place of the first that is at least `value`; `count` when there is none. */
static inline size_t sorted_from(const uint64_t *values, size_t count, uint64_t value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
