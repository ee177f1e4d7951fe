#include "trace/function_index.h"

static uint64_t function_hash(const struct trace_function *f)
{
    return hash_pair((uint64_t)f->name << 32 | f->module, (uint64_t)f->type_params << 8 | f->kind);
}

static bool function_same(const void *table, uint32_t id, const void *key)
{
    const struct trace *t = table;
    const struct trace_function *a = &t->functions.rows[id], *b = key;
    return a->name == b->name && a->module == b->module && a->type_params == b->type_params &&
           a->kind == b->kind;
}

void function_index_init(struct function_index *index, const struct trace *t)
{
    *index = (struct function_index){ 0 };
    for (uint32_t id = 1; id < t->functions.count; id++)
        id_map_add(&index->ids, function_hash(&t->functions.rows[id]), id);
}

void function_index_done(struct function_index *index)
{
    id_map_done(&index->ids);
}

uint32_t function_index_add(struct function_index *index, struct trace *t,
                            const struct trace_function *wanted)
{
    uint64_t hash = function_hash(wanted);
    uint32_t id = id_map_find(&index->ids, hash, function_same, t, wanted);
    if (id)
        return id;
    id = trace_push(&t->functions);
    t->functions.rows[id] = *wanted;
    id_map_add(&index->ids, hash, id);
    return id;
}
