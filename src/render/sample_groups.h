/*
 * sample_groups: a profile's samples counted by (owner, node), where the caller says which owner a
 * thread belongs to.
 */
#ifndef CLRPERF_RENDER_SAMPLE_GROUPS_H
#define CLRPERF_RENDER_SAMPLE_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "analyse/profile.h"

struct sample_group {
    uint32_t owner;
    uint32_t node;
    uint64_t samples, weight;
};

struct sample_groups {
    struct sample_group *rows; /* by owner, then by node */
    size_t count;
};

/* `owner_of`: by thread id, as many as the profile has threads. */
void sample_groups_init(struct sample_groups *groups, const struct profile *p, const uint32_t *owner_of);
void sample_groups_done(struct sample_groups *groups);

/* Indices of samples, by thread and within a thread in time order. */
struct thread_samples {
    uint32_t *sample;
    size_t *start; /* by thread; one more than there are threads */
};

void thread_samples_init(struct thread_samples *by_thread, const struct profile *p);
void thread_samples_done(struct thread_samples *by_thread);

#endif
