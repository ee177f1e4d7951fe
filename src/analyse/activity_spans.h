/*
 * activity_spans: what event sources begin and end: pairs of events whose opcodes are Start and Stop.
 *
 * They are matched by the activity the events belong to, which a runtime keeps track of when its task library
 * is asked to. A name says what an activity was begun in, the outermost first: "Shop/Order > Shop/Payment".
 * Where it was not, activities of an ActivitySource tell of themselves (analyse/diagnostic_activity.h). Other
 * events in no activity, as their source may want it (EventActivityOptions.Disable), are matched by thread.
 */
#ifndef CLRPERF_ANALYSE_ACTIVITY_SPANS_H
#define CLRPERF_ANALYSE_ACTIVITY_SPANS_H

#include "analyse/span_table.h"

/* Whether an event may be one of them: what it is called is not known here. */
bool activity_spans_wants(const char *provider, uint32_t event_id);
/*
 * Adds them to a table that is not sealed, with the kind "activity". Whether there were any such events.
 * `out_by_thread`: how many began in no activity.
 */
bool activity_spans_add(struct span_table *table, const struct trace *t, uint64_t from_ns, uint64_t to_ns,
                        uint64_t *out_by_thread);

#endif
