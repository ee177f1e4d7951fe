/*
 * timeline: what .NET runtimes told of besides a profile's samples, on the profile's clock: collections, the
 * pauses they made, exceptions, the size of the heap.
 */
#ifndef CLRPERF_ANALYSE_TIMELINE_H
#define CLRPERF_ANALYSE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/thread_filter.h"
#include "base/arena.h"
#include "trace/trace.h"

enum {
    TIMELINE_MARKS_MAX = 1 << 20,
    TIMELINE_TEXT_BYTES_MAX = 64 << 20,
};

enum timeline_kind { TIMELINE_PAUSE, TIMELINE_COLLECTION, TIMELINE_EXCEPTION, TIMELINE_KINDS };

const char *timeline_kind_name(enum timeline_kind kind); /* "GC pause" */

struct timeline_mark {
    uint64_t from_ns, to_ns; /* since the capture's start; the same of what takes no time */
    uint32_t pid, tid;       /* tid 0: not known */
    uint8_t kind;            /* enum timeline_kind */
    const char *text;        /* "#12 gen 2 in the background: induced"; UTF-8 of strangers */
};

/* The heap of a process has this size from here on. */
struct timeline_size {
    uint64_t time_ns, bytes;
    uint32_t pid;
};

struct timeline {
    struct arena texts;
    struct timeline_mark *marks; /* by begin */
    struct timeline_size *sizes; /* by process, then time */
    size_t mark_count, mark_capacity, size_count, size_capacity;
    uint64_t left_out; /* marks there was no room for */
};

/* The events that it is made of. */
bool timeline_wants(const char *provider, uint32_t event_id);
/* Times of the trace: `start_ns` is 0 of the timeline; of what begins from `from_ns` until `to_ns`, 0 its
 * end. `who` NULL: of all processes. */
void timeline_init(struct timeline *out, const struct trace *t, const struct thread_filter *who,
                   uint64_t start_ns, uint64_t from_ns, uint64_t to_ns);
void timeline_done(struct timeline *timeline);

#endif
