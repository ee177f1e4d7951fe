/*
 * span_lanes: spans by what tells which threads worked for them: their activity, or their one thread.
 *
 * Those of one owner that go on at once are in different lanes: spans of a lane are in time order and do not
 * overlap. Lanes are limited, so that a moment of a thread belongs to few spans, whatever the capture says.
 */
#ifndef CLRPERF_ANALYSE_SPAN_LANES_H
#define CLRPERF_ANALYSE_SPAN_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "analyse/span_table.h"
#include "clr/activity_path.h"

enum { SPAN_LANES_MAX = 64 };

struct span_owner {
    uint32_t process, thread; /* of the trace; thread 0: the activity tells the threads */
    struct activity_path path;
};

struct laned_span {
    struct span_owner owner;
    uint32_t lane, row; /* of the table */
    uint64_t start_ns, stop_ns;
};

struct span_lanes {
    struct laned_span *rows; /* by owner, lane and time */
    size_t count;
    uint64_t left_out; /* spans that went on while all lanes of their owner were taken */
};

typedef void span_lanes_fn(void *user, const struct laned_span *span);

/* `table` is not kept. Spans that nothing tells the threads of have no lane. */
void span_lanes_init(struct span_lanes *lanes, const struct span_table *table);
void span_lanes_done(struct span_lanes *lanes);
/* The spans of an owner that went on between two times. */
void span_lanes_each(const struct span_lanes *lanes, const struct span_owner *owner, uint64_t from_ns,
                     uint64_t to_ns, span_lanes_fn *each, void *user);

#endif
