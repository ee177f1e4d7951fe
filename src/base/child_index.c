#include "base/child_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { LISTED_MAX = 8 };

void child_index_done(struct child_index *x)
{
    free(x->entries);
    id_map_done(&x->overflow);
    *x = (struct child_index){ 0 };
}

static bool child_same(const void *table, uint32_t id, const void *key)
{
    const struct child_entry *a = &((const struct child_index *)table)->entries[id], *b = key;
    return a->parent == b->parent && a->label == b->label;
}

static uint32_t child_find_overflow(const struct child_index *x, uint32_t parent, uint32_t label)
{
    struct child_entry wanted = { .parent = parent, .label = label };
    return id_map_find(&x->overflow, hash_pair(parent, label), child_same, x, &wanted);
}

uint32_t child_index_find(const struct child_index *x, uint32_t parent, uint32_t label)
{
    if (parent >= x->capacity)
        return 0;
    uint32_t id = x->entries[parent].first;
    for (unsigned listed = 0; id; id = x->entries[id].next, listed++) {
        if (x->entries[id].label == label)
            return id;
        if (listed == LISTED_MAX - 1)
            return child_find_overflow(x, parent, label);
    }
    return 0;
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
    unsigned listed = 0;
    for (uint32_t sibling = x->entries[parent].first; sibling && listed < LISTED_MAX; listed++)
        sibling = x->entries[sibling].next;
    if (listed == LISTED_MAX) {
        id_map_add(&x->overflow, hash_pair(parent, label), id);
    } else if (listed == 0) {
        x->entries[parent].first = id;
    } else {
        /* behind the first, which is as a rule the one most often taken */
        struct child_entry *first = &x->entries[x->entries[parent].first];
        x->entries[id].next = first->next;
        first->next = id;
    }
}
