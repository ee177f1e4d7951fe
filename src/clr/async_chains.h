/*
 * async_chains: the logical stacks of async code: who awaits whom, from what is waited for to who began it.
 *
 * Each way through the graph of continuations is a chain, the innermost method first; equal chains are kept
 * once with their number. A chain without an async method is none.
 */
#ifndef CLRPERF_CLR_ASYNC_CHAINS_H
#define CLRPERF_CLR_ASYNC_CHAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "clr/async_graph.h"

enum {
    ASYNC_CHAIN_FRAMES_MAX = 4096,
    ASYNC_FRAMES_MAX = 16 << 20, /* of all chains that differ */
    ASYNC_CHAINS_MAX = 1 << 18,  /* that are followed; equal ones count, too */
};

/* What the innermost frame waits for. */
enum async_wait {
    ASYNC_WAIT_UNKNOWN,
    ASYNC_WAIT_OBJECT,  /* an object of async_chain.waits_type */
    ASYNC_WAIT_RUNNING, /* it runs, or is about to */
    ASYNC_WAIT_READY,   /* what it waited for has ended; no thread has taken it up yet */
    ASYNC_WAIT_CIRCLE,  /* itself: the outermost frame is awaited by the innermost */
};

struct async_frame {
    uint32_t type; /* row of the graph's types */
    int32_t state; /* as async_node.state */
};

struct async_chain {
    size_t first_frame;
    uint32_t frame_count;
    uint32_t waits_type; /* row of the graph's types, or ASYNC_NOTHING */
    uint8_t wait;        /* enum async_wait */
    bool truncated;      /* there are more frames */
    uint64_t count;
};

struct async_chains {
    struct async_chain *chains; /* the most frequent first */
    size_t count, capacity;
    struct async_frame *frames;
    size_t frame_count, frame_capacity;
    struct id_map ids; /* of chains, id - 1, by what is in them */
    uint64_t followed; /* sum of their counts */
    bool cut;          /* there are more than we are willing to follow */
};

/* Undo with async_chains_done(). */
void async_chains_find(const struct async_graph *graph, struct async_chains *out);
void async_chains_done(struct async_chains *chains);

#endif
