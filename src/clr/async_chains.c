#include "clr/async_chains.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { STEPS_MAX = 64 << 20 };

/* The way from where a chain began to the node at hand. */
struct step {
    uint32_t node;
    uint32_t next; /* edge to go on with */
    bool led_on;   /* somebody awaits it */
};

struct finding {
    const struct async_graph *graph;
    struct async_chains *chains;
    struct step path[ASYNC_CHAIN_FRAMES_MAX];
    size_t depth;
    bool *on_path, *seen; /* by node */
    uint64_t steps;
};

static const struct async_type *type_of(const struct async_graph *graph, const struct async_node *node)
{
    return &graph->types[node->type];
}

/* A Task that is only waited for is no frame: it is what the chain waits for. */
static bool is_leaf_task(const struct async_graph *graph, const struct async_node *node)
{
    return type_of(graph, node)->kind == ASYNC_TASK && !node->awaited;
}

/* The Task of methods that the runtime suspends itself stands before its methods, which are the frames. */
static bool is_frame(const struct async_graph *graph, const struct async_node *node)
{
    return !is_leaf_task(graph, node) && type_of(graph, node)->kind != ASYNC_RUN;
}

static void describe_wait(const struct finding *f, const struct async_node *node, bool circle,
                          struct async_chain *chain)
{
    chain->waits_type = ASYNC_NOTHING;
    if (circle) {
        chain->wait = ASYNC_WAIT_CIRCLE;
    } else if (is_leaf_task(f->graph, node)) {
        chain->wait = ASYNC_WAIT_OBJECT;
        chain->waits_type = node->awaited_type == ASYNC_NOTHING ? node->type : node->awaited_type;
    } else if (node->state == ASYNC_STATE_RUNNING) {
        chain->wait = ASYNC_WAIT_RUNNING;
    } else if (node->ready) {
        chain->wait = ASYNC_WAIT_READY;
    } else if (node->awaited_type != ASYNC_NOTHING) {
        chain->wait = ASYNC_WAIT_OBJECT;
        chain->waits_type = node->awaited_type;
    }
}

struct chain_key {
    const struct async_chains *chains;
    const struct async_chain *chain;
};

static bool is_chain(const void *table, uint32_t id, const void *key)
{
    const struct async_chains *chains = table;
    const struct chain_key *k = key;
    const struct async_chain *a = &chains->chains[id - 1], *b = k->chain;
    return a->frame_count == b->frame_count && a->wait == b->wait && a->waits_type == b->waits_type &&
           a->truncated == b->truncated &&
           memcmp(chains->frames + a->first_frame, chains->frames + b->first_frame,
                  a->frame_count * sizeof *chains->frames) == 0;
}

/* Its frames are the last ones that were added. */
static void keep_chain(struct async_chains *chains, const struct async_chain *chain)
{
    struct chain_key key = { chains, chain };
    uint64_t hash = hash_pair(
        hash_bytes(chains->frames + chain->first_frame, chain->frame_count * sizeof *chains->frames),
        (uint64_t)chain->waits_type << 8 | chain->wait);
    uint32_t id = id_map_find(&chains->ids, hash, is_chain, chains, &key);
    if (id) {
        chains->chains[id - 1].count += chain->count;
        chains->frame_count = chain->first_frame;
        return;
    }
    chains->chains = mem_grow(chains->chains, &chains->capacity, chains->count + 1, sizeof *chains->chains);
    chains->chains[chains->count++] = *chain;
    id_map_add(&chains->ids, hash, (uint32_t)chains->count);
}

/* The path as a chain, unless there is no method on it. */
static void take_path(struct finding *f, bool circle, bool truncated)
{
    struct async_chains *chains = f->chains;
    struct async_chain chain = { .first_frame = chains->frame_count, .truncated = truncated, .count = 1 };
    bool has_method = false;
    describe_wait(f, &f->graph->nodes[f->path[0].node], circle, &chain);
    for (size_t i = 0; i < f->depth; i++) {
        const struct async_node *node = &f->graph->nodes[f->path[i].node];
        if (!is_frame(f->graph, node))
            continue;
        has_method |= type_of(f->graph, node)->kind == ASYNC_METHOD;
        chains->frames = mem_grow(chains->frames, &chains->frame_capacity, chains->frame_count + 1,
                                  sizeof *chains->frames);
        chains->frames[chains->frame_count++] = (struct async_frame){ node->type, node->state };
        chain.frame_count++;
    }
    if (!has_method) {
        chains->frame_count = chain.first_frame;
        return;
    }
    keep_chain(chains, &chain);
    chains->cut |= ++chains->followed >= ASYNC_CHAINS_MAX || chains->frame_count >= ASYNC_FRAMES_MAX;
}

static void enter(struct finding *f, uint32_t node)
{
    f->on_path[node] = f->seen[node] = true;
    f->path[f->depth++] = (struct step){ node, 0, false };
}

static void leave(struct finding *f)
{
    f->on_path[f->path[--f->depth].node] = false;
}

/* All ways from `start` to who is awaited by nobody. */
static void follow(struct finding *f, uint32_t start)
{
    const struct async_graph *graph = f->graph;
    enter(f, start);
    while (f->depth && !f->chains->cut) {
        struct step *top = &f->path[f->depth - 1];
        const struct async_node *node = &graph->nodes[top->node];
        f->chains->cut |= ++f->steps >= STEPS_MAX;
        if (top->next == node->edge_count) {
            if (!top->led_on)
                take_path(f, false, false);
            leave(f);
            continue;
        }
        uint32_t to = graph->edges[node->first_edge + top->next++].to;
        top->led_on = true;
        if (f->on_path[to])
            take_path(f, true, false);
        else if (f->depth == ASYNC_CHAIN_FRAMES_MAX)
            take_path(f, false, true);
        else
            enter(f, to);
    }
    while (f->depth)
        leave(f);
}

static int compare_chains(const void *a, const void *b)
{
    const struct async_chain *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->first_frame > y->first_frame) - (x->first_frame < y->first_frame);
}

static void follow_all(struct finding *f, bool circles)
{
    const struct async_graph *graph = f->graph;
    for (size_t i = 0; i < graph->node_count && !f->chains->cut; i++) {
        const struct async_node *node = &graph->nodes[i];
        if (!async_node_is_live(graph, node) || f->seen[i] || (node->awaited && !circles))
            continue;
        follow(f, (uint32_t)i);
    }
}

void async_chains_find(const struct async_graph *graph, struct async_chains *out)
{
    *out = (struct async_chains){ 0 };
    struct finding *f = mem_alloc(1, sizeof *f);
    f->graph = graph;
    f->chains = out;
    f->on_path = mem_alloc(graph->node_count + 1, sizeof *f->on_path);
    f->seen = mem_alloc(graph->node_count + 1, sizeof *f->seen);
    follow_all(f, false);
    follow_all(f, true); /* what is left is awaited by what it awaits */
    if (out->count)
        qsort(out->chains, out->count, sizeof *out->chains, compare_chains);
    id_map_done(&out->ids);
    free(f->on_path);
    free(f->seen);
    free(f);
}

void async_chains_done(struct async_chains *chains)
{
    free(chains->chains);
    free(chains->frames);
    *chains = (struct async_chains){ 0 };
}
