/*
 * universal_events: what a recorder of a whole machine tells in a nettrace file, in the words of no runtime:
 * processes, what is mapped where, names of code, samples with stacks.
 *
 * Written by `dotnet-trace collect-linux` and record-trace (microsoft/one-collect); specified in
 * microsoft/perfview, src/TraceEvent/EventPipe/UniversalProviders.md. Whose an event is, and when it was, the
 * stream tells.
 */
#ifndef CLRPERF_READ_UNIVERSAL_EVENTS_H
#define CLRPERF_READ_UNIVERSAL_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"

#define UNIVERSAL_SYSTEM_PROVIDER "Universal.System"
#define UNIVERSAL_EVENTS_PROVIDER "Universal.Events"

enum universal_event {
    UNIVERSAL_NONE,
    UNIVERSAL_PROCESS, /* it was there before, or was made now */
    UNIVERSAL_EXIT,
    UNIVERSAL_MAPPING,
    UNIVERSAL_METADATA,
    UNIVERSAL_SYMBOL,
    UNIVERSAL_CPU,    /* a sample of CPU time */
    UNIVERSAL_SWITCH, /* a thread runs again; its stack is the one where it stopped */
};

/* Texts are UTF-8, in the payload. */
struct universal_process {
    uint64_t ns_pid;
    struct span name;
};

struct universal_mapping {
    uint64_t id; /* one of several processes, for what is mapped in all of them */
    uint64_t start, end, file_off;
    struct span path;     /* empty: of no file */
    uint64_t metadata_id; /* 0: none */
};

struct universal_metadata {
    uint64_t id;
    struct span symbols; /* JSON: what kind of file it is, and its identity */
};

struct universal_symbol {
    uint64_t mapping_id;
    uint64_t start, end; /* addresses; the last one is in it, too */
    struct span name;
};

/* Names are UTF-8. */
enum universal_event universal_event_named(const char *provider, const char *name);
/* Each fails with ERROR_INPUT when the payload ends before its fields do. */
bool universal_process_read(struct span payload, struct universal_process *out, struct error *err);
bool universal_mapping_read(struct span payload, struct universal_mapping *out, struct error *err);
bool universal_metadata_read(struct span payload, struct universal_metadata *out, struct error *err);
bool universal_symbol_read(struct span payload, struct universal_symbol *out, struct error *err);
/* The build id in hex that the metadata of an ELF file tells; false when it tells none. */
enum { UNIVERSAL_BUILD_ID_MAX = 128 };
bool universal_build_id(struct span symbols, char out[UNIVERSAL_BUILD_ID_MAX + 1]);
/* Of a sample: what it weighs; of a switch: how long the thread had not run, in ticks of the stream's clock.
 */
bool universal_value_read(struct span payload, uint64_t *out, struct error *err);

#endif
