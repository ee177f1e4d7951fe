/*
 * other_events: the samples of a file's events that an importer does not take, counted by the event's name.
 */
#ifndef CLRPERF_IMPORT_OTHER_EVENTS_H
#define CLRPERF_IMPORT_OTHER_EVENTS_H

#include "base/intern.h"
#include "trace/trace.h"

enum { OTHER_EVENTS_MAX = 64 };

struct other_events {
    struct intern names;
    uint64_t counts[OTHER_EVENTS_MAX]; /* by name's id; what has none, or one too many, is at 0 */
};

void other_events_init(struct other_events *others);
void other_events_done(struct other_events *others);
void other_events_add(struct other_events *others, struct span name, uint64_t samples);
/* Says in the trace which they are, and that `taken` is shown instead: nothing if there are none. */
void other_events_tell(const struct other_events *others, const char *taken, struct trace *t);

#endif
