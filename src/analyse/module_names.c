#include "analyse/module_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/module_name.h"
#include "clr/runtime_events.h"

enum { MODULE_PATH_MAX = 1 << 16 };

struct module_key {
    uint64_t module_id;
    uint32_t process;
};

static bool module_same(const void *table, uint32_t id, const void *key)
{
    const struct module_name *row = &((const struct module_names *)table)->rows[id];
    const struct module_key *wanted = key;
    return row->module_id == wanted->module_id && row->process == wanted->process;
}

static char *name_of_path(struct span path)
{
    struct buffer text;
    buffer_init(&text, MODULE_PATH_MAX);
    utf16_append_utf8(&text, path);
    struct span name = module_simple_name(buffer_span(&text));
    char *copy = mem_format("%.*s", (int)name.size, name.size ? (const char *)name.data : "");
    buffer_done(&text);
    return copy;
}

static void add_module(struct module_names *names, uint32_t process, const struct runtime_module_event *m)
{
    struct module_key key = { m->module_id, process };
    uint64_t hash = hash_pair(m->module_id, process);
    if (id_map_find(&names->ids, hash, module_same, names, &key))
        return;
    names->rows = mem_grow(names->rows, &names->capacity, names->count + 1, sizeof *names->rows);
    uint32_t id = (uint32_t)names->count++;
    names->rows[id] = (struct module_name){ m->module_id, process, name_of_path(m->il_path) };
    id_map_add(&names->ids, hash, id);
}

static bool tells_modules(const struct trace *t, const struct trace_event_type *type)
{
    enum runtime_event_kind kind = runtime_event_kind_named(trace_string(t, type->provider), type->event_id);
    return kind == RUNTIME_EVENT_MODULE_LOAD || kind == RUNTIME_EVENT_MODULE_EXISTS;
}

static void read_events(struct module_names *names)
{
    const struct trace *t = names->trace;
    AUTO_FREE bool *wanted = mem_alloc(t->event_types.count + 1, sizeof *wanted);
    for (size_t i = 1; i < t->event_types.count; i++)
        wanted[i] = tells_modules(t, &t->event_types.rows[i]);
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        struct runtime_module_event told;
        if (wanted[row->type] &&
            runtime_module_event_read(trace_event_payload(t, row), t->event_types.rows[row->type].version,
                                      &told, NULL))
            add_module(names, row->process, &told);
    }
}

static uint64_t code_hash(uint32_t process, uint64_t addr)
{
    return hash_pair(addr, process);
}

static bool code_same(const void *table, uint32_t id, const void *key)
{
    const struct trace_code *row = &((const struct trace *)table)->codes.rows[id];
    const struct trace_code *wanted = key;
    return row->addr == wanted->addr && row->process == wanted->process;
}

void module_names_init(struct module_names *names, const struct trace *t)
{
    *names = (struct module_names){ .trace = t };
    names->rows = mem_grow(NULL, &names->capacity, 64, sizeof *names->rows);
    names->rows[0] = (struct module_name){ 0 };
    names->count = 1;
    read_events(names);
    for (uint32_t i = 1; i < t->codes.count; i++) {
        const struct trace_code *row = &t->codes.rows[i];
        uint64_t hash = code_hash(row->process, row->addr);
        if (!id_map_find(&names->codes, hash, code_same, t, row))
            id_map_add(&names->codes, hash, i);
    }
}

void module_names_done(struct module_names *names)
{
    for (size_t i = 1; i < names->count; i++)
        free(names->rows[i].name);
    free(names->rows);
    id_map_done(&names->ids);
    id_map_done(&names->codes);
}

const char *module_names_of(const struct module_names *names, uint32_t process, uint64_t module_id)
{
    struct module_key key = { module_id, process };
    uint32_t id = id_map_find(&names->ids, hash_pair(module_id, process), module_same, names, &key);
    return id ? names->rows[id].name : "";
}

const char *module_names_of_code(const struct module_names *names, uint32_t process, uint64_t addr)
{
    const struct trace *t = names->trace;
    struct trace_code key = { .process = process, .addr = addr };
    uint32_t id = id_map_find(&names->codes, code_hash(process, addr), code_same, t, &key);
    if (!id || t->codes.rows[id].function >= t->functions.count)
        return "";
    return trace_string(t, t->functions.rows[t->codes.rows[id].function].module);
}
