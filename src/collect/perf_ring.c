#include "collect/perf_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

enum {
    RING_RECORD_MAX = 65536,
    RING_GIVE_BACK_BYTES = 256 << 10, /* that much is read: the kernel may write there again */
};

bool perf_ring_open(struct perf_ring *ring, int event_fd, size_t pages, struct error *err)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, (pages + 1) * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event_fd, 0);
    if (memory == MAP_FAILED) {
        error_system(err, errno, "cannot map a ring for samples");
        return error_hint(err, "another profiler may hold the pool of locked memory; "
                               "raise it: sysctl kernel.perf_event_mlock_kb=2048");
    }
    *ring = (struct perf_ring){
        .page = memory,
        .data = (const uint8_t *)memory + page_bytes,
        .size_bytes = pages * page_bytes,
    };
    return true;
}

void perf_ring_close(struct perf_ring *ring)
{
    if (ring->page)
        munmap(ring->page, ring->size_bytes + (size_t)sysconf(_SC_PAGESIZE));
    free(ring->joined);
    *ring = (struct perf_ring){ 0 };
}

static void ring_give_back(struct perf_ring *ring)
{
    __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

/* A record that wraps around the ring's end, put together. */
static struct span ring_join(struct perf_ring *ring, uint64_t at, size_t size)
{
    size_t first = (size_t)(ring->size_bytes - at);
    if (!ring->joined)
        ring->joined = mem_alloc(RING_RECORD_MAX, 1);
    memcpy(ring->joined, ring->data + at, first);
    memcpy(ring->joined + first, ring->data, size - first);
    return span_of(ring->joined, size);
}

long perf_ring_drain(struct perf_ring *ring, perf_ring_fn *take, void *user)
{
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t given_back = ring->tail;
    long count = 0;
    bool going = true;
    while (going && head - ring->tail >= sizeof(struct perf_event_header)) {
        uint64_t at = ring->tail & (ring->size_bytes - 1);
        uint16_t size = load_u16le(ring->data + at + 6); /* records are 8-aligned: a header never wraps */
        if (size < sizeof(struct perf_event_header) || size > head - ring->tail) {
            count = -1;
            ring->tail = head;
            break;
        }
        bool wraps = at + size > ring->size_bytes;
        going = take(user, wraps ? ring_join(ring, at, size) : span_of(ring->data + at, size));
        ring->tail += size;
        count++;
        if (ring->tail - given_back >= RING_GIVE_BACK_BYTES) {
            ring_give_back(ring);
            given_back = ring->tail;
        }
    }
    ring_give_back(ring);
    return count;
}
