/*
 * work_stretches: which activity each thread worked for, and when.
 *
 * A task library that was asked for it tells whenever a thread takes up another activity (SetActivityId);
 * then a stretch is told. Where it was not asked, the ids of all events are looked at: a thread that was in
 * the same activity at one event and at its next is assumed to have been in it all the time.
 */
#ifndef CLRPERF_ANALYSE_WORK_STRETCHES_H
#define CLRPERF_ANALYSE_WORK_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/activity_parents.h"
#include "trace/trace.h"

struct work_stretch {
    uint64_t from_ns, to_ns; /* to_ns UINT64_MAX: its end was not told */
    uint32_t process, thread;
    struct activity_path path; /* never none */
};

struct work_stretches {
    struct work_stretch *rows; /* in the order they begin */
    size_t count, capacity;
    bool *told; /* by process of the trace: its stretches are told */
};

/* The event that tells. */
bool work_stretches_wants(const char *provider, uint32_t event_id);
void work_stretches_init(struct work_stretches *work, const struct trace *t,
                         const struct activity_parents *parents);
void work_stretches_done(struct work_stretches *work);

#endif
