/*
 * stopping_event: an event that ends a recording: by its provider, its name, the values of its fields.
 */
#ifndef CLRPERF_CLR_STOPPING_EVENT_H
#define CLRPERF_CLR_STOPPING_EVENT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "read/nettrace.h"

struct stopping_event;

/*
 * `event` as reports and TraceEvent spell it, "GC/Start", or as its provider does; NULL: any. `fields`:
 * "name:value,...", all of which must be so; NULL: whatever they are; needs `event`. Fails with ERROR_USAGE.
 */
bool stopping_event_new(const char *provider, const char *event, const char *fields,
                        struct stopping_event **out, struct error *err);
void stopping_event_free(struct stopping_event *s);
/* `type` must stay where it is as long as its reader lives. `pointer_size`: 4 or 8. */
bool stopping_event_is(struct stopping_event *s, const struct nettrace_type *type, uint32_t pointer_size,
                       struct span payload);
/* Of one that did not come: what came instead, "Shop told of 12 events, none of them 'Order/Start'". */
void stopping_event_append_missed(const struct stopping_event *s, struct buffer *out);

#endif
