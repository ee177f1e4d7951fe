#include "analyse/finalized_types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/module_names.h"
#include "analyse/told_events.h"
#include "base/id_map.h"
#include "base/mem.h"
#include "base/utf16.h"
#include "clr/gc_events.h"
#include "clr/runtime_events.h"

enum { NAME_BYTES_MAX = 1 << 18, TYPES_MAX = 1 << 20 };

static const uint16_t finalized_ids[] = { GC_EVENT_BULK_TYPE, GC_EVENT_FINALIZE_OBJECT, 0 };

struct finalized_reading {
    struct finalized_types *types;
    struct told_events *told;
    struct module_names modules;
    struct id_map ids; /* one more than the row */
    struct buffer name;
};

static bool type_same(const void *table, uint32_t id, const void *key)
{
    const struct finalized_type *row = &((const struct finalized_types *)table)->rows[id - 1], *wanted = key;
    return row->type_id == wanted->type_id && row->process == wanted->process;
}

static uint64_t type_hash(uint32_t process, uint64_t type_id)
{
    return hash_pair(type_id, process);
}

static struct finalized_type *find_type(struct finalized_reading *r, uint32_t process, uint64_t type_id)
{
    struct finalized_type key = { .process = process, .type_id = type_id };
    uint32_t id = id_map_find(&r->ids, type_hash(process, type_id), type_same, r->types, &key);
    return id ? &r->types->rows[id - 1] : NULL;
}

static void on_finalized(struct finalized_reading *r, const struct told_event *e)
{
    struct finalized_types *types = r->types;
    uint64_t type_id = told_number(r->told, e, "TypeID", 0);
    struct finalized_type *row = find_type(r, e->process, type_id);
    if (!row && types->count < TYPES_MAX) {
        types->rows = mem_grow(types->rows, &types->capacity, types->count + 1, sizeof *types->rows);
        types->rows[types->count++] = (struct finalized_type){ .process = e->process, .type_id = type_id };
        id_map_add(&r->ids, type_hash(e->process, type_id), (uint32_t)types->count);
        row = &types->rows[types->count - 1];
    }
    if (row)
        row->count++;
}

/* Names of types that were counted: those of all others are passed over. */
static void on_types(struct finalized_reading *r, const struct told_event *e)
{
    struct gc_bulk_types types = gc_bulk_types_over(told_payload(r->told, e));
    struct gc_bulk_type type;
    while (gc_bulk_types_next(&types, &type)) {
        struct finalized_type *row = find_type(r, e->process, type.type_id);
        if (!row || row->name)
            continue;
        const char *module = module_names_of(&r->modules, e->process, type.module_id);
        buffer_clear(&r->name);
        utf16_append_utf8(&r->name, type.name);
        if (!type.name.size) /* .NET leaves it to who has the assembly */
            buffer_format(&r->name, "%s!0x%08" PRIx32, *module ? module : "[unknown]", type.token);
        buffer_u8(&r->name, 0);
        row->name = mem_copy_string((const char *)r->name.data);
    }
}

static int type_compare(const void *a, const void *b)
{
    const struct finalized_type *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int order = strcmp(x->name ? x->name : "", y->name ? y->name : "");
    return order ? order : (x->type_id > y->type_id) - (x->type_id < y->type_id);
}

bool finalized_types_wants(const char *provider, uint32_t event_id)
{
    enum runtime_event_kind kind = runtime_event_kind_named(provider, event_id);
    return (strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(finalized_ids, event_id)) ||
           kind == RUNTIME_EVENT_MODULE_LOAD || kind == RUNTIME_EVENT_MODULE_EXISTS;
}

void finalized_types_init(struct finalized_types *types, const struct trace *t, uint64_t from_ns,
                          uint64_t to_ns)
{
    *types = (struct finalized_types){ 0 };
    struct told_events told;
    told_events_init(
        &told, t,
        &(struct told_choice){
            .provider = RUNTIME_PROVIDER, .ids = finalized_ids, .from_ns = from_ns, .to_ns = to_ns });
    struct finalized_reading r = { .types = types, .told = &told };
    buffer_init(&r.name, NAME_BYTES_MAX);
    module_names_init(&r.modules, t);
    for (size_t i = 0; i < told.count; i++)
        if (told.rows[i].id == GC_EVENT_FINALIZE_OBJECT)
            on_finalized(&r, &told.rows[i]);
    for (size_t i = 0; i < told.count && types->count; i++)
        if (told.rows[i].id == GC_EVENT_BULK_TYPE)
            on_types(&r, &told.rows[i]);
    if (types->count)
        qsort(types->rows, types->count, sizeof *types->rows, type_compare);
    buffer_done(&r.name);
    module_names_done(&r.modules);
    id_map_done(&r.ids);
    told_events_done(&told);
}

void finalized_types_done(struct finalized_types *types)
{
    for (size_t i = 0; i < types->count; i++)
        free(types->rows[i].name);
    free(types->rows);
}
