#include "base/child_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void child_index_done(struct child_index *x)
{
    free(x->entries);
    id_map_done(&x->others);
    *x = (struct child_index){ 0 };
}

static bool child_same(const void *table, uint32_t id, const void *key)
{
    const struct child_entry *a = &((const struct child_index *)table)->entries[id], *b = key;
    return a->parent == b->parent && a->label == b->label;
}

uint32_t child_index_find_other(const struct child_index *x, uint32_t parent, uint32_t label)
{
    struct child_entry wanted = { .parent = parent, .label = label };
    return id_map_find(&x->others, hash_pair(parent, label), child_same, x, &wanted);
}

void child_index_add(struct child_index *x, uint32_t parent, uint32_t label, uint32_t id)
{
    size_t known = x->capacity;
    uint32_t last = id > parent ? id : parent;
    x->entries = mem_grow(x->entries, &x->capacity, (size_t)last + 1, sizeof *x->entries);
    if (x->capacity > known)
        memset(x->entries + known, 0, (x->capacity - known) * sizeof *x->entries);
    x->entries[id].parent = parent;
    x->entries[id].label = label;
    struct child_entry *above = &x->entries[parent];
    if (above->first) {
        id_map_add(&x->others, hash_pair(parent, label), id);
    } else {
        above->first = id;
        above->first_label = label;
    }
}
