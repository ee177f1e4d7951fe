/*
 * gc_watch: collections as a runtime tells of them, one after the other, in time order.
 *
 * A collection is over with its end, and, when threads stood still for it, once they run again. One in the
 * background has two pauses, with others in between.
 */
#ifndef CLRPERF_CLR_GC_WATCH_H
#define CLRPERF_CLR_GC_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "clr/runtime_events.h"

struct gc_watch_one {
    uint32_t number, generation, reason;
    uint8_t type; /* enum runtime_gc_type */
    uint64_t start_ns, pause_ns;
};

enum { GC_WATCH_OPEN_MAX = 8 };

struct gc_watch {
    struct gc_watch_open {
        struct gc_watch_one gc;
        bool ended, in_pause; /* it started, or went on, in the pause that is under way */
    } open[GC_WATCH_OPEN_MAX];
    unsigned count;
    bool paused; /* for a collection */
    uint64_t paused_ns;
    uint64_t dropped; /* collections whose end was never told */
};

/* Takes an event of the runtime's own provider; others change nothing. True when a collection is over: *out.
 */
bool gc_watch_take(struct gc_watch *w, uint32_t event_id, uint64_t time_ns, struct span payload,
                   struct gc_watch_one *out);

#endif
