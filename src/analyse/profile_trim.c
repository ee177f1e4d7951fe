#include "analyse/profile_trim.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/own.h"

/* Which nodes have a sample, or a callee that has one. A sample can weigh nothing. The caller frees. */
static bool *nodes_used(const struct profile *p)
{
    bool *used = mem_alloc(p->node_count, sizeof *used);
    for (size_t i = 0; p->sample_node && i < p->sample_count; i++)
        used[p->sample_node[i]] = true;
    for (uint32_t node = p->node_count; node-- > 1;) {
        used[node] = used[node] || p->self[node];
        if (used[node])
            used[p->nodes[node].parent] = true;
    }
    used[0] = true;
    return used;
}

/* Numbers from 0 for those of `count` that are used, in `out`; how many they are. */
static uint32_t number(const bool *used, uint32_t count, uint32_t *out)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++)
        if (used[i])
            out[i] = next++;
    return next;
}

/* The nodes' frames get their new numbers; the rows of frames move there. */
static void trim_frames(struct profile *p)
{
    AUTO_FREE bool *used = mem_alloc(p->frame_count, sizeof *used);
    AUTO_FREE uint32_t *number_of = mem_alloc(p->frame_count, sizeof *number_of);
    used[0] = true;
    for (uint32_t node = 1; node < p->node_count; node++)
        used[p->nodes[node].frame] = true;
    uint32_t count = number(used, p->frame_count, number_of);
    for (uint32_t frame = 0; frame < p->frame_count; frame++)
        if (used[frame])
            p->frames[number_of[frame]] = p->frames[frame];
    for (uint32_t node = 1; node < p->node_count; node++)
        p->nodes[node].frame = number_of[p->nodes[node].frame];
    p->frame_count = count;
}

void profile_trim(struct profile *p)
{
    AUTO_FREE bool *used = nodes_used(p);
    AUTO_FREE uint32_t *number_of = mem_alloc(p->node_count, sizeof *number_of);
    uint32_t count = number(used, p->node_count, number_of);
    for (uint32_t node = 1; node < p->node_count; node++) {
        if (!used[node])
            continue;
        uint32_t at = number_of[node];
        p->nodes[at] = (struct profile_node){ number_of[p->nodes[node].parent], p->nodes[node].frame };
        p->self[at] = p->self[node];
        p->total[at] = p->total[node];
    }
    for (size_t i = 0; p->sample_node && i < p->sample_count; i++)
        p->sample_node[i] = number_of[p->sample_node[i]];
    p->node_count = count;
    trim_frames(p);
}
