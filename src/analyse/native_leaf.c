#include "analyse/native_leaf.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/sample_events.h"
#include "base/mem.h"
#include "clr/method_name.h"

enum {
    RUNTIME_DEPTH_MAX = 100, /* frames a runtime puts into an event: those at the root are left out */
    SAMPLES_TRIED = 16,
};

struct leaf_sample {
    uint64_t time_ns;
    uint32_t thread, stack;
};

static int sample_compare(const void *a, const void *b)
{
    const struct leaf_sample *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

void native_leaves_init(struct native_leaves *leaves, struct event_stacks *stacks, const struct trace *t)
{
    const struct trace_samples *s = &t->samples;
    size_t capacity = 0;
    *leaves = (struct native_leaves){ .stacks = stacks, .trace = t };
    for (size_t i = 0; i < s->count && t->events.count > 1; i++) {
        if ((s->kind[i] != SAMPLE_CPU && s->kind[i] != SAMPLE_EVENT) || s->stack[i] < STACK_ROOTS)
            continue;
        leaves->samples = mem_grow(leaves->samples, &capacity, leaves->count + 1, sizeof *leaves->samples);
        leaves->samples[leaves->count++] = (struct leaf_sample){ s->time_ns[i], s->thread[i], s->stack[i] };
    }
    if (leaves->count)
        qsort(leaves->samples, leaves->count, sizeof *leaves->samples, sample_compare);
}

void native_leaves_done(struct native_leaves *leaves)
{
    free(leaves->samples);
}

static bool is_managed(const struct trace *t, uint32_t stack)
{
    const struct trace_location *location = &t->locations.rows[t->stacks.rows[stack].location];
    return code_kind_is_managed((enum code_kind)t->functions.rows[location->function].kind);
}

static uint32_t frame_of(const struct native_leaves *leaves, uint32_t stack)
{
    return frame_table_location(&leaves->stacks->frames, leaves->trace->stacks.rows[stack].location);
}

/* A runtime leaves them out of its events. */
static bool is_thunk(const struct trace *t, uint32_t stack)
{
    const struct trace_location *location = &t->locations.rows[t->stacks.rows[stack].location];
    const char *name = trace_string(t, t->functions.rows[location->function].name);
    return method_name_is_async_thunk(span_of(name, strlen(name)));
}

/* The next method from here on towards the root; below STACK_ROOTS: there is none. */
static uint32_t next_managed(const struct trace *t, uint32_t stack)
{
    while (stack >= STACK_ROOTS && (!is_managed(t, stack) || is_thunk(t, stack)))
        stack = t->stacks.rows[stack].parent;
    return stack;
}

/* Whether both have the same managed frames, as far as they were not cut off. */
static bool same_managed(const struct native_leaves *leaves, uint32_t event, uint32_t sample)
{
    const struct trace *t = leaves->trace;
    size_t depth = 0;
    bool is_cut = trace_stack_end(t, sample) != STACK_WHOLE;
    event = next_managed(t, event);
    sample = next_managed(t, sample);
    while (event >= STACK_ROOTS && sample >= STACK_ROOTS) {
        if (frame_of(leaves, event) != frame_of(leaves, sample))
            return false;
        depth++;
        event = next_managed(t, t->stacks.rows[event].parent);
        sample = next_managed(t, t->stacks.rows[sample].parent);
    }
    if (event >= STACK_ROOTS)
        return depth > 0 && is_cut;
    return depth > 0 && (sample < STACK_ROOTS || depth >= RUNTIME_DEPTH_MAX);
}

static bool borrow(const struct native_leaves *leaves, const struct trace_event *event,
                   const struct leaf_sample *sample, struct native_leaf *out)
{
    const struct trace *t = leaves->trace;
    if (is_managed(t, sample->stack) || !same_managed(leaves, event->stack, sample->stack))
        return false;
    out->count = 0;
    for (uint32_t at = sample->stack;
         at >= STACK_ROOTS && !is_managed(t, at) && out->count < TRACE_STACK_DEPTH_MAX;
         at = t->stacks.rows[at].parent)
        out->frames[out->count++] = frame_of(leaves, at);
    out->after_ns = (int64_t)(sample->time_ns - event->time_ns);
    return true;
}

/* The first sample of the thread that is not before the time. */
static size_t first_at(const struct native_leaves *leaves, uint32_t thread, uint64_t time_ns)
{
    struct leaf_sample wanted = { .time_ns = time_ns, .thread = thread };
    size_t low = 0, high = leaves->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sample_compare(&leaves->samples[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How far a sample is from the event; UINT64_MAX when there is none, or it is of another thread. */
static uint64_t distance(const struct native_leaves *leaves, size_t i, const struct trace_event *event)
{
    if (i >= leaves->count || leaves->samples[i].thread != event->thread)
        return UINT64_MAX;
    uint64_t time_ns = leaves->samples[i].time_ns;
    return time_ns > event->time_ns ? time_ns - event->time_ns : event->time_ns - time_ns;
}

bool native_leaf_find(struct native_leaves *leaves, const struct trace_event *event, struct native_leaf *out)
{
    if (!leaves->count || !event->thread || event->stack < STACK_ROOTS ||
        sample_events_has(leaves->trace, event))
        return false;
    size_t after = first_at(leaves, event->thread, event->time_ns), before = after - 1; /* wraps: none */
    for (unsigned i = 0; i < SAMPLES_TRIED; i++) {
        uint64_t to_before = distance(leaves, before, event), to_after = distance(leaves, after, event);
        bool is_after = to_after <= to_before;
        if ((is_after ? to_after : to_before) > NATIVE_LEAF_NS)
            return false;
        if (borrow(leaves, event, &leaves->samples[is_after ? after++ : before--], out))
            return true;
    }
    return false;
}
