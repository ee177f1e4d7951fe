/*
 * event_description: what an event in a .NET event stream says of itself.
 *
 * Events of EventSources carry the names and types of their fields in the stream's metadata. Specified in
 * microsoft/perfview, src/TraceEvent/EventPipe/NetTraceFormat_v5.md and NetTraceFormat.md (version 6).
 */
#ifndef CLRPERF_CLR_EVENT_DESCRIPTION_H
#define CLRPERF_CLR_EVENT_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "clr/event_field.h"

/* One kind of event. Everything is borrowed during the call that takes it. */
struct event_description {
    const char *provider; /* UTF-8 */
    uint32_t event_id, version;
    const char *name; /* UTF-8; "" of the runtime's own events */
    uint8_t opcode;
    struct span fields, params; /* undecoded; empty: none */
    unsigned pointer_size;      /* 4 or 8; 0 is 8 */
    bool v6;                    /* `fields` is written as in nettrace 6, else as in 3 to 5; params are of 5 */
};

/*
 * Fills `out`, which is empty, from `fields` or `params`. Where they end before they should, what was said
 * before then is in `out`. An event may have no fields.
 */
void event_description_read(const struct event_description *d, struct event_fields *out);

#endif
