/*
 * unwinder_check: the frames that a stack should have, compared with those that were found.
 */
#ifndef CLRPERF_TESTS_UNWINDER_CHECK_H
#define CLRPERF_TESTS_UNWINDER_CHECK_H

#include "unwind/unwinder.h"

struct unwinder_expected {
    const char *name;
    const uint64_t *frames; /* leaf first; 0 ends */
    size_t room;            /* of them */
    enum unwind_end end;
    enum unwind_found last; /* how the outermost was found */
};

static inline void unwinder_check(const struct unwinder_expected *e, const struct unwind_result *r,
                                  const struct unwind_frame *found)
{
    size_t count = 0;
    while (count < e->room && e->frames[count])
        count++;
    for (size_t k = 0; k < count && k < r->count; k++)
        if (found[k].ip != e->frames[k])
            fail_msg("%s: frame %zu is %#llx", e->name, k, (unsigned long long)found[k].ip);
    if (r->count != count || r->end != e->end || found[count - 1].found != e->last)
        fail_msg("%s: %zu frames, end %d, last found by %d", e->name, r->count, r->end,
                 r->count ? found[r->count - 1].found : -1);
}

#endif
