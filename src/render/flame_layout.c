#include "render/flame_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

/* A node that is kept, in the profile's order: callers first. What placing touches lies together. */
struct kept {
    uint64_t total, start;
    uint32_t node, rank;
    uint32_t parent; /* place */
    uint32_t size;   /* nodes of the subtree, its own among them */
    uint32_t box, depth;
};

struct kept_nodes {
    struct kept *at;
    uint32_t count;
};

static struct kept_nodes keep_nodes(const struct profile *p, uint64_t min_weight)
{
    uint32_t count = 1;
    for (uint32_t n = 1; n < p->node_count; n++)
        count += p->total[n] >= min_weight;
    struct kept_nodes k = { mem_alloc(count, sizeof *k.at), 1 };
    AUTO_FREE uint32_t *place = mem_alloc(p->node_count, sizeof *place);
    k.at[0] = (struct kept){ .total = p->total[0], .size = 1 };
    for (uint32_t n = 1; n < p->node_count; n++) {
        if (p->total[n] < min_weight)
            continue;
        place[n] = k.count;
        k.at[k.count++] =
            (struct kept){ .total = p->total[n], .node = n, .parent = place[p->nodes[n].parent], .size = 1 };
    }
    return k;
}

static int frame_compare(const void *a, const void *b, void *user)
{
    const struct profile_frame *frames = user;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    int by_name = strcmp(frames[left].name, frames[right].name);
    if (by_name == 0)
        by_name = strcmp(frames[left].module, frames[right].module);
    return by_name ? by_name : left < right ? -1 : left > right;
}

/* Lists the frames of the kept nodes by name, and gives each node its frame's rank. */
static void rank_frames(struct flame_layout *layout, const struct profile *p, const struct kept_nodes *k)
{
    AUTO_FREE uint32_t *rank = mem_alloc(p->frame_count + (size_t)1, sizeof *rank);
    layout->frames = mem_alloc(p->frame_count + (size_t)1, sizeof *layout->frames);
    for (uint32_t i = 1; i < k->count; i++) {
        uint32_t frame = p->nodes[k->at[i].node].frame;
        if (!rank[frame]) {
            rank[frame] = 1;
            layout->frames[layout->frame_count++] = frame;
        }
    }
    qsort_r(layout->frames, layout->frame_count, sizeof *layout->frames, frame_compare, p->frames);
    for (uint32_t i = 0; i < layout->frame_count; i++)
        rank[layout->frames[i]] = i;
    for (uint32_t i = 1; i < k->count; i++)
        k->at[i].rank = rank[p->nodes[k->at[i].node].frame];
}

/*
 * Callees by caller: those of place i are keys[first[i]] up to keys[first[i + 1]], by rank. A key is
 * the rank above the place.
 */
struct callees {
    uint32_t *first;
    uint64_t *keys;
};

static int key_compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void sort_keys(uint64_t *keys, size_t count)
{
    enum { FEW = 12 };
    if (count > FEW) {
        qsort(keys, count, sizeof *keys, key_compare);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static struct callees list_callees(const struct kept_nodes *k)
{
    struct callees c = { mem_alloc((size_t)k->count + 2, sizeof *c.first),
                         mem_alloc(k->count, sizeof *c.keys) };
    uint32_t *end = c.first + 1; /* becomes `first` of the next place as it is filled */
    for (uint32_t i = 1; i < k->count; i++)
        end[k->at[i].parent + 1]++;
    for (uint32_t i = 0; i < k->count; i++)
        end[i + 1] += end[i];
    for (uint32_t i = 1; i < k->count; i++)
        c.keys[end[k->at[i].parent]++] = (uint64_t)k->at[i].rank << 32 | i;
    for (uint32_t i = 0; i < k->count; i++)
        sort_keys(c.keys + c.first[i], c.first[i + 1] - c.first[i]);
    return c;
}

/*
 * Knowing the sizes of subtrees, each node's callees are placed without walking the tree: the walk
 * waits for one node after the other, this for many at once.
 */
static void place_boxes(struct flame_layout *layout, const struct kept_nodes *k, const struct callees *c)
{
    for (uint32_t i = k->count; i-- > 1;)
        k->at[k->at[i].parent].size += k->at[i].size;
    layout->count = k->count;
    layout->boxes[0] = (struct flame_box){ .weight = k->at[0].total };
    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t box = k->at[i].box + 1, depth = k->at[i].depth + 1;
        uint64_t start = k->at[i].start;
        if (c->first[i] < c->first[i + 1] && depth > layout->depth)
            layout->depth = depth;
        for (uint32_t at = c->first[i]; at < c->first[i + 1]; at++) {
            struct kept *callee = &k->at[(uint32_t)c->keys[at]];
            layout->boxes[box] = (struct flame_box){ start, callee->total, callee->node,
                                                     (uint32_t)(c->keys[at] >> 32), depth };
            callee->box = box;
            callee->start = start;
            callee->depth = depth;
            box += callee->size;
            start += callee->total;
        }
    }
}

void flame_layout_init(struct flame_layout *layout, const struct profile *p, uint64_t min_weight)
{
    *layout = (struct flame_layout){ 0 };
    struct kept_nodes k = keep_nodes(p, min_weight);
    rank_frames(layout, p, &k);
    struct callees callees = list_callees(&k);
    layout->boxes = mem_alloc(k.count, sizeof *layout->boxes);
    place_boxes(layout, &k, &callees);
    free(callees.first);
    free(callees.keys);
    free(k.at);
}

void flame_layout_index_nodes(struct flame_layout *layout)
{
    layout->of_node = mem_alloc(layout->count, sizeof *layout->of_node);
    for (uint32_t i = 0; i < layout->count; i++)
        layout->of_node[layout->boxes[i].node] = i;
}

void flame_layout_done(struct flame_layout *layout)
{
    free(layout->boxes);
    free(layout->frames);
    free(layout->of_node);
    *layout = (struct flame_layout){ 0 };
}
