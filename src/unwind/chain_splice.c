#include "unwind/chain_splice.h"

size_t chain_splice(const struct unwind_frame *known, size_t known_count, const uint64_t *chain,
                    size_t chain_count)
{
    size_t pos = 0, behind = 0;
    for (size_t j = 0; j < chain_count && pos < known_count; j++)
        for (size_t i = pos; i < known_count; i++)
            if (known[i].ip == chain[j]) {
                pos = i + 1;
                behind = j + 1;
                break;
            }
    return behind;
}
