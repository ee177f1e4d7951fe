/*
 * profile_counts: how much of a profile's stacks and frames is known, and what its capture lost.
 */
#ifndef CLRPERF_ANALYSE_PROFILE_COUNTS_H
#define CLRPERF_ANALYSE_PROFILE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyse/profile.h"

/* What a profile has of one of the trace's stacks. What each sample touches lies together. */
struct stack_use {
    uint64_t weight;
    uint32_t samples; /* unless weights are samples */
    uint32_t node;
};

/*
 * Frames are counted once for each sample they are in: how much of what one looks at has a name. Puts samples
 * in the place of the stacks' weights; `weights_are_samples`: they are that already.
 */
void profile_counts_stacks(struct profile_counts *counts, const struct trace *t, struct stack_use *stacks,
                           bool weights_are_samples);
void profile_counts_losses(struct profile_counts *counts, const struct trace *t);

#endif
