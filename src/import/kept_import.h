/*
 * kept_import: what an event stream keeps of a capture that clrperf made it from (clr/kept_rows.h).
 */
#ifndef CLRPERF_IMPORT_KEPT_IMPORT_H
#define CLRPERF_IMPORT_KEPT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "clr/kept_rows.h"
#include "trace/builder.h"

struct kept_import {
    bool any;                   /* clrperf wrote the stream */
    uint32_t facts[KEPT_FACTS]; /* strings; 0: not told */
    uint64_t refused;           /* rows beyond our bounds */
    uint64_t malformed;         /* rows */
};

/* A row, UTF-8, of a process. */
void kept_import_take(struct kept_import *k, struct trace_builder *b, uint32_t process, uint32_t row_id,
                      struct span text);
/* At the end of the stream: sets facts, in the place of what the stream says itself. */
void kept_import_finish(const struct kept_import *k, struct trace *t);

#endif
