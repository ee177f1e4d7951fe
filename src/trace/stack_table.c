#include "trace/stack_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void stack_table_init(struct stack_table *s)
{
    *s = (struct stack_table){ 0 };
    s->ends = mem_grow(NULL, &s->ends_capacity, STACK_ROOTS, sizeof *s->ends);
    for (unsigned root = 0; root < STACK_ROOTS; root++)
        s->ends[root] = (uint8_t)root;
}

void stack_table_done(struct stack_table *s)
{
    id_map_done(&s->locations);
    child_index_done(&s->stacks);
    free(s->ends);
}

static bool location_same(const void *table, uint32_t id, const void *key)
{
    const struct trace_location *row = &((const struct trace *)table)->locations.rows[id];
    const struct location_key *wanted = key;
    return row->addr == wanted->addr && row->process == wanted->process && row->mapping == wanted->mapping &&
           row->code == wanted->code && row->is_return == wanted->is_return;
}

uint32_t stack_table_location(struct stack_table *s, struct trace *t, const struct location_key *key,
                              uint64_t time_ns)
{
    uint64_t hash = hash_pair(key->addr * 2 + key->is_return,
                              ((uint64_t)key->process << 32 | key->mapping) ^ (uint64_t)key->code << 20);
    uint32_t id = id_map_find(&s->locations, hash, location_same, t, key);
    if (id)
        return id;
    id = trace_push(&t->locations);
    t->locations.rows[id] = (struct trace_location){
        .process = key->process,
        .mapping = key->mapping,
        .code = key->code,
        .addr = key->addr,
        .first_ns = time_ns,
        .is_return = key->is_return,
    };
    id_map_add(&s->locations, hash, id);
    return id;
}

_Static_assert(sizeof(struct trace_stack) == 8 && offsetof(struct trace_stack, location) == 4,
               "a row of child_index");

uint32_t stack_table_push(struct stack_table *s, struct trace *t, uint32_t parent, uint32_t location)
{
    return stack_table_add(s, t, (struct stack_path){ parent, 1, &location });
}

/* Adds a path whose first location its parent has no stack of yet: there is nothing to be looked for. */
static uint32_t add_new(struct stack_table *s, struct trace *t, struct stack_path path)
{
    size_t first = t->stacks.count, count = first + path.count;
    t->stacks.rows = mem_grow(t->stacks.rows, &t->stacks.capacity, count, sizeof *t->stacks.rows);
    s->ends = mem_grow(s->ends, &s->ends_capacity, count, sizeof *s->ends);
    memset(s->ends + first, s->ends[path.parent], path.count);
    child_index_add(&s->stacks, path.parent, path.locations[0], (uint32_t)first);
    uint32_t parent = path.parent;
    for (uint32_t i = 0; i < path.count; i++) {
        t->stacks.rows[first + i] = (struct trace_stack){ parent, path.locations[i] };
        parent = (uint32_t)first + i;
    }
    t->stacks.count = count;
    return parent;
}

static void path_step(struct stack_path *path, uint32_t child)
{
    path->parent = child;
    path->locations++;
    path->count--;
}

uint32_t stack_table_add(struct stack_table *s, struct trace *t, struct stack_path path)
{
    const uint32_t *rows = &t->stacks.rows->parent;
    while (path.count) {
        uint32_t child = child_index_find(&s->stacks, rows, t->stacks.count, path.parent, path.locations[0]);
        if (!child)
            return add_new(s, t, path);
        path_step(&path, child);
    }
    return path.parent;
}

/* What a path that is followed waits for. */
enum path_wait { WAITS_FOR_NOTHING, WAITS_FOR_PLACE, WAITS_FOR_ROW, WAITS_NO_MORE };

/* Follows a path to where memory has to be waited for, and asks for it. */
static enum path_wait path_follow(const struct stack_table *s, const struct trace *t, struct stack_path *path,
                                  enum path_wait had)
{
    const uint32_t *rows = &t->stacks.rows->parent;
    const struct child_index *index = &s->stacks;
    if (had == WAITS_FOR_PLACE) {
        uint32_t guess = child_index_guess_other(index, path->parent, path->locations[0]);
        __builtin_prefetch(&t->stacks.rows[guess]);
        return guess ? WAITS_FOR_ROW : WAITS_NO_MORE;
    }
    if (had == WAITS_FOR_ROW) {
        uint32_t child = child_index_find_other(index, rows, path->parent, path->locations[0]);
        if (!child)
            return WAITS_NO_MORE;
        path_step(path, child);
    }
    uint32_t next;
    while (path->count &&
           (next = child_index_find_next(rows, t->stacks.count, path->parent, path->locations[0])))
        path_step(path, next);
    if (!path->count || path->parent + (size_t)1 >= t->stacks.count)
        return WAITS_NO_MORE;
    child_index_prefetch_other(index, path->parent, path->locations[0]);
    return WAITS_FOR_PLACE;
}

void stack_table_follow(const struct stack_table *s, const struct trace *t, struct stack_path *paths,
                        size_t count)
{
    enum path_wait waits[STACK_PATHS_MAX] = { WAITS_FOR_NOTHING };
    assert(count <= STACK_PATHS_MAX);
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < count; i++) {
            if (waits[i] == WAITS_NO_MORE)
                continue;
            waits[i] = path_follow(s, t, &paths[i], waits[i]);
            any = true;
        }
    }
}
