/*
 * child_index: finds the child with a label under a parent, in a tree whose rows the caller keeps.
 *
 * Most nodes of a tree of call stacks have one callee, or one that is taken nearly always: the first
 * child is found in its parent's own entry, without another look at memory. As a path's nodes are
 * added one after the other, so are their entries. Further children are in a hash table.
 */
#ifndef CLRPERF_BASE_CHILD_INDEX_H
#define CLRPERF_BASE_CHILD_INDEX_H

#include "base/id_map.h"

struct child_entry {
    uint32_t parent, label;
    uint32_t first, first_label; /* its own first child, 0 when it has none */
};

struct child_index {
    struct child_entry *entries; /* by id */
    size_t capacity;
    struct id_map others; /* children that are not their parent's first */
};

void child_index_done(struct child_index *x);
uint32_t child_index_find_other(const struct child_index *x, uint32_t parent, uint32_t label);
/* The child of `parent` with this label, or 0: no child has id 0. */
static inline uint32_t child_index_find(const struct child_index *x, uint32_t parent, uint32_t label)
{
    if (parent >= x->capacity)
        return 0;
    const struct child_entry *above = &x->entries[parent];
    if (!above->first || above->first_label == label)
        return above->first;
    return child_index_find_other(x, parent, label);
}
/* Adds a child that child_index_find() did not find, under an id that was not added before. */
void child_index_add(struct child_index *x, uint32_t parent, uint32_t label, uint32_t id);

#endif
