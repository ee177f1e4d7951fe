/*
 * kept_import: what an event stream says of a capture that clrperf made it from (clr/kept_events.h).
 */
#ifndef CLRPERF_IMPORT_KEPT_IMPORT_H
#define CLRPERF_IMPORT_KEPT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "clr/kept_events.h"
#include "trace/builder.h"

/* How a method was compiled and named. */
struct kept_import_method {
    uint64_t addr;
    uint32_t type_params; /* string */
    uint8_t kind, tier, resolver;
};

struct kept_import {
    uint32_t facts[KEPT_FACTS]; /* strings; 0: not told */
    struct kept_import_method *methods;
    size_t method_count, method_capacity;
    struct buffer text;
    uint64_t refused;   /* beyond our bounds */
    uint64_t malformed; /* events */
};

void kept_import_init(struct kept_import *k);
void kept_import_done(struct kept_import *k);
/* An event of KEPT_PROVIDER, of a process. */
void kept_import_take(struct kept_import *k, struct trace_builder *b, uint32_t process, uint32_t event_id,
                      struct span payload);
/* At the end of the stream: sets facts, in the place of what the stream says itself; methods can be found. */
void kept_import_finish(struct kept_import *k, struct trace *t);
/* The method that begins at an address, or NULL. */
const struct kept_import_method *kept_import_method(const struct kept_import *k, uint64_t addr);

#endif
