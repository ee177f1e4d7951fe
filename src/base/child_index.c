#include "base/child_index.h"

void child_index_done(struct child_index *x)
{
    id_map_done(&x->others);
}

static bool child_same(const void *table, uint32_t id, const void *key)
{
    const uint32_t *row = (const uint32_t *)table + 2 * (size_t)id, *wanted = key;
    return row[0] == wanted[0] && row[1] == wanted[1];
}

uint32_t child_index_find_other(const struct child_index *x, const uint32_t *rows, uint32_t parent,
                                uint32_t label)
{
    uint32_t wanted[2] = { parent, label };
    return id_map_find(&x->others, hash_pair(parent, label), child_same, rows, wanted);
}

void child_index_add(struct child_index *x, uint32_t parent, uint32_t label, uint32_t id)
{
    if (id != parent + 1)
        id_map_add(&x->others, hash_pair(parent, label), id);
}
