/*
 * trace_lines: what `clrperf trace` says of one event after the other, as lines of text or of JSON.
 */
#ifndef CLRPERF_CLI_TRACE_LINES_H
#define CLRPERF_CLI_TRACE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "analyse/thrown_before.h"
#include "cli/throw_sites.h"
#include "cli/trace_requests.h"
#include "cli/trace_tally.h"
#include "cli/trace_threads.h"
#include "clr/stream_schemas.h"

struct trace_lines {
    struct trace_wants wants;
    bool json;
    uint64_t pid, started_ns;
    struct gc_watch collections;
    uint64_t heap_ns; /* sizes of a collection that is not over yet; 0: none */
    struct trace_requests requests;
    struct trace_threads *threads; /* owned */
    struct throw_sites *sites;     /* owned; NULL: awaits are not told from throws */
    struct thrown_before thrown;
    struct trace_tally tally;
    struct buffer out, scratch, type;
};

/* An event, in the order of time. */
struct trace_line_event {
    uint64_t time_ns, thread_id; /* as its process numbers it */
    uint8_t activity[16];
    uint64_t stack[THROW_FRAMES]; /* its first frames, of an exception */
    size_t stack_count;
};

/* The caller sets `wants`, `json`, `pid`, `started_ns`, `threads` and `sites` after. */
void trace_lines_init(struct trace_lines *l);
void trace_lines_done(struct trace_lines *l);
/* Appends what is to be said of it to l->out. */
void trace_lines_event(struct trace_lines *l, const struct stream_schema *of, struct span payload,
                       const struct trace_line_event *event);
/* What was allocated since it was told last, `passed_ns` ago. */
void trace_lines_allocating(struct trace_lines *l, uint64_t now_ns, uint64_t *seen_bytes, uint64_t passed_ns);
/* The sums. */
void trace_lines_end(struct trace_lines *l, uint64_t duration_ns, uint64_t lost);

#endif
