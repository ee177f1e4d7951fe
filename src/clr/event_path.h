/*
 * event_path: a field inside a field, "Payload.Mean" of an event counter.
 *
 * In an array of pairs of Key and Value, as DiagnosticSource sends it, it is the value of the key of that
 * name: "Arguments.Path". Keys may have dots.
 */
#ifndef CLRPERF_CLR_EVENT_PATH_H
#define CLRPERF_CLR_EVENT_PATH_H

#include "clr/event_schema.h"

/* False, and *out untouched, when there is no such value, as of an object or an array; of several the first.
 */
bool event_path_read(const struct event_schema *s, struct span payload, const char *path,
                     struct event_value *out);

#endif
