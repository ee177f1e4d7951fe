/*
 * sample_events: samples as events, to be seen among those of runtimes in the order of their times.
 */
#ifndef CLRPERF_ANALYSE_SAMPLE_EVENTS_H
#define CLRPERF_ANALYSE_SAMPLE_EVENTS_H

#include <stdbool.h>

#include "trace/trace.h"

/*
 * Adds an event for each sample, of the provider "Linux", under the name that `report --event` has for its
 * kind ("cpu", "context-switches"), with the field CPU. Samples of where a thread was, whether it ran or not,
 * are events of their runtime's already. False when not all of them found room.
 */
bool sample_events_add(struct trace *t);
/* Whether it is one of these: its stack lacks no native frames. */
bool sample_events_has(const struct trace *t, const struct trace_event *event);

#endif
