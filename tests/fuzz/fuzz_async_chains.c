/* Graphs of continuations of any shape: bounded work, and chains that hold together. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "clr/async_chains.h"

enum { TYPES = 4, NODES_MAX = 64, EDGES_A_NODE = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A byte for the node, then where its edges lead. */
static void build(struct async_graph *graph, const uint8_t *data, size_t size)
{
    graph->node_count = size / (1 + EDGES_A_NODE);
    if (graph->node_count > NODES_MAX)
        graph->node_count = NODES_MAX;
    for (size_t i = 0; i < graph->node_count; i++) {
        const uint8_t *at = data + i * (1 + EDGES_A_NODE);
        struct async_node *node = &graph->nodes[i];
        *node = (struct async_node){ .type = at[0] % TYPES,
                                     .state = (at[0] >> 2) % 8 - 3,
                                     .ready = at[0] & 0x20,
                                     .done = (at[0] & 0xc0) == 0xc0,
                                     .awaited_type = ASYNC_NOTHING,
                                     .first_edge = (uint32_t)graph->edge_count };
        for (size_t k = 1; k <= EDGES_A_NODE; k++) {
            uint32_t to = at[k];
            if (to >= graph->node_count)
                continue;
            graph->edges[graph->edge_count++] = (struct async_edge){ (uint32_t)i, to };
            node->edge_count++;
        }
    }
    for (size_t i = 0; i < graph->edge_count; i++)
        graph->nodes[graph->edges[i].to].awaited = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct async_type types[TYPES] = {
        { .kind = ASYNC_METHOD }, { .kind = ASYNC_TASK }, { .kind = ASYNC_METHOD }, { .kind = ASYNC_RUN }
    };
    struct async_node nodes[NODES_MAX];
    struct async_edge edges[NODES_MAX * EDGES_A_NODE];
    struct async_graph graph = { .types = types, .type_count = TYPES, .nodes = nodes, .edges = edges };
    struct async_chains chains;
    uint64_t followed = 0;
    build(&graph, data, size < 48 ? size : 48); /* of more nodes there are too many ways */
    async_chains_find(&graph, &chains);
    for (size_t i = 0; i < chains.count; i++) {
        const struct async_chain *chain = &chains.chains[i];
        followed += chain->count;
        if (chain->frame_count == 0 || chain->first_frame + chain->frame_count > chains.frame_count)
            abort();
    }
    if (followed != chains.followed)
        abort();
    async_chains_done(&chains);
    return 0;
}
