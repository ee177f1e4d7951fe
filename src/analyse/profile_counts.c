#include "analyse/profile_counts.h"

static void count_frame(struct profile_counts *counts, const struct trace *t, uint32_t location,
                        uint64_t samples)
{
    const struct trace_location *row = &t->locations.rows[location];
    if (row->function && t->functions.rows[row->function].kind == CODE_KERNEL)
        return;
    if (!row->process && !row->function)
        return;
    counts->user_frames += samples;
    if (row->unnamed && row->function) { /* imported without a name */
        counts->unnamed += samples;
        counts->unnamed_by[UNNAMED_NO_SYMBOL] += samples;
    } else if (row->resolver == RESOLVER_EH_FRAME || row->resolver == RESOLVER_CODE) {
        counts->native_without_symbols += samples;
    } else if (row->function) {
        counts->named += samples;
        counts->named_by[row->resolver < RESOLVERS ? row->resolver : RESOLVER_NONE] += samples;
    } else {
        counts->unnamed += samples;
        counts->unnamed_by[row->unnamed < UNNAMED_CAUSES ? row->unnamed : UNNAMED_NO_SYMBOL] += samples;
    }
}

void profile_counts_stacks(struct profile_counts *counts, const struct trace *t, struct stack_use *stacks,
                           bool weights_are_samples)
{
    for (size_t i = 0; i < t->stacks.count && !weights_are_samples; i++)
        stacks[i].weight = stacks[i].samples;
    for (size_t i = t->stacks.count; i-- > STACK_ROOTS;) {
        if (!stacks[i].weight)
            continue;
        stacks[t->stacks.rows[i].parent].weight += stacks[i].weight;
        count_frame(counts, t, t->stacks.rows[i].location, stacks[i].weight);
    }
    counts->whole = stacks[STACK_WHOLE].weight;
    counts->truncated = stacks[STACK_TRUNCATED].weight;
    counts->broken = stacks[STACK_BROKEN].weight + stacks[0].weight;
}

void profile_counts_losses(struct profile_counts *counts, const struct trace *t)
{
    for (size_t i = 1; i < t->losses.count; i++) {
        const struct trace_loss *loss = &t->losses.rows[i];
        if (loss->reason >= LOSS_REASONS)
            continue;
        counts->lost_by[loss->reason] += loss->count;
        if (loss->reason != LOSS_THROTTLED && loss->reason != LOSS_RUNTIME)
            counts->lost += loss->count;
    }
}
