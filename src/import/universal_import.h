/*
 * universal_import: processes, mappings, names and samples that a recorder of a whole machine told
 * (read/universal_events.h).
 *
 * Names of code come at any time, of mappings that several processes can have: they are given at the end.
 */
#ifndef CLRPERF_IMPORT_UNIVERSAL_IMPORT_H
#define CLRPERF_IMPORT_UNIVERSAL_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "import/mapped_files.h"
#include "read/nettrace.h"
#include "read/universal_events.h"
#include "trace/builder.h"

struct universal_import {
    struct trace_builder *b;          /* borrowed */
    struct universal_place *places;   /* which mapping is where in which process */
    struct universal_name *names;     /* of code of a mapping */
    struct universal_identity *files; /* what is known of a mapped file */
    size_t place_count, place_capacity, name_count, name_capacity, file_count, file_capacity;
    struct root_images roots;
    uint64_t samples;
    uint64_t malformed; /* events */
    uint64_t refused;   /* more than fit */
};

/* What an event of the process with that number says of it. */
void universal_import_tell(struct universal_import *u, enum universal_event kind,
                           const struct nettrace_event *event);
/* A sample of CPU time, which stands for `period_ns` each unit of its value; 0: not known. */
void universal_import_sample(struct universal_import *u, const struct nettrace_event *event,
                             uint32_t period_ns);
/* At the end: sets facts, and names what the file names. */
void universal_import_finish(struct universal_import *u, uint32_t period_ns);
void universal_import_done(struct universal_import *u);

#endif
