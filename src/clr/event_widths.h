/*
 * event_widths: values that an event source wrote wider or narrower than it describes them.
 *
 * Its description has the types of the method that sends the event; the payload has what that passed to
 * WriteEvent(): a byte or an enumeration of bytes as an int, an int beside a long as a long. A source made
 * with EtwSelfDescribingEventFormat writes a Boolean as one byte and describes it as one of four (seen on 8
 * to 10). What comes behind lies elsewhere than it says. A width is believed when the payload ends with the
 * last field and each value is one that its type can hold.
 */
#ifndef CLRPERF_CLR_EVENT_WIDTHS_H
#define CLRPERF_CLR_EVENT_WIDTHS_H

#include <stdbool.h>

#include "base/cursor.h"
#include "clr/event_field.h"

enum { EVENT_WIDTHS_FIELDS_MAX = 32 };

/* Whether there can be such values, and the other fields are numbers or text. */
bool event_widths_vary(const struct event_fields *fields);
/*
 * Copies the event's own fields with the widths that this payload has. False, and `out` undefined, where
 * it is as described, or makes no sense in any width.
 */
bool event_widths_find(const struct event_fields *fields, struct span payload,
                       struct event_field out[EVENT_WIDTHS_FIELDS_MAX]);

#endif
