/*
 * diagnostic_activity: which activity of an ActivitySource an event is of, as the activity tells itself.
 *
 * The provider of DiagnosticSources, asked for "[AS]*", tells of their begins and ends, with what
 * System.Diagnostics.Activity is among the arguments: its Id, or what a filter renames that to, and the
 * ParentId of what it was begun in. Specified in dotnet/runtime, src/libraries/
 * System.Diagnostics.DiagnosticSource/src/System/Diagnostics/DiagnosticSourceEventSource.cs.
 */
#ifndef CLRPERF_ANALYSE_DIAGNOSTIC_ACTIVITY_H
#define CLRPERF_ANALYSE_DIAGNOSTIC_ACTIVITY_H

#include "base/cursor.h"
#include "clr/activity_path.h"
#include "clr/event_schema.h"

/* Stand-ins for their ids, which no event source's activity has. */
struct diagnostic_activity {
    struct activity_path own, parent; /* parent: none where it was begun in none */
};

/* Of an event of DIAGNOSTIC_SOURCE_PROVIDER. False when it is of no activity, or does not say of which. */
bool diagnostic_activity_read(const struct event_schema *schema, struct span payload,
                              struct diagnostic_activity *out);

#endif
