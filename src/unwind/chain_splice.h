/*
 * chain_splice: where the kernel's callchain goes on behind frames found in another way.
 */
#ifndef CLRPERF_UNWIND_CHAIN_SPLICE_H
#define CLRPERF_UNWIND_CHAIN_SPLICE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/unwinder.h"

/*
 * The index in `chain` behind the last frame that both have; 0 when they have none in common. Both are leaf
 * first; frames that one of them lacks are skipped. Equal addresses are matched in order: a recursion that
 * goes on in the chain is not taken for the part that is known.
 */
size_t chain_splice(const struct unwind_frame *known, size_t known_count, const uint64_t *chain,
                    size_t chain_count);

#endif
