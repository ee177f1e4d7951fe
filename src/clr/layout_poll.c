#include "clr/layout_poll.h"

enum { CLOSE_PER_CENT = 90 }; /* of the winner's votes */

bool layout_poll_decide(const struct layout_poll *poll, uint32_t least, unsigned per_cent, size_t *out_place)
{
    size_t best = 0;
    uint64_t second = 0;
    for (size_t i = 1; i < POLL_PLACES; i++)
        if (poll->votes[i] > poll->votes[best])
            best = i;
    for (size_t i = 0; i < POLL_PLACES; i++)
        if (i != best && poll->votes[i] > second)
            second = poll->votes[i];
    uint64_t votes = poll->votes[best];
    if (votes == 0 || votes < least || votes * 100 < (uint64_t)poll->asked * per_cent ||
        second * 100 > votes * CLOSE_PER_CENT)
        return false;
    *out_place = best;
    return true;
}
