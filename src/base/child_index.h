/*
 * child_index: finds the child with a label under a parent, in a tree whose rows the caller keeps.
 *
 * A path's nodes are added one after the other, so the child that came first mostly stands right behind its
 * parent: there one looks, and only else into the hash table that holds all others. A path that is known is
 * walked in the order of memory.
 *
 * `rows` is the caller's table as pairs of words: row `id` has its parent at [2 * id] and its label, which is
 * not 0, behind it. A node's id is larger than its parent's.
 */
#ifndef CLRPERF_BASE_CHILD_INDEX_H
#define CLRPERF_BASE_CHILD_INDEX_H

#include "base/id_map.h"

struct child_index {
    struct id_map others; /* children that do not stand behind their parent */
};

void child_index_done(struct child_index *x);
/* The child that stands right behind its parent, if it is the one with this label, or 0. */
static inline uint32_t child_index_find_next(const uint32_t *rows, size_t count, uint32_t parent,
                                             uint32_t label)
{
    size_t next = (size_t)parent + 1;
    return next < count && rows[2 * next] == parent && rows[2 * next + 1] == label ? (uint32_t)next : 0;
}
uint32_t child_index_find_other(const struct child_index *x, const uint32_t *rows, uint32_t parent,
                                uint32_t label);
/* The child of `parent` with this label among the first `count` rows, or 0: no child has id 0. */
static inline uint32_t child_index_find(const struct child_index *x, const uint32_t *rows, size_t count,
                                        uint32_t parent, uint32_t label)
{
    if ((size_t)parent + 1 >= count)
        return 0; /* the newest node */
    uint32_t next = child_index_find_next(rows, count, parent, label);
    return next ? next : child_index_find_other(x, rows, parent, label);
}
/* In two steps, with time in between for memory to come: a child that probably is the one, or 0. */
static inline void child_index_prefetch_other(const struct child_index *x, uint32_t parent, uint32_t label)
{
    id_map_prefetch(&x->others, hash_pair(parent, label));
}
static inline uint32_t child_index_guess_other(const struct child_index *x, uint32_t parent, uint32_t label)
{
    return id_map_guess(&x->others, hash_pair(parent, label));
}
/* Adds a child that child_index_find() did not find; its row may come later. */
void child_index_add(struct child_index *x, uint32_t parent, uint32_t label, uint32_t id);

#endif
