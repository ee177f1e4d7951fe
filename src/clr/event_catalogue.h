/*
 * event_catalogue: the events of the runtime's own providers, whose payloads nothing in the stream describes.
 *
 * Ids, layouts and versions are those of dotnet/runtime, src/coreclr/vm/ClrEtwAll.man; names are
 * TraceEvent's. Checked against what runtimes 8, 9 and 10 send (tests/live/events_test.py).
 */
#ifndef CLRPERF_CLR_EVENT_CATALOGUE_H
#define CLRPERF_CLR_EVENT_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalogue_event {
    uint16_t id;
    const char *name;   /* "GC/Start" */
    const char *layout; /* clr/event_layout.h */
};

struct catalogue_provider {
    const char *name;
    /* Newer runtimes describe this provider's events themselves: then that counts. */
    bool may_describe_itself;
    const struct catalogue_event *events; /* by id */
    size_t count;
};

/* All providers, ended by one without a name. */
extern const struct catalogue_provider event_catalogue[];

/* `described`: the event describes itself. NULL: not known here, or what it says itself is to be taken. */
const struct catalogue_event *event_catalogue_find(const char *provider, uint32_t event_id, bool described);

#endif
