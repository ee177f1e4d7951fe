/*
 * record_queue: puts what several rings and runtimes report into one order by time.
 *
 * Sources are read one after the other, so what they say arrives out of order by as much as the
 * slowest of them is behind. Items wait here until nothing older can come. Those of one time stay in
 * the order in which they came.
 */
#ifndef CLRPERF_COLLECT_RECORD_QUEUE_H
#define CLRPERF_COLLECT_RECORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum queue_item_kind { QUEUE_PERF_RECORD, QUEUE_CODE, QUEUE_EVENT };

struct queue_item {
    uint64_t time_ns;
    uint32_t offset, size; /* in `bytes` */
    uint32_t kind;         /* enum queue_item_kind */
};

struct record_queue {
    struct buffer bytes, spare;
    struct queue_item *items;
    size_t first, count, capacity; /* items [first, count) wait, those before were handed over */
    size_t live_bytes;             /* of the items that wait */
    bool unsorted;
    struct queue_item *aside; /* while they are sorted */
    size_t aside_capacity;
};

void record_queue_init(struct record_queue *q, size_t bytes_max);
void record_queue_done(struct record_queue *q);
/* Copies the item. False when the queue is full: release what is there, then try again. */
bool record_queue_add(struct record_queue *q, uint64_t time_ns, enum queue_item_kind kind, struct span bytes);

typedef void record_queue_fn(void *user, enum queue_item_kind kind, struct span bytes);
/* Hands over, in order, every item up to `until_ns`. */
void record_queue_release(struct record_queue *q, uint64_t until_ns, record_queue_fn *take, void *user);

#endif
