#include "trace/stack_table.h"

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
    return stack_table_path(s, t, parent, &location, 1);
}

/* Adds a path whose first location `parent` has no stack of yet: there is nothing to be looked for. */
static uint32_t add_path(struct stack_table *s, struct trace *t, uint32_t parent, const uint32_t *locations,
                         size_t count)
{
    size_t first = t->stacks.count;
    t->stacks.rows = mem_grow(t->stacks.rows, &t->stacks.capacity, first + count, sizeof *t->stacks.rows);
    s->ends = mem_grow(s->ends, &s->ends_capacity, first + count, sizeof *s->ends);
    memset(s->ends + first, s->ends[parent], count);
    child_index_add(&s->stacks, parent, locations[0], (uint32_t)first);
    for (size_t i = 0; i < count; i++) {
        t->stacks.rows[first + i] = (struct trace_stack){ parent, locations[i] };
        parent = (uint32_t)(first + i);
    }
    t->stacks.count = first + count;
    return parent;
}

uint32_t stack_table_path(struct stack_table *s, struct trace *t, uint32_t parent, const uint32_t *locations,
                          size_t count)
{
    const uint32_t *rows = &t->stacks.rows->parent;
    for (size_t i = 0; i < count; i++) {
        uint32_t child = child_index_find(&s->stacks, rows, t->stacks.count, parent, locations[i]);
        if (!child)
            return add_path(s, t, parent, locations + i, count - i);
        parent = child;
    }
    return parent;
}
