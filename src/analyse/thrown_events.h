/*
 * thrown_events: the exceptions that runtimes told of, in their order, and which of them threw one again.
 *
 * An exception object is thrown once; it is thrown again by `throw;`, which only .NET up to 8 tells, and by
 * each await of a task that failed (analyse/thrown_before.h).
 */
#ifndef CLRPERF_ANALYSE_THROWN_EVENTS_H
#define CLRPERF_ANALYSE_THROWN_EVENTS_H

#include "analyse/event_stacks.h"
#include "analyse/thrown_before.h"
#include "analyse/told_events.h"

struct thrown_events {
    struct told_events told;
    struct event_stacks stacks;
    struct thrown_before before;
    struct buffer type, message; /* of the one looked at last, as the runtime spells them */
};

void thrown_events_init(struct thrown_events *thrown, const struct trace *t, uint64_t from_ns,
                        uint64_t to_ns);
void thrown_events_done(struct thrown_events *thrown);

/* Whether one of `told` threw an exception again. They are looked at in their order, each once. */
bool thrown_events_again(struct thrown_events *thrown, const struct told_event *e);

/* By event of the trace: it threw an exception again. The caller frees. */
bool *thrown_events_all_again(const struct trace *t);

#endif
