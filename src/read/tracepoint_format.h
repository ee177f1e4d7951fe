/*
 * tracepoint_format: what tracefs says of a tracepoint (events/GROUP/NAME/format): its number, and where its
 * fields stand. Specified in the kernel's Documentation/trace/events.rst, 2.2.
 */
#ifndef CLRPERF_READ_TRACEPOINT_FORMAT_H
#define CLRPERF_READ_TRACEPOINT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

/* Bytes from the record's beginning, and of the field. */
struct tracepoint_field {
    uint16_t offset, size;
};

/* The `config` of a perf event of this tracepoint. */
bool tracepoint_format_id(struct span text, uint32_t *out);
/* False when there is none of this name, or when its place makes no sense. */
bool tracepoint_format_field(struct span text, const char *name, struct tracepoint_field *out);

#endif
