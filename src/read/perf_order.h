/*
 * perf_order: puts perf records back in the order of their times.
 *
 * perf writes what it drained from one ring after the other, so records are sorted per ring only. After
 * each pass over all rings it writes FINISHED_ROUND: what was drained in a round is not older than the
 * newest record of the round before the last. Specified in the Linux source,
 * tools/perf/util/ordered-events.c and the comment in session.c.
 */
#ifndef CLRPERF_READ_PERF_ORDER_H
#define CLRPERF_READ_PERF_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/time_queue.h"

/* The span is valid until the records handed out are settled. */
typedef bool perf_order_fn(void *user, struct span record, uint64_t time_ns, struct error *err);

/* Whatever was handed out goes away now. */
typedef void perf_order_settle_fn(void *user);

struct perf_order {
    perf_order_fn *deliver;
    perf_order_settle_fn *settle;
    void *user;
    struct time_queue waiting;
    size_t ceiling; /* of waiting bytes; beyond, the older half goes out although the round is not over */
    uint64_t newest_ns, round_end_ns;
    uint64_t delivered_ns; /* time of the last record that went out */
    uint64_t late;         /* records that went out behind a newer one */
    bool failed;           /* `deliver` did: nothing goes out any more */
    struct error *err;     /* of the call under way */
};

void perf_order_init(struct perf_order *o, size_t ceiling, perf_order_fn *deliver,
                     perf_order_settle_fn *settle, void *user);
void perf_order_done(struct perf_order *o);
/* Copies the record. Fails only when `deliver` does. */
bool perf_order_add(struct perf_order *o, struct span record, uint64_t time_ns, struct error *err);
/* A FINISHED_ROUND was read. */
bool perf_order_round(struct perf_order *o, struct error *err);
/* Everything that waits goes out. */
bool perf_order_flush(struct perf_order *o, struct error *err);

#endif
