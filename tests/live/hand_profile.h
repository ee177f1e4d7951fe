/*
 * hand_profile: profiles built by hand, sample by sample, for the tests of render/.
 */
#ifndef CLRPERF_TESTS_HAND_PROFILE_H
#define CLRPERF_TESTS_HAND_PROFILE_H

#include <stdlib.h>
#include <string.h>

#include "analyse/profile.h"
#include "base/id_map.h"
#include "base/mem.h"

struct hand_profile {
    struct profile p;
    struct id_map node_ids;
    size_t frames, nodes, threads, self_capacity;
    size_t times, weights, sample_nodes, sample_threads;
};

static inline void hand_profile_init(struct hand_profile *f)
{
    *f = (struct hand_profile){ 0 };
    struct profile *p = &f->p;
    p->frames = mem_grow(NULL, &f->frames, 1, sizeof *p->frames);
    p->frames[0] = (struct profile_frame){ .name = "", .module = "" };
    p->frame_count = 1;
    p->nodes = mem_grow(NULL, &f->nodes, 1, sizeof *p->nodes);
    p->nodes[0] = (struct profile_node){ 0 };
    p->self = mem_grow(NULL, &f->self_capacity, 1, sizeof *p->self);
    p->self[0] = 0;
    p->node_count = 1;
    p->threads = mem_grow(NULL, &f->threads, 1, sizeof *p->threads);
    p->threads[0] = (struct profile_thread){ .name = "", .process_name = "" };
    p->thread_count = 1;
    p->weight_unit = "ns";
    p->title = "fixture (pid 1)";
    p->event = "cpu-clock";
}

/* The text is borrowed. */
static inline uint32_t hand_profile_frame(struct hand_profile *f, const char *name, const char *module,
                                          enum code_kind kind, enum code_tier tier)
{
    struct profile *p = &f->p;
    p->frames = mem_grow(p->frames, &f->frames, p->frame_count + 1, sizeof *p->frames);
    p->frames[p->frame_count] = (struct profile_frame){
        .name = name, .module = module, .kind = (uint8_t)kind, .tier = (uint8_t)tier
    };
    return p->frame_count++;
}

static inline uint32_t hand_profile_thread(struct hand_profile *f, uint32_t pid, uint32_t tid,
                                           const char *name, const char *process_name)
{
    struct profile *p = &f->p;
    p->threads = mem_grow(p->threads, &f->threads, p->thread_count + 1, sizeof *p->threads);
    p->threads[p->thread_count] =
        (struct profile_thread){ .pid = pid, .tid = tid, .name = name, .process_name = process_name };
    return p->thread_count++;
}

static inline bool hand_profile_same(const void *table, uint32_t id, const void *key)
{
    const struct profile_node *a = &((const struct profile_node *)table)[id], *b = key;
    return a->parent == b->parent && a->frame == b->frame;
}

static inline uint32_t hand_profile_node(struct hand_profile *f, uint32_t parent, uint32_t frame)
{
    struct profile *p = &f->p;
    struct profile_node key = { parent, frame };
    uint64_t hash = hash_pair(parent, frame);
    uint32_t id = id_map_find(&f->node_ids, hash, hand_profile_same, p->nodes, &key);
    if (id)
        return id;
    p->nodes = mem_grow(p->nodes, &f->nodes, p->node_count + 1, sizeof *p->nodes);
    p->self = mem_grow(p->self, &f->self_capacity, p->node_count + 1, sizeof *p->self);
    p->nodes[p->node_count] = key;
    p->self[p->node_count] = 0;
    id_map_add(&f->node_ids, hash, p->node_count);
    return p->node_count++;
}

/* One sample whose stack is `frames`, the root's callee first. Times must not go back. */
static inline void hand_profile_sample(struct hand_profile *f, uint64_t time_ns, uint32_t thread,
                                       const uint32_t *frames, size_t depth, uint64_t weight)
{
    struct profile *p = &f->p;
    uint32_t node = 0;
    for (size_t i = 0; i < depth; i++)
        node = hand_profile_node(f, node, frames[i]);
    size_t i = p->sample_count++;
    p->sample_time_ns = mem_grow(p->sample_time_ns, &f->times, i + 1, sizeof *p->sample_time_ns);
    p->sample_weight = mem_grow(p->sample_weight, &f->weights, i + 1, sizeof *p->sample_weight);
    p->sample_node = mem_grow(p->sample_node, &f->sample_nodes, i + 1, sizeof *p->sample_node);
    p->sample_thread = mem_grow(p->sample_thread, &f->sample_threads, i + 1, sizeof *p->sample_thread);
    p->sample_time_ns[i] = time_ns;
    p->sample_weight[i] = weight;
    p->sample_node[i] = node;
    p->sample_thread[i] = thread;
    p->self[node] += weight;
    p->threads[thread].samples++;
    p->threads[thread].weight += weight;
    p->counts.samples++;
    p->counts.weight += weight;
    p->counts.whole++;
    p->counts.user_frames += depth;
    p->counts.named += depth;
}

static inline void hand_profile_finish(struct hand_profile *f)
{
    struct profile *p = &f->p;
    p->total = mem_alloc(p->node_count, sizeof *p->total);
    memcpy(p->total, p->self, p->node_count * sizeof *p->total);
    for (uint32_t n = p->node_count; n-- > 1;)
        p->total[p->nodes[n].parent] += p->total[n];
    if (p->sample_count && !p->duration_ns)
        p->duration_ns = p->sample_time_ns[p->sample_count - 1] + 1;
}

static inline void hand_profile_done(struct hand_profile *f)
{
    struct profile *p = &f->p;
    free(p->frames);
    free(p->nodes);
    free(p->self);
    free(p->total);
    free(p->threads);
    free(p->sample_time_ns);
    free(p->sample_weight);
    free(p->sample_node);
    free(p->sample_thread);
    id_map_done(&f->node_ids);
}

#endif
