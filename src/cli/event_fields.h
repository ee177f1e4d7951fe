/*
 * event_fields: an event's fields as members of a JSON object, or as text.
 */
#ifndef CLRPERF_CLI_EVENT_FIELDS_H
#define CLRPERF_CLI_EVENT_FIELDS_H

#include "base/json_writer.h"
#include "clr/event_schema.h"

/*
 * The member "fields": an object; arrays and objects in it are such. False when the payload ended before the
 * last of them. `scratch` is anyone's, reused.
 */
bool event_fields_json(struct json_writer *j, const struct event_schema *s, struct span payload,
                       struct buffer *scratch);
/* One value: numbers that have names by name, addresses, bytes and ids as text. */
void event_value_json(struct json_writer *j, const struct event_value *v, struct buffer *scratch);
/* "Count=7 Reason=Induced Values=[{Address=0x7f} ...]", arrays cut at a few items; not escaped. "[cut]" at
 * the end of a payload that ends too early. */
void event_fields_text(const struct event_schema *s, struct span payload, struct buffer *out);
/* The value of this field alone, likewise; nothing when there is none of that name. */
void event_field_text(const struct event_schema *s, struct span payload, const char *name,
                      struct buffer *out);
/* The bytes in hex, without anything between. */
void event_bytes_hex(struct span bytes, struct buffer *out);

#endif
