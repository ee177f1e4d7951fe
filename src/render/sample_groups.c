#include "render/sample_groups.h"

#include <stdlib.h>

#include "base/id_map.h"
#include "base/mem.h"

static bool group_is(const void *table, uint32_t id, const void *key)
{
    const struct sample_group *have = (const struct sample_group *)table + (id - 1), *want = key;
    return have->owner == want->owner && have->node == want->node;
}

static int group_order(const void *left, const void *right)
{
    const struct sample_group *a = left, *b = right;
    if (a->owner != b->owner)
        return a->owner < b->owner ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

void sample_groups_init(struct sample_groups *groups, const struct profile *p, const uint32_t *owner_of)
{
    struct id_map ids = { 0 };
    size_t capacity = 0;
    *groups = (struct sample_groups){ 0 };
    for (size_t i = 0; i < p->sample_count; i++) {
        struct sample_group wanted = { .owner = owner_of[p->sample_thread[i]], .node = p->sample_node[i] };
        uint64_t hash = hash_pair(wanted.owner, wanted.node);
        uint32_t id = id_map_find(&ids, hash, group_is, groups->rows, &wanted);
        if (id == 0) {
            groups->rows = mem_grow(groups->rows, &capacity, groups->count + 1, sizeof *groups->rows);
            groups->rows[groups->count++] = wanted;
            id = (uint32_t)groups->count;
            id_map_add(&ids, hash, id);
        }
        groups->rows[id - 1].samples += profile_samples_at(p, i);
        groups->rows[id - 1].weight += p->sample_weight[i];
    }
    id_map_done(&ids);
    if (groups->count > 1)
        qsort(groups->rows, groups->count, sizeof *groups->rows, group_order);
}

void sample_groups_done(struct sample_groups *groups)
{
    free(groups->rows);
    *groups = (struct sample_groups){ 0 };
}

void thread_samples_init(struct thread_samples *by_thread, const struct profile *p)
{
    by_thread->sample = mem_alloc(p->sample_count, sizeof *by_thread->sample);
    by_thread->start = mem_alloc((size_t)p->thread_count + 2, sizeof *by_thread->start);
    /* counted two places on and filled through one place on, the starts end up in their own place */
    for (size_t i = 0; i < p->sample_count; i++)
        by_thread->start[(size_t)p->sample_thread[i] + 2]++;
    for (size_t thread = 2; thread < (size_t)p->thread_count + 2; thread++)
        by_thread->start[thread] += by_thread->start[thread - 1];
    for (size_t i = 0; i < p->sample_count; i++)
        by_thread->sample[by_thread->start[(size_t)p->sample_thread[i] + 1]++] = (uint32_t)i;
}

void thread_samples_done(struct thread_samples *by_thread)
{
    free(by_thread->sample);
    free(by_thread->start);
}
