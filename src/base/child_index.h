/*
 * child_index: finds the child with a label under a parent, in a tree whose rows the caller keeps.
 *
 * Most nodes of a tree of call stacks have one callee, or one that is taken nearly always: the first
 * child is found by its parent's id, without a look at the hash table that holds the others. As a
 * path's nodes are added one after the other, so do their rows lie.
 *
 * `rows` is the caller's table as pairs of words: row `id` has its parent at [2 * id] and its label
 * behind it.
 */
#ifndef CLRPERF_BASE_CHILD_INDEX_H
#define CLRPERF_BASE_CHILD_INDEX_H

#include "base/id_map.h"

struct child_index {
    uint32_t *first; /* by parent: the child that came first, 0 when it has none */
    size_t capacity;
    struct id_map others; /* children that are not their parent's first */
};

void child_index_done(struct child_index *x);
uint32_t child_index_find_other(const struct child_index *x, const uint32_t *rows, uint32_t parent,
                                uint32_t label);
/* The child of `parent` with this label, or 0: no child has id 0. */
static inline uint32_t child_index_find(const struct child_index *x, const uint32_t *rows, uint32_t parent,
                                        uint32_t label)
{
    if (parent >= x->capacity)
        return 0;
    uint32_t first = x->first[parent];
    if (!first || rows[2 * (size_t)first + 1] == label)
        return first;
    return child_index_find_other(x, rows, parent, label);
}
/* Adds a child that child_index_find() did not find; its row may come later. */
void child_index_add(struct child_index *x, uint32_t parent, uint32_t label, uint32_t id);

#endif
