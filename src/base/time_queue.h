/*
 * time_queue: puts what several sources report into one order by time.
 *
 * Sources are read one after the other, so what they say arrives out of order by as much as the
 * slowest of them is behind. Items wait here until nothing older can come. Those of one time stay in
 * the order in which they came. What waits is copied once, into chunks that are used again; each item is
 * aligned to 8 bytes.
 */
#ifndef CLRPERF_BASE_TIME_QUEUE_H
#define CLRPERF_BASE_TIME_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

struct time_item;
typedef void time_queue_fn(void *user, const struct time_item *item, struct span bytes);

struct time_item {
    uint64_t time_ns;
    uint32_t chunk, offset, size;
    uint32_t kind; /* the caller's */
};

struct time_chunk {
    uint8_t *bytes; /* owned; NULL: given back */
    size_t capacity, used;
    size_t waiting; /* items */
};

struct time_queue {
    /* NULL, or told of an item a few before its turn: what it will need is brought from memory meanwhile. Not
     * all are told of, and one that is may stay for a later round. */
    time_queue_fn *expect;
    struct time_chunk *chunks;
    size_t chunk_count, chunk_capacity;
    size_t filling; /* the chunk that is written to */
    size_t busy;    /* chunks in which items wait; */
    size_t wanted;  /* how many there were of late */
    struct time_item *items;
    size_t first, count, capacity; /* items [first, count) wait, those before were handed over */
    size_t live_bytes, bytes_max;  /* of the items that wait */
    bool unsorted;
    struct time_item *aside; /* while they are sorted */
    size_t aside_capacity;
};

void time_queue_init(struct time_queue *q, size_t bytes_max);
void time_queue_done(struct time_queue *q);
/* Copies the item. False when the queue is full: release what is there, then try again. */
bool time_queue_add(struct time_queue *q, uint64_t time_ns, uint32_t kind, struct span bytes);
/* Where an item of at most `size_max` bytes can be put together, or NULL when the queue is full. */
uint8_t *time_queue_room(struct time_queue *q, size_t size_max);
/* Adds the item that was put there. */
void time_queue_add_made(struct time_queue *q, uint64_t time_ns, uint32_t kind, size_t size);

/* Hands over, in order, every item up to `until_ns`. The bytes are valid during the call only. */
void time_queue_release(struct time_queue *q, uint64_t until_ns, time_queue_fn *take, void *user);
/*
 * The same in two parts: the bytes of all items handed over are valid until they are forgotten, or another
 * one is added.
 */
void time_queue_hand_over(struct time_queue *q, uint64_t until_ns, time_queue_fn *take, void *user);
void time_queue_forget(struct time_queue *q);
/* The time of the item in the middle of those that wait; there must be one. */
uint64_t time_queue_middle_ns(struct time_queue *q);

#endif
