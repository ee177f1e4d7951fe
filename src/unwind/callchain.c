#include "unwind/callchain.h"

size_t callchain_frames(const struct callchain *chain, const struct callchain_space *space,
                        enum callchain_end *out_end)
{
    size_t count = 0;
    while (count < chain->count && space->is_code(space->user, chain->frames[count]))
        count++;
    /* a leaf without code is where the thread really was: a jump into nothing, or code we do not know of */
    if (count == 0 && chain->count)
        count = 1;
    if (count < chain->count)
        *out_end = CALLCHAIN_BROKEN;
    else if (chain->is_cut)
        *out_end = CALLCHAIN_TRUNCATED;
    else if (count && space->is_root(space->user, chain->frames[count - 1]))
        *out_end = CALLCHAIN_WHOLE;
    else
        *out_end = CALLCHAIN_BROKEN;
    return count;
}
