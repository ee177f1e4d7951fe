/*
 * native_leaf: the native frames below an event's managed leaf, borrowed from a sample of the same thread.
 *
 * A runtime's events have the managed frames of their stacks only. A sample lends what is below them when its
 * thread is the event's, it was taken at most NATIVE_LEAF_NS before or after, and both have the same managed
 * frames: all of them, or as far as both go where one was cut off. Of several the nearest in time does.
 * A sample that is shown as an event has all of its own.
 */
#ifndef CLRPERF_ANALYSE_NATIVE_LEAF_H
#define CLRPERF_ANALYSE_NATIVE_LEAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/event_stacks.h"
#include "trace/trace.h"

enum { NATIVE_LEAF_NS = 1000000 };

struct native_leaf {
    uint32_t frames[TRACE_STACK_DEPTH_MAX]; /* of the stacks' names, the leaf first */
    size_t count;                           /* at least 1 */
    int64_t after_ns; /* the sample was taken so long after the event; before it: negative */
};

struct leaf_sample;

struct native_leaves {
    struct event_stacks *stacks; /* borrowed: names of both */
    const struct trace *trace;   /* borrowed */
    struct leaf_sample *samples; /* by thread, then time */
    size_t count;
};

/* `stacks` is of the trace, and cuts nothing. */
void native_leaves_init(struct native_leaves *leaves, struct event_stacks *stacks, const struct trace *t);
void native_leaves_done(struct native_leaves *leaves);
/* False when no sample lends. */
bool native_leaf_find(struct native_leaves *leaves, const struct trace_event *event, struct native_leaf *out);
/* Valid until the next look for a stack. */
static inline const struct profile_frame *native_leaf_frame(const struct native_leaves *leaves,
                                                            const struct native_leaf *leaf, size_t i)
{
    return &leaves->stacks->names->frames[leaf->frames[i]];
}

#endif
