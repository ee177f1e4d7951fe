/*
 * flame_layout: a profile's call tree as boxes in drawing order.
 *
 * Boxes stand depth first, callers before callees, siblings by name (then module, then frame), so
 * that a subtree is a run of boxes and two captures of one program look alike. Box 0 is the root. A
 * box spans [start, start + weight) in units of the profile's weight; what siblings leave free at the
 * right end of their caller is its self weight.
 */
#ifndef CLRPERF_RENDER_FLAME_LAYOUT_H
#define CLRPERF_RENDER_FLAME_LAYOUT_H

#include <stdint.h>

#include "analyse/profile.h"

struct flame_box {
    uint64_t start, weight;
    uint32_t node;  /* of the profile */
    uint32_t rank;  /* of its frame among the names: see flame_layout.frames */
    uint32_t depth; /* 0 for the root */
};

struct flame_layout {
    struct flame_box *boxes; /* owned */
    uint32_t count;
    uint32_t depth;   /* of the deepest box */
    uint32_t *frames; /* owned: the profile's frames that have a box, by rank, ordered by name */
    uint32_t frame_count;
    uint32_t *of_node; /* owned, when asked for: box by node of the profile */
};

/*
 * Keeps the nodes whose total is at least `min_weight`; with 0, all of them. A node's total is never
 * above its caller's, so what is left out is never descended into. The root is always kept.
 * The caller ends it with flame_layout_done().
 */
void flame_layout_init(struct flame_layout *layout, const struct profile *profile, uint64_t min_weight);
/* Fills of_node; every node must be kept. */
void flame_layout_index_nodes(struct flame_layout *layout);
void flame_layout_done(struct flame_layout *layout);

#endif
