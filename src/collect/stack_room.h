/*
 * stack_room: how large the rings of a recording are, and how much of its stack a sample carries.
 */
#ifndef CLRPERF_COLLECT_STACK_ROOM_H
#define CLRPERF_COLLECT_STACK_ROOM_H

#include "collect/perf_events.h"

/*
 * Opens the events that `wanted` names with registers and stack bytes in their samples, and rings as large as
 * those want them. Where the kernel grants less, samples carry less of the stack, and the kernel's own chain
 * goes on behind it. Fails as perf_events_open() does.
 */
bool stack_room_open(const struct perf_events_options *wanted, struct perf_events *out, struct error *err);
/* The same for samples with the kernel's chain alone. */
bool stack_room_open_chains(const struct perf_events_options *wanted, struct perf_events *out,
                            struct error *err);

#endif
