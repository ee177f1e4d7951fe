#include "unwind/root_tails.h"

static size_t tail_index(const struct root_tails *t, uint64_t ip)
{
    size_t i = 0;
    while (i < t->count && t->tails[i].ip != ip)
        i++;
    return i;
}

void root_tails_learn(struct root_tails *t, const struct unwind_frame *frames, size_t count)
{
    for (size_t i = count; i-- > 1 && count - i <= ROOT_TAIL_FRAMES;) {
        bool is_native = frames[i].found == UNWIND_FOUND_CFI || frames[i].found == UNWIND_FOUND_FLOW;
        if (!is_native) /* only those functions have just one caller */
            return;
        if (frames[i].exact || frames[i - 1].exact) /* interrupted anywhere, or a leaf, which many call */
            return;
        size_t at = tail_index(t, frames[i - 1].ip);
        if (at < t->count && t->tails[at].caller != frames[i].ip)
            t->tails[at].caller = 0;
        else if (at == t->count && at < ROOT_TAILS_MAX)
            t->tails[t->count++] = (struct root_tail){ frames[i - 1].ip, frames[i].ip };
    }
}

uint64_t root_tails_caller(const struct root_tails *t, uint64_t ip)
{
    size_t at = tail_index(t, ip);
    return at < t->count ? t->tails[at].caller : 0;
}
