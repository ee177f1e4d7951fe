/*
 * gc_stops: which of the stops of a runtime's threads are for collections. A sampler stops them, too, round
 * by round, and what it does so for is not looked at.
 */
#ifndef CLRPERF_IMPORT_GC_STOPS_H
#define CLRPERF_IMPORT_GC_STOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "clr/runtime_events.h"

struct gc_stops {
    bool *other; /* by thread of the trace: its latest stop is for something else */
    size_t capacity;
};

/*
 * Whether an event is of a collection, or may be: of a stop whose beginning is not there. Those of one thread
 * come in time order.
 */
bool gc_stops_wants(struct gc_stops *s, enum runtime_event_kind kind, uint32_t thread, struct span payload);
void gc_stops_done(struct gc_stops *s);

#endif
