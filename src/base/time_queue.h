/*
 * time_queue: puts what several sources report into one order by time.
 *
 * Sources are read one after the other, so what they say arrives out of order by as much as the
 * slowest of them is behind. Items wait here until nothing older can come. Those of one time stay in
 * the order in which they came.
 */
#ifndef CLRPERF_BASE_TIME_QUEUE_H
#define CLRPERF_BASE_TIME_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct time_item {
    uint64_t time_ns;
    uint32_t offset, size; /* in `bytes` */
    uint32_t kind;         /* the caller's */
};

struct time_queue {
    struct buffer bytes, spare;
    struct time_item *items;
    size_t first, count, capacity; /* items [first, count) wait, those before were handed over */
    size_t live_bytes;             /* of the items that wait */
    bool unsorted;
    struct time_item *aside; /* while they are sorted */
    size_t aside_capacity;
};

void time_queue_init(struct time_queue *q, size_t bytes_max);
void time_queue_done(struct time_queue *q);
/* Copies the item. False when the queue is full: release what is there, then try again. */
bool time_queue_add(struct time_queue *q, uint64_t time_ns, uint32_t kind, struct span bytes);

typedef void time_queue_fn(void *user, const struct time_item *item, struct span bytes);
/* Hands over, in order, every item up to `until_ns`. */
void time_queue_release(struct time_queue *q, uint64_t until_ns, time_queue_fn *take, void *user);
/* The time of the item in the middle of those that wait; there must be one. */
uint64_t time_queue_middle_ns(struct time_queue *q);

#endif
