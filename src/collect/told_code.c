#include "collect/told_code.h"

#include <stdlib.h>

#include "base/mem.h"
#include "clr/method_name.h"
#include "clr/module_name.h"

/* A module's file. */
struct told_module {
    uint64_t module_id;
    uint32_t process;
    uint32_t path; /* string */
};

/* What the trace's row does not have room for. */
struct code_origin {
    uint64_t module_id;
    uint32_t name, type_params;
    bool dynamic;
    bool is_any; /* of a generic method, and not said which instance it is */
};

struct told_code {
    struct trace_builder *b;
    struct told_module *modules;
    size_t module_count, module_capacity;
    size_t put_modules, put_codes; /* how many there were when the codes got their modules last */
    struct code_origin *origins;   /* by code id */
    size_t origin_capacity;
};

struct told_code *told_code_new(struct trace_builder *b)
{
    struct told_code *told = mem_alloc(1, sizeof *told);
    told->b = b;
    return told;
}

void told_code_free(struct told_code *told)
{
    if (!told)
        return;
    free(told->modules);
    free(told->origins);
    free(told);
}

/* Methods. */

struct code_change told_code_change(struct told_code *told, uint32_t process, uint8_t resolver,
                                    const struct runtime_method *method)
{
    return (struct code_change){
        .time_ns = method->time_ns,
        .addr = method->addr,
        .size_bytes = method->size_bytes,
        .module_id = method->module_id,
        .process = process,
        .name = intern_add(&told->b->trace.strings, method->name),
        .token = method->dynamic ? 0 : method->token,
        .type_params = method->type_params.size ? trace_add_span(&told->b->trace, method->type_params) : 0,
        .change = (uint8_t)method->change,
        .tier = method->tier,
        .resolver = resolver,
        .dynamic = method->dynamic,
        .generic = method->generic,
    };
}

static uint32_t add_function(struct told_code *told, const struct code_origin *origin, uint32_t module)
{
    return trace_builder_function(told->b, &(struct trace_function){
                                               .name = origin->name,
                                               .module = module,
                                               .type_params = origin->type_params,
                                               .kind = origin->dynamic ? CODE_DYNAMIC : CODE_JIT,
                                           });
}

/* Memory tells the arguments of a generic method, events do not. */
static bool is_instance(const struct told_code *told, uint32_t name, uint32_t of)
{
    const struct trace *t = &told->b->trace;
    return method_name_is_instance(trace_string_span(t, name), trace_string_span(t, of));
}

/* Whether the code was told of before, by memory or by events, which know since when it lives. */
static bool has(const struct told_code *told, const struct code_change *change)
{
    const struct trace *t = &told->b->trace;
    uint32_t id = trace_builder_code_at(told->b, change->process, change->addr);
    const struct trace_code *code = &t->codes.rows[id];
    if (!id || id >= told->origin_capacity)
        return false;
    uint32_t name = told->origins[id].name;
    bool same = code->addr == change->addr && code->size_bytes == change->size_bytes &&
                (name == change->name || (change->generic && is_instance(told, name, change->name)));
    if (code->resolver == change->resolver)
        return same && change->time_ns == CODE_FROM_EVER;
    return same || change->resolver == RESOLVER_MEMORY;
}

/* Whether this says of which instance code is that events told of. */
static bool says_instance(const struct told_code *told, const struct code_change *change)
{
    uint32_t id = trace_builder_code_at(told->b, change->process, change->addr);
    return change->resolver == RESOLVER_MEMORY && change->generic && id &&
           told_code_is_any_instance(told, id) && is_instance(told, change->name, told->origins[id].name);
}

/* What a stub serves, and which instance code is, memory alone tells; events may have told of it before. */
static void complete(struct told_code *told, const struct code_change *change)
{
    struct trace *t = &told->b->trace;
    uint32_t id = trace_builder_code_at(told->b, change->process, change->addr);
    struct code_origin *origin = &told->origins[id];
    uint32_t module = t->functions.rows[t->codes.rows[id].function].module;
    bool serves = change->type_params && !origin->type_params && origin->name == change->name;
    bool instance = says_instance(told, change);
    if (!serves && !instance)
        return;
    if (serves)
        origin->type_params = change->type_params;
    origin->name = change->name;
    origin->is_any &= !instance;
    t->codes.rows[id].function = add_function(told, origin, module);
    trace_builder_changed(told->b, CHANGED_CODE, id);
}

void told_code_apply(struct told_code *told, const struct code_change *change)
{
    bool ends = change->change == RUNTIME_METHOD_UNLOADED;
    bool known = change->change == RUNTIME_METHOD_LOADED && has(told, change);
    if (known || (!ends && says_instance(told, change))) {
        complete(told, change);
        return;
    }
    if (ends && trace_builder_code_end(told->b, change->process, change->addr, change->time_ns))
        return;
    bool is_any = change->generic && change->resolver == RESOLVER_EVENTPIPE;
    struct code_origin origin = { change->module_id, change->name, change->type_params, change->dynamic,
                                  is_any };
    struct trace_code code = {
        .process = change->process,
        .function = add_function(told, &origin, 0),
        .addr = change->addr,
        .size_bytes = change->size_bytes,
        .from_ns = change->change == RUNTIME_METHOD_LOADED ? change->time_ns : 0,
        .to_ns = ends ? change->time_ns : 0,
        .token = change->token,
        .tier = change->tier,
        .resolver = change->resolver,
    };
    uint32_t id = trace_builder_code(told->b, &code);
    told->origins = mem_grow_zeroed(told->origins, &told->origin_capacity, id + 1, sizeof *told->origins);
    if (id)
        told->origins[id] = origin;
}

bool told_code_is_any_instance(const struct told_code *told, uint32_t code)
{
    return code < told->origin_capacity && told->origins[code].is_any;
}

/* Modules. */

void told_code_module(struct told_code *told, uint32_t process, const struct runtime_module *module)
{
    told->modules =
        mem_grow(told->modules, &told->module_capacity, told->module_count + 1, sizeof *told->modules);
    told->modules[told->module_count++] = (struct told_module){
        .module_id = module->module_id,
        .process = process,
        .path = intern_add(&told->b->trace.strings, module->path),
    };
}

static int module_compare(const void *a, const void *b)
{
    const struct told_module *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->module_id > y->module_id) - (x->module_id < y->module_id);
}

/* Those that were there when codes got their modules last are in order. */
static const struct told_module *find_module(const struct told_code *told, uint32_t process,
                                             uint64_t module_id)
{
    const struct told_module wanted = { .process = process, .module_id = module_id }, *found = NULL;
    if (told->put_modules)
        found = bsearch(&wanted, told->modules, told->put_modules, sizeof *told->modules, module_compare);
    for (size_t i = told->put_modules; i < told->module_count && !found; i++)
        if (module_compare(&told->modules[i], &wanted) == 0)
            found = &told->modules[i];
    return found;
}

bool told_code_next_without_module(const struct told_code *told, uint32_t process, uint32_t *code,
                                   uint64_t *addr)
{
    const struct trace *t = &told->b->trace;
    for (uint32_t id = *code + 1; id < t->codes.count && id < told->origin_capacity; id++) {
        const struct code_origin *origin = &told->origins[id];
        const struct trace_code *row = &t->codes.rows[id];
        if (row->process != process || row->to_ns || row->module_path || origin->dynamic ||
            !origin->module_id || find_module(told, process, origin->module_id))
            continue;
        *code = id;
        *addr = row->addr;
        return true;
    }
    return false;
}

void told_code_put_modules(struct told_code *told)
{
    struct trace *t = &told->b->trace;
    if (told->module_count == told->put_modules && t->codes.count == told->put_codes)
        return;
    if (told->module_count)
        qsort(told->modules, told->module_count, sizeof *told->modules, module_compare);
    told->put_modules = told->module_count;
    told->put_codes = t->codes.count;
    for (uint32_t id = 1; id < t->codes.count && id < told->origin_capacity; id++) {
        const struct code_origin *origin = &told->origins[id];
        /* memory does not tell where dynamic methods belong, and most belong to nothing of the program's */
        if (!origin->name || origin->dynamic || t->codes.rows[id].module_path)
            continue;
        const struct told_module *module = find_module(told, t->codes.rows[id].process, origin->module_id);
        if (!module || !module->path)
            continue;
        uint32_t function = add_function(
            told, origin, trace_add_span(t, module_simple_name(trace_string_span(t, module->path))));
        t->codes.rows[id].function = function;
        t->codes.rows[id].module_path = module->path;
        trace_builder_changed(told->b, CHANGED_CODE, id);
    }
}
