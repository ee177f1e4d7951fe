#include "trace/stack_table.h"

#include <stdlib.h>

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
    uint32_t id = child_index_find(&s->stacks, &t->stacks.rows->parent, parent, location);
    if (id)
        return id;
    id = trace_push(&t->stacks);
    t->stacks.rows[id] = (struct trace_stack){ parent, location };
    s->ends = mem_grow(s->ends, &s->ends_capacity, id + 1, sizeof *s->ends);
    s->ends[id] = s->ends[parent];
    child_index_add(&s->stacks, parent, location, id);
    return id;
}
