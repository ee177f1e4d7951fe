/*
 * event_samples: the stacks of one kind of event as samples, each of which counts one.
 *
 * For captures that hold nothing else with stacks: what reads samples can show them.
 */
#ifndef CLRPERF_ANALYSE_EVENT_SAMPLES_H
#define CLRPERF_ANALYSE_EVENT_SAMPLES_H

#include <stdbool.h>

#include "trace/trace.h"

/*
 * Adds the stacks of one kind of event as samples, under its name ("GC/Triggered"): of `name`, or, when that
 * is NULL, of the first that has any. False, and nothing added, when the trace has samples, or no such event
 * with a stack.
 */
bool event_samples_add(struct trace *t, const char *name);

#endif
