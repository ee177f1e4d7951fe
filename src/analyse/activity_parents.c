#include "analyse/activity_parents.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/event_schemas.h"
#include "base/mem.h"
#include "base/own.h"
#include "clr/event_schema.h"

struct activity_birth {
    uint32_t process;
    struct activity_path path, parent;
};

static uint64_t birth_hash(const struct activity_birth *birth)
{
    return hash_pair(hash_bytes(&birth->path, sizeof birth->path), birth->process);
}

static bool birth_same(const void *table, uint32_t id, const void *key)
{
    const struct activity_birth *row = &((const struct activity_parents *)table)->rows[id], *wanted = key;
    return row->process == wanted->process && memcmp(&row->path, &wanted->path, sizeof row->path) == 0;
}

static uint32_t birth_find(const struct activity_parents *parents, const struct activity_birth *key)
{
    return id_map_find(&parents->ids, birth_hash(key), birth_same, parents, key);
}

static void add(struct activity_parents *parents, const struct activity_birth *birth)
{
    if (memcmp(&birth->path, &birth->parent, sizeof birth->path) == 0 || birth_find(parents, birth))
        return;
    parents->rows = mem_grow(parents->rows, &parents->capacity, parents->count + 1, sizeof *parents->rows);
    parents->rows[parents->count] = *birth;
    id_map_add(&parents->ids, birth_hash(birth), (uint32_t)parents->count++);
}

void activity_parents_init(struct activity_parents *parents, const struct trace *t)
{
    *parents = (struct activity_parents){ .count = 1 };
    parents->rows = mem_grow(NULL, &parents->capacity, 1, sizeof *parents->rows);
    AUTO_FREE bool *begins = mem_alloc(t->event_types.count + 1, sizeof *begins);
    for (uint32_t i = 1; i < t->event_types.count; i++)
        begins[i] = event_type_edge(t, i) == EVENT_OPCODE_START;
    for (size_t i = 1; i < t->event_activities.count; i++) {
        const struct trace_event_activity *row = &t->event_activities.rows[i];
        const struct trace_event *event = &t->events.rows[row->event];
        struct activity_birth birth = { .process = event->process };
        if (begins[event->type] && activity_path_read(row->id, &birth.path) &&
            activity_path_read(row->related, &birth.parent))
            add(parents, &birth);
    }
}

void activity_parents_done(struct activity_parents *parents)
{
    id_map_done(&parents->ids);
    free(parents->rows);
}

struct activity_path activity_parents_of(const struct activity_parents *parents, uint32_t process,
                                         const struct activity_path *path)
{
    struct activity_birth key = { .process = process, .path = *path };
    uint32_t told = birth_find(parents, &key);
    return told ? parents->rows[told].parent : activity_path_parent(path);
}
