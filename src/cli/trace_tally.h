/*
 * trace_tally: what was told while events were watched, summed up for the end.
 */
#ifndef CLRPERF_CLI_TRACE_TALLY_H
#define CLRPERF_CLI_TRACE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/intern.h"
#include "base/json_writer.h"
#include "cli/trace_requests.h"
#include "clr/gc_events.h"
#include "clr/gc_watch.h"

/* What is asked for: it has lines of its own, and sums. */
struct trace_wants {
    bool gc, heap, alloc, exceptions, http, tasks;
};

/* Counts by a name; those beyond a limit are one. */
struct trace_ranking {
    struct intern names;
    struct trace_rank {
        uint64_t count, bytes;
    } * rows; /* by name; [0] is all that has no room */
    size_t capacity;
    uint64_t count, bytes; /* of all */
};

struct trace_tally {
    uint64_t collections[3], induced, background;
    uint64_t pause_ns, longest_ns;
    bool heap_known;
    uint64_t heap_bytes[GC_EVENT_GENS];
    struct trace_ranking allocated, thrown, other; /* by type; by event */
    uint64_t rethrown;                             /* exceptions that had been thrown before */
    uint64_t lost;
};

void trace_tally_init(struct trace_tally *t);
void trace_tally_done(struct trace_tally *t);
void trace_ranking_add(struct trace_ranking *r, struct span name, uint64_t bytes);
void trace_tally_collection(struct trace_tally *t, const struct gc_watch_one *gc);
/* The lines at the end. */
void trace_tally_text(const struct trace_tally *t, uint64_t duration_ns, struct buffer *out);
/* The heaviest types since the last time, a line. */
void trace_tally_allocating(struct trace_tally *t, uint64_t *seen_bytes, uint64_t passed_ns,
                            struct buffer *out);
/* One object. What was neither asked for nor told is null in it. */
void trace_tally_json(const struct trace_tally *t, const struct trace_wants *asked,
                      const struct trace_requests *requests, uint64_t duration_ns, struct json_writer *j);

#endif
