/*
 * trace_ids: whether all ids in a trace lead somewhere, for tests of what makes traces of strangers' files.
 */
#ifndef CLRPERF_TESTS_TRACE_IDS_H
#define CLRPERF_TESTS_TRACE_IDS_H

#include "trace/trace.h"

static inline bool trace_ids_lead_somewhere(const struct trace *t)
{
    bool ok = true;
    for (size_t i = 0; i < t->samples.count; i++)
        ok = ok && t->samples.thread[i] && t->samples.thread[i] < t->threads.count &&
             t->samples.stack[i] < t->stacks.count;
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *event = &t->events.rows[i];
        ok = ok && event->type < t->event_types.count && event->stack < t->stacks.count &&
             event->thread < t->threads.count && event->process < t->processes.count;
    }
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++)
        ok = ok && t->stacks.rows[i].parent < i && t->stacks.rows[i].location < t->locations.count;
    for (size_t i = 1; i < t->mappings.count; i++) {
        const struct trace_mapping *mapping = &t->mappings.rows[i];
        ok = ok && mapping->process < t->processes.count && mapping->image < t->images.count &&
             mapping->start < mapping->end;
    }
    return ok;
}

#endif
