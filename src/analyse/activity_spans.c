#include "analyse/activity_spans.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/activity_parents.h"
#include "analyse/diagnostic_activity.h"
#include "analyse/event_schemas.h"
#include "base/mem.h"
#include "base/own.h"
#include "clr/activity_path.h"
#include "clr/provider_names.h"

enum { NAME_BYTES_MAX = 1 << 10, NAME_BUFFER_BYTES = 1 << 18, KEY_MARK = 0xac };

/* Who began it names an activity. */
struct named_activity {
    struct activity_path path;
    uint32_t process, name;
};

struct activity_reading {
    struct span_table *table;
    const struct trace *t;
    struct event_schemas schemas;
    uint8_t *edges; /* by type: enum event_opcode */
    bool *alone;    /* by type: no event has the other edge of its name */
    uint32_t kind;
    struct buffer name, task;     /* of one event */
    struct named_activity *named; /* [0] is unused */
    size_t named_count, named_capacity;
    struct id_map named_ids;
    struct activity_parents parents;
    uint64_t by_thread;
};

/* An event that begins or ends one. */
struct edge_event {
    uint64_t time_ns;
    uint32_t event;
    struct activity_path path;   /* none: its thread has to tell */
    struct activity_path parent; /* where the activity tells itself what it was begun in */
    bool tells_itself;
};

bool activity_spans_wants(const char *provider, uint32_t event_id)
{
    (void)event_id;
    return strcmp(provider, RUNTIME_PROVIDER) != 0 && strcmp(provider, RUNTIME_RUNDOWN_PROVIDER) != 0 &&
           strcmp(provider, RUNTIME_SAMPLER_PROVIDER) != 0;
}

static uint64_t named_hash(const struct named_activity *key)
{
    return hash_pair(hash_bytes(&key->path, sizeof key->path), key->process);
}

static bool named_same(const void *reading, uint32_t id, const void *key)
{
    const struct named_activity *row = &((const struct activity_reading *)reading)->named[id];
    const struct named_activity *wanted = key;
    return row->process == wanted->process && memcmp(&row->path, &wanted->path, sizeof row->path) == 0;
}

static uint32_t named_find(const struct activity_reading *r, const struct activity_path *path,
                           uint32_t process)
{
    struct named_activity key = { .path = *path, .process = process };
    return id_map_find(&r->named_ids, named_hash(&key), named_same, r, &key);
}

/* The latest one that was begun with this path names it. */
static void named_put(struct activity_reading *r, const struct activity_path *path, uint32_t process,
                      uint32_t name)
{
    struct named_activity row = { *path, process, name };
    uint32_t known = named_find(r, path, process);
    if (known) {
        r->named[known].name = name;
        return;
    }
    r->named = mem_grow(r->named, &r->named_capacity, r->named_count + 1, sizeof *r->named);
    r->named[r->named_count] = row;
    id_map_add(&r->named_ids, named_hash(&row), (uint32_t)r->named_count++);
}

static bool append_field(struct activity_reading *r, const struct edge_event *e, const char *field,
                         struct buffer *out)
{
    const struct trace_event *row = &r->t->events.rows[e->event];
    const struct event_schema *schema = event_schemas_get(&r->schemas, row->type);
    struct event_value value;
    if (!event_schema_read(schema, trace_event_payload(r->t, row), event_schema_field(schema, field), &value))
        return false;
    event_value_append_text(out, &value);
    return true;
}

/* An event of a DiagnosticSource is "HttpRequestOut.Start"; an activity has one name for both. */
static void cut_edge(struct buffer *name)
{
    static const char *const edges[] = { ".Start", ".Stop" };
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        size_t size = strlen(edges[i]);
        if (name->size > size && memcmp(name->data + name->size - size, edges[i], size) == 0)
            name->size -= size;
    }
}

/* "Shop/Order" of the events "OrderStart" and "OrderStop". */
static struct span type_task(struct activity_reading *r, uint32_t type)
{
    const char *name = event_schema_name(event_schemas_get(&r->schemas, type));
    const char *slash = strrchr(name, '/');
    buffer_clear(&r->task);
    buffer_format(&r->task, "%s/", trace_string(r->t, r->t->event_types.rows[type].provider));
    buffer_append(&r->task, name, slash ? (size_t)(slash - name) : strlen(name));
    return buffer_span(&r->task);
}

static void find_alone(struct activity_reading *r)
{
    size_t count = r->t->event_types.count;
    AUTO_FREE uint32_t *tasks = mem_alloc(count + 1, sizeof *tasks);
    AUTO_FREE uint8_t *edges = mem_alloc(count + 1, sizeof *edges); /* of a task */
    struct intern names;
    intern_init(&names, NAME_BUFFER_BYTES);
    for (uint32_t i = 1; i < count; i++) {
        if (r->edges[i])
            tasks[i] = intern_add(&names, type_task(r, i));
        edges[tasks[i]] |= (uint8_t)(1 << r->edges[i]);
    }
    for (uint32_t i = 1; i < count; i++)
        r->alone[i] = tasks[i] && edges[tasks[i]] == 1 << r->edges[i];
    intern_done(&names);
}

/* "Shop/Order": who began what. One provider tells what all DiagnosticSources do, and whose it is. */
static struct span task_name(struct activity_reading *r, const struct edge_event *e)
{
    const struct trace_event_type *type = &r->t->event_types.rows[r->t->events.rows[e->event].type];
    const char *provider = trace_string(r->t, type->provider);
    struct buffer *task = &r->task;
    buffer_clear(task);
    if (strcmp(provider, DIAGNOSTIC_SOURCE_PROVIDER) == 0 && append_field(r, e, "SourceName", task)) {
        buffer_u8(task, '/');
        if (append_field(r, e, "ActivityName", task))
            return buffer_span(task);
        if (append_field(r, e, "EventName", task)) {
            cut_edge(task);
            return buffer_span(task);
        }
    }
    return type_task(r, r->t->events.rows[e->event].type);
}

/*
 * Events of other names can share an activity; and tasks, which are in the same table, have other keys. A
 * source may call the end of an activity something else than its begin: the same task makes them a pair,
 * which is not told.
 */
static void key_of(struct activity_reading *r, const struct edge_event *e, uint8_t key[16])
{
    const struct trace_event *row = &r->t->events.rows[e->event];
    bool by_thread = activity_path_is_none(&e->path);
    struct span task = task_name(r, e);
    if (r->alone[row->type] && !by_thread)
        task = trace_string_span(r->t, r->t->event_types.rows[row->type].provider);
    uint64_t path = by_thread ? row->thread : hash_bytes(&e->path, sizeof e->path);
    uint32_t name = (uint32_t)hash_bytes(task.data, task.size);
    memset(key, 0, 16);
    memcpy(key, &path, sizeof path);
    memcpy(key + sizeof path, &name, sizeof name);
    key[14] = by_thread;
    key[15] = KEY_MARK;
}

/* Whether the event begins an activity, and does not only happen in one: then it tells what that is in. */
static bool is_birth(const struct activity_reading *r, const struct edge_event *e)
{
    struct activity_path parent;
    return activity_path_read(trace_event_activity(r->t, e->event)->related, &parent) &&
           memcmp(&parent, &e->path, sizeof parent) != 0;
}

/* "Shop/Order", behind what it was begun in. */
static uint32_t name_of(struct activity_reading *r, const struct edge_event *e, uint32_t process)
{
    struct activity_path outer =
        e->tells_itself ? e->parent : activity_parents_of(&r->parents, process, &e->path);
    uint32_t own = e->tells_itself || is_birth(r, e) ? 0 : named_find(r, &e->path, process);
    uint32_t around = own ? own : named_find(r, &outer, process);
    buffer_clear(&r->name);
    if (around) {
        struct span text = intern_span(&r->table->texts, r->named[around].name);
        if (text.size < NAME_BYTES_MAX)
            buffer_append(&r->name, text.data, text.size);
        else
            buffer_string(&r->name, "...");
        buffer_string(&r->name, " > ");
    }
    struct span task = task_name(r, e);
    buffer_append(&r->name, task.data, task.size);
    uint32_t id = intern_add(&r->table->texts, buffer_span(&r->name));
    r->table->is_full |= !id;
    if (!own)
        named_put(r, &e->path, process, id);
    return id;
}

/* Of one in no activity nothing is known but who begins it, on its thread. */
static void begin_by_thread(struct activity_reading *r, const struct edge_event *e, const uint8_t key[16],
                            struct span_row *span)
{
    span->name = intern_add(&r->table->texts, task_name(r, e));
    span->on_one_thread = true;
    r->table->is_full |= !span->name;
    r->by_thread++;
    span_table_begin(r->table, key, span->process, span);
}

static void begin_in_activity(struct activity_reading *r, const struct edge_event *e, const uint8_t key[16],
                              struct span_row *span)
{
    span->name = name_of(r, e, span->process);
    if (!e->tells_itself)
        memcpy(span->activity, trace_event_activity(r->t, e->event)->id, sizeof span->activity);
    span_table_begin_beside(r->table, key, span->process, span);
}

static void read_edge(struct activity_reading *r, const struct edge_event *e)
{
    const struct trace_event *row = &r->t->events.rows[e->event];
    uint8_t key[16];
    key_of(r, e, key);
    if (r->edges[row->type] == EVENT_OPCODE_STOP) {
        span_table_end(r->table, key, row->process, row->time_ns);
        return;
    }
    struct span_row span = { .start_ns = row->time_ns,
                             .process = row->process,
                             .thread = row->thread,
                             .stack = row->stack,
                             .kind = r->kind,
                             .status = SPAN_STATUS_NONE };
    (activity_path_is_none(&e->path) ? begin_by_thread : begin_in_activity)(r, e, key, &span);
}

static int edge_compare(const void *a, const void *b)
{
    const struct edge_event *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* Which activity the event is of; where nobody says so, its thread has to be known. */
static bool find_activity(struct activity_reading *r, struct edge_event *edge)
{
    const struct trace *t = r->t;
    const struct trace_event *row = &t->events.rows[edge->event];
    const struct trace_event_activity *activity = trace_event_activity(t, edge->event);
    if (activity && activity_path_read(activity->id, &edge->path))
        return true;
    const char *provider = trace_string(t, t->event_types.rows[row->type].provider);
    struct diagnostic_activity told;
    if (strcmp(provider, DIAGNOSTIC_SOURCE_PROVIDER) != 0 ||
        !diagnostic_activity_read(event_schemas_get(&r->schemas, row->type), trace_event_payload(t, row),
                                  &told))
        return row->thread != 0;
    edge->path = told.own;
    edge->parent = told.parent;
    edge->tells_itself = true;
    return true;
}

/* In time order: a begin and its end can be told by different threads. */
static size_t find_edges(struct activity_reading *r, uint64_t from_ns, uint64_t to_ns,
                         struct edge_event **out)
{
    const struct trace *t = r->t;
    struct edge_event *edges = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        bool is_asked = row->time_ns >= from_ns && (!to_ns || row->time_ns < to_ns);
        if (!is_asked || !r->edges[row->type])
            continue;
        struct edge_event edge = { .time_ns = row->time_ns, .event = i };
        if (!find_activity(r, &edge))
            continue;
        edges = mem_grow(edges, &capacity, count + 1, sizeof *edges);
        edges[count++] = edge;
    }
    if (count)
        qsort(edges, count, sizeof *edges, edge_compare);
    *out = edges;
    return count;
}

bool activity_spans_add(struct span_table *table, const struct trace *t, uint64_t from_ns, uint64_t to_ns,
                        uint64_t *out_by_thread)
{
    struct activity_reading r = { .table = table, .t = t, .named_count = 1 };
    AUTO_FREE struct edge_event *edges = NULL;
    r.named = mem_grow(NULL, &r.named_capacity, 1, sizeof *r.named);
    r.edges = mem_alloc(t->event_types.count + 1, sizeof *r.edges);
    for (uint32_t i = 1; i < t->event_types.count; i++)
        r.edges[i] = (uint8_t)event_type_edge(t, i);
    r.alone = mem_alloc(t->event_types.count + 1, sizeof *r.alone);
    r.kind = intern_cstr(&table->texts, "activity");
    event_schemas_init(&r.schemas, t);
    activity_parents_init(&r.parents, t);
    buffer_init(&r.name, NAME_BUFFER_BYTES);
    buffer_init(&r.task, NAME_BUFFER_BYTES);
    find_alone(&r);
    size_t count = find_edges(&r, from_ns, to_ns, &edges);
    for (size_t i = 0; i < count; i++)
        read_edge(&r, &edges[i]);
    buffer_done(&r.name);
    buffer_done(&r.task);
    event_schemas_done(&r.schemas);
    activity_parents_done(&r.parents);
    id_map_done(&r.named_ids);
    free(r.named);
    free(r.edges);
    free(r.alone);
    *out_by_thread = r.by_thread;
    return count != 0;
}
