/*
 * async_graph: what goes on when what ends: the tasks and waiting async methods of a program, from its heap.
 *
 * Two records lead from one to the other: a Task names what continues it, and a state machine keeps what it
 * awaits. Both are read, since what is awaited need not be a Task, and what continues a Task need not be a
 * method.
 */
#ifndef CLRPERF_CLR_ASYNC_GRAPH_H
#define CLRPERF_CLR_ASYNC_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clr/async_type.h"
#include "clr/heap_walk.h"

enum {
    ASYNC_NODES_MAX = 4 << 20,
    ASYNC_EDGES_MAX = 8 << 20,
    ASYNC_STATE_RUNNING = -1,
    ASYNC_STATE_DONE = -2,
    ASYNC_STATE_UNKNOWN = INT32_MIN,
};
#define ASYNC_NOTHING UINT32_MAX /* no node, no type */

struct async_node {
    uint64_t addr;
    uint64_t continuation; /* object that goes on when this ends, or 0 */
    uint64_t first;        /* of an ASYNC_RUN: the innermost await, or 0 */
    uint64_t machine;      /* of a method whose state machine is an object of its own: that; else 0 */
    uint64_t awaits;       /* of a method: object that it waits for, or 0 */
    uint32_t type;         /* row of types */
    int32_t state;         /* of a method: the number of its await, or ASYNC_STATE_... */
    uint32_t awaited_type; /* row of types: of what it awaits, when that is no live node */
    uint32_t last;         /* node that ends with it: of an ASYNC_RUN its outermost await, else itself */
    uint32_t first_edge, edge_count;
    bool done;    /* it has ended; an await that no Task leads to never began, or goes on just now */
    bool ready;   /* what it awaits has ended: its turn has not come yet */
    bool awaited; /* an edge leads to it */
};

/* When `from` ends, `to` goes on. Rows of nodes. */
struct async_edge {
    uint32_t from, to;
};

struct async_graph {
    struct async_type *types;
    size_t type_count, type_capacity;
    struct async_node *nodes; /* by address */
    size_t node_count, node_capacity;
    struct async_edge *edges; /* by `from` */
    size_t edge_count, edge_capacity;
    struct heap_walk_result walk;
    bool cut; /* there is more than we are willing to hold */
};

/* Walks the heap and reads the graph, while the process stands still. Undo with async_graph_done(). */
void async_graph_read(struct loaded_types *types, const struct heap_map *map, uint64_t deadline_ns,
                      struct async_graph *out);
void async_graph_done(struct async_graph *graph);
/* It waits, runs or is about to: a method that has begun and not ended, or a Task that has not. */
bool async_node_is_live(const struct async_graph *graph, const struct async_node *node);

#endif
