#include "render/flame_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"

/* The kept nodes in the profile's order, callers first, with places instead of node numbers. */
struct kept {
    uint32_t *node;   /* by place */
    uint32_t *parent; /* place, by place */
    uint32_t count;
};

static void kept_init(struct kept *k, const struct profile *p, uint64_t min_weight)
{
    uint32_t count = 1;
    for (uint32_t n = 1; n < p->node_count; n++)
        count += p->total[n] >= min_weight;
    k->node = mem_alloc(count, sizeof *k->node);
    k->parent = mem_alloc(count, sizeof *k->parent);
    AUTO_FREE uint32_t *place = mem_alloc(p->node_count, sizeof *place);
    k->count = 1;
    for (uint32_t n = 1; n < p->node_count; n++) {
        if (p->total[n] < min_weight)
            continue;
        place[n] = k->count;
        k->node[k->count] = n;
        k->parent[k->count] = place[p->nodes[n].parent];
        k->count++;
    }
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

/* Lists the frames of the kept nodes by name; the answer, the rank by frame, is the caller's to free. */
static uint32_t *rank_frames(struct flame_layout *layout, const struct profile *p, const struct kept *k)
{
    uint32_t *rank = mem_alloc(p->frame_count + (size_t)1, sizeof *rank);
    layout->frames = mem_alloc(p->frame_count + (size_t)1, sizeof *layout->frames);
    for (uint32_t i = 1; i < k->count; i++) {
        uint32_t frame = p->nodes[k->node[i]].frame;
        if (!rank[frame]) {
            rank[frame] = 1;
            layout->frames[layout->frame_count++] = frame;
        }
    }
    qsort_r(layout->frames, layout->frame_count, sizeof *layout->frames, frame_compare, p->frames);
    for (uint32_t i = 0; i < layout->frame_count; i++)
        rank[layout->frames[i]] = i;
    return rank;
}

/*
 * Lists each node's callees by rank: the places are sorted by rank (a counting sort), then put in
 * front of their callers' lists from the last to the first.
 */
static void link_callees(const struct kept *k, const uint32_t *rank_of_place, uint32_t ranks, uint32_t *first,
                         uint32_t *next)
{
    AUTO_FREE uint32_t *by_rank = mem_alloc(k->count, sizeof *by_rank);
    AUTO_FREE uint32_t *end = mem_alloc(ranks + (size_t)1, sizeof *end);
    for (uint32_t i = 1; i < k->count; i++)
        end[rank_of_place[i] + 1]++;
    for (uint32_t r = 0; r < ranks; r++)
        end[r + 1] += end[r];
    for (uint32_t i = 1; i < k->count; i++)
        by_rank[end[rank_of_place[i]]++] = i;
    for (uint32_t i = k->count - 1; i-- > 0;) {
        uint32_t place = by_rank[i];
        next[place] = first[k->parent[place]];
        first[k->parent[place]] = place;
    }
}

static void place_boxes(struct flame_layout *layout, const struct profile *p, const struct kept *k,
                        const uint32_t *rank_of_place, const uint32_t *first, const uint32_t *next)
{
    AUTO_FREE uint32_t *box_of = mem_alloc(k->count, sizeof *box_of);
    uint32_t place = 0, depth = 0;
    uint64_t start = 0;
    for (;;) {
        uint32_t node = k->node[place];
        box_of[place] = layout->count;
        layout->boxes[layout->count++] =
            (struct flame_box){ start, p->total[node], node, rank_of_place[place], depth };
        if (depth > layout->depth)
            layout->depth = depth;
        if (first[place]) {
            place = first[place];
            depth++;
            continue;
        }
        while (place && !next[place]) {
            place = k->parent[place];
            depth--;
        }
        if (!place)
            return;
        start = layout->boxes[box_of[place]].start + layout->boxes[box_of[place]].weight;
        place = next[place];
    }
}

void flame_layout_init(struct flame_layout *layout, const struct profile *p, uint64_t min_weight)
{
    *layout = (struct flame_layout){ 0 };
    struct kept k;
    kept_init(&k, p, min_weight);
    AUTO_FREE uint32_t *rank = rank_frames(layout, p, &k);
    AUTO_FREE uint32_t *rank_of_place = mem_alloc(k.count, sizeof *rank_of_place);
    for (uint32_t i = 1; i < k.count; i++)
        rank_of_place[i] = rank[p->nodes[k.node[i]].frame];
    AUTO_FREE uint32_t *first = mem_alloc(k.count, sizeof *first);
    AUTO_FREE uint32_t *next = mem_alloc(k.count, sizeof *next);
    link_callees(&k, rank_of_place, layout->frame_count, first, next);
    layout->boxes = mem_alloc(k.count, sizeof *layout->boxes);
    place_boxes(layout, p, &k, rank_of_place, first, next);
    free(k.node);
    free(k.parent);
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
