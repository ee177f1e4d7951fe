#include "base/child_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void child_index_done(struct child_index *x)
{
    free(x->first);
    id_map_done(&x->others);
    *x = (struct child_index){ 0 };
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
    size_t known = x->capacity;
    x->first = mem_grow(x->first, &x->capacity, (size_t)parent + 1, sizeof *x->first);
    if (x->capacity > known)
        memset(x->first + known, 0, (x->capacity - known) * sizeof *x->first);
    if (x->first[parent])
        id_map_add(&x->others, hash_pair(parent, label), id);
    else
        x->first[parent] = id;
}
