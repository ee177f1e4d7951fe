#include "trace/past_mappings.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void past_mappings_done(struct past_mappings *past)
{
    free(past->rows);
    *past = (struct past_mappings){ 0 };
}

/* One more; of too many the older half goes. */
static void past_add(struct past_mappings *past, struct past_mapping row)
{
    if (past->count == PAST_MAPPINGS_MAX) {
        past->count /= 2;
        memmove(past->rows, past->rows + past->count, past->count * sizeof *past->rows);
    }
    past->rows = mem_grow(past->rows, &past->capacity, past->count + 1, sizeof *past->rows);
    past->rows[past->count++] = row;
}

void past_mappings_keep(struct past_mappings *past, const struct address_space *space, uint64_t start,
                        uint64_t end, uint32_t next, uint64_t until_ns)
{
    for (const struct address_range *range = address_space_next(space, start); range && range->start < end;
         range = address_space_next(space, range->end)) {
        if (range->mapping == next)
            continue;
        past_add(past, (struct past_mapping){
                           .start = range->start > start ? range->start : start,
                           .end = range->end < end ? range->end : end,
                           .until_ns = until_ns,
                           .mapping = range->mapping,
                       });
        past->changed_ns = until_ns > past->changed_ns ? until_ns : past->changed_ns;
    }
}

uint32_t past_mappings_at(const struct past_mappings *past, uint64_t addr, uint64_t time_ns)
{
    if (time_ns >= past->changed_ns)
        return 0;
    for (size_t i = 0; i < past->count; i++) { /* the first to be replaced is the one that was there */
        const struct past_mapping *row = &past->rows[i];
        if (time_ns < row->until_ns && addr >= row->start && addr < row->end)
            return row->mapping;
    }
    return 0;
}
