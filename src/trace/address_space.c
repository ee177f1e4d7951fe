#include "trace/address_space.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void address_space_done(struct address_space *space)
{
    free(space->ranges);
    *space = (struct address_space){ 0 };
}

void address_space_copy(struct address_space *to, const struct address_space *from)
{
    to->ranges = mem_grow(to->ranges, &to->capacity, from->count, sizeof *to->ranges);
    if (from->count)
        memcpy(to->ranges, from->ranges, from->count * sizeof *to->ranges);
    to->count = from->count;
}

/* The first range that ends above `addr`. */
static size_t address_space_above(const struct address_space *space, uint64_t addr)
{
    size_t low = 0, high = space->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (space->ranges[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces `removed` ranges at `at` by `added` new ones, whose content is left to the caller. */
static void address_space_splice(struct address_space *space, size_t at, size_t removed, size_t added)
{
    size_t tail = space->count - at - removed;
    space->ranges =
        mem_grow(space->ranges, &space->capacity, space->count + added - removed, sizeof *space->ranges);
    memmove(space->ranges + at + added, space->ranges + at + removed, tail * sizeof *space->ranges);
    space->count = at + added + tail;
}

void address_space_put(struct address_space *space, uint64_t start, uint64_t end, uint32_t mapping)
{
    size_t first = address_space_above(space, start);
    size_t last = first;
    while (last < space->count && space->ranges[last].start < end)
        last++;
    struct address_range left = { 0 }, right = { 0 };
    if (first < last && space->ranges[first].start < start)
        left = (struct address_range){ space->ranges[first].start, start, space->ranges[first].mapping };
    if (first < last && space->ranges[last - 1].end > end)
        right = (struct address_range){ end, space->ranges[last - 1].end, space->ranges[last - 1].mapping };
    size_t added = 1 + (left.end != 0) + (right.end != 0);
    address_space_splice(space, first, last - first, added);
    if (left.end)
        space->ranges[first++] = left;
    space->ranges[first++] = (struct address_range){ start, end, mapping };
    if (right.end)
        space->ranges[first] = right;
}

const struct address_range *address_space_find(const struct address_space *space, uint64_t addr)
{
    size_t at = address_space_above(space, addr);
    return at < space->count && space->ranges[at].start <= addr ? &space->ranges[at] : NULL;
}

const struct address_range *address_space_next(const struct address_space *space, uint64_t addr)
{
    size_t at = address_space_above(space, addr);
    return at < space->count ? &space->ranges[at] : NULL;
}
