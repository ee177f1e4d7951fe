/*
 * perf_ring: the memory that one CPU's perf events share with us.
 */
#ifndef CLRPERF_COLLECT_PERF_RING_H
#define CLRPERF_COLLECT_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"

struct perf_event_mmap_page;

struct perf_ring {
    struct perf_event_mmap_page *page; /* NULL when closed */
    const uint8_t *data;
    uint64_t size_bytes; /* of data, a power of two */
    uint64_t tail;
    uint8_t *joined; /* room for a record that wraps around the end, or NULL while none did */
};

/*
 * Maps the ring of an open event. `pages` is a power of two. Fails with the kernel's reason: EPERM and
 * ENOMEM where fewer may be granted.
 */
bool perf_ring_open(struct perf_ring *ring, int event_fd, size_t pages, struct error *err);
void perf_ring_close(struct perf_ring *ring);

/* Takes one record; `bytes` is valid until the function returns. */
typedef bool perf_ring_fn(void *user, struct span bytes);
/*
 * Hands over every record that is there, oldest first, and frees their room. Stops early when `take`
 * says no. Returns the number of records, or -1 when the ring is not what it should be.
 */
long perf_ring_drain(struct perf_ring *ring, perf_ring_fn *take, void *user);

#endif
