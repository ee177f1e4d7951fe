#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/event_fields.h"
#include "cli/json_put.h"
#include "cli/question_events.h"
#include "cli/standard_output.h"

enum { KEPT_STACKS_BYTES = 64 << 20, SCRATCH_BYTES_MAX = 64 << 20 };

/* Stacks repeat: each is written out once, and kept. */
struct kept_stacks {
    const struct event_stacks *stacks;
    struct buffer text;
    struct kept_stack {
        uint32_t off, size; /* size 0: not kept */
    } * by_node;
    size_t node_capacity;
};

static void keep_begin(struct kept_stacks *k, const struct event_stacks *stacks)
{
    *k = (struct kept_stacks){ .stacks = stacks };
    buffer_init(&k->text, KEPT_STACKS_BYTES);
}

static void keep_end(struct kept_stacks *k)
{
    buffer_done(&k->text);
    free(k->by_node);
}

/* Forgets all of them when they have become too many. */
static void keep_room(struct kept_stacks *k, uint32_t node)
{
    size_t known = k->node_capacity;
    if (k->text.size > KEPT_STACKS_BYTES / 2) {
        buffer_clear(&k->text);
        for (size_t i = 0; i < known; i++)
            k->by_node[i].size = 0;
    }
    if (node < known)
        return;
    k->by_node = mem_grow(k->by_node, &k->node_capacity, (size_t)node + 1, sizeof *k->by_node);
    for (size_t i = known; i < k->node_capacity; i++)
        k->by_node[i] = (struct kept_stack){ 0 };
}

static void keep_path(struct kept_stacks *k, uint32_t node)
{
    uint32_t path[TRACE_STACK_DEPTH_MAX];
    size_t depth = 0;
    struct json_writer j;
    struct buffer frame;
    for (; node && depth < TRACE_STACK_DEPTH_MAX; node = event_stacks_caller(k->stacks, node))
        path[depth++] = node;
    json_init(&j, &k->text);
    buffer_init(&frame, SCRATCH_BYTES_MAX);
    json_begin_array(&j);
    while (depth) {
        buffer_clear(&frame);
        question_frame(event_stacks_leaf(k->stacks, path[--depth]), &frame);
        json_span(&j, buffer_span(&frame));
    }
    json_end_array(&j);
    buffer_done(&frame);
}

static void put_stack(struct json_writer *j, struct kept_stacks *k, uint32_t node)
{
    json_key(j, "stack");
    if (!node) {
        json_absent(j);
        return;
    }
    keep_room(k, node);
    struct kept_stack *kept = &k->by_node[node];
    if (!kept->size) {
        kept->off = (uint32_t)k->text.size;
        keep_path(k, node);
        kept->size = (uint32_t)k->text.size - kept->off;
    }
    json_raw(j, span_part(buffer_span(&k->text), kept->off, kept->size));
}

static void put_id(struct json_writer *j, const char *key, const uint8_t id[16], struct buffer *scratch)
{
    static const uint8_t none[16];
    if (memcmp(id, none, sizeof none) == 0)
        return;
    json_key(j, key);
    event_value_json(j, &(struct event_value){ .kind = EVENT_VALUE_GUID, .bytes = span_of(id, sizeof none) },
                     scratch);
}

/* What the event is a part of, where its provider keeps track. */
static void put_activity(struct json_writer *j, const struct trace *t, uint32_t event, struct buffer *scratch)
{
    const struct trace_event_activity *row = trace_event_activity(t, event);
    if (!row)
        return;
    put_id(j, "activity", row->id, scratch);
    put_id(j, "related_activity", row->related, scratch);
}

/* What a sample says is below the stack, where one does. */
static void put_native(struct json_writer *j, struct events_answer *a, const struct trace_event *row,
                       struct buffer *scratch)
{
    struct native_leaf leaf;
    if (!native_leaf_find(&a->leaves, row, &leaf))
        return;
    json_put_object(j, "native");
    json_put_array(j, "stack");
    for (size_t i = leaf.count; i-- > 0;) {
        buffer_clear(scratch);
        question_frame(native_leaf_frame(&a->leaves, &leaf, i), scratch);
        json_span(j, buffer_span(scratch));
    }
    json_end_array(j);
    json_put_double(j, "after_ms", (double)leaf.after_ns / 1e6);
    json_end_object(j);
}

static void put_event(struct json_writer *j, struct events_answer *a, struct kept_stacks *stacks,
                      uint32_t event, struct buffer *scratch)
{
    const struct trace *t = a->scope.trace;
    const struct trace_event *row = &t->events.rows[event];
    const struct trace_event_type *type = events_type(a, event);
    const struct event_schema *schema = event_query_schema(&a->query, event);
    struct span payload = trace_event_payload(t, row);
    json_begin_object(j);
    json_key(j, "time_s");
    json_ns_as_s(j, (int64_t)(row->time_ns - a->scope.time.start_ns));
    question_json_process(j, &a->scope, row->process);
    question_json_thread(j, &a->scope, "thread", row->thread);
    json_put_string(j, "provider", trace_string(t, type->provider));
    json_put_string(j, "event", event_schema_name(schema));
    json_put_u64(j, "id", type->event_id);
    json_put_u64(j, "version", type->version);
    if (!event_fields_json(j, schema, payload, scratch))
        json_put_bool(j, "cut", true);                      /* it ended before its last field */
    if (payload.size && event_schema_fields(schema) == 0) { /* nobody says what it means */
        buffer_clear(scratch);
        event_bytes_hex(payload, scratch);
        json_key(j, "payload");
        json_span(j, buffer_span(scratch));
    }
    put_activity(j, t, event, scratch);
    put_stack(j, stacks, event_stacks_node(&a->stacks, row->stack));
    put_native(j, a, row, scratch);
    json_end_object(j);
    json_next(j);
}

bool question_events_json(struct events_answer *a, struct error *err)
{
    struct json_writer j;
    struct buffer out, scratch;
    struct kept_stacks stacks;
    keep_begin(&stacks, &a->stacks);
    buffer_init(&scratch, SCRATCH_BYTES_MAX);
    stdout_json(&j, &out);
    uint32_t event;
    while ((!a->top || a->shown < a->top) && !j.failed && (event = event_query_next(&a->query))) {
        put_event(&j, a, &stacks, event, &scratch);
        a->shown++;
    }
    keep_end(&stacks);
    buffer_done(&scratch);
    return stdout_json_end_lines(&j, err);
}

bool question_events_json_counts(struct events_answer *a, struct error *err)
{
    struct json_writer j;
    struct buffer out;
    struct event_count *rows;
    size_t count = event_counts_take(&a->query, a->from_ns, a->duration_ns, &rows);
    stdout_json(&j, &out);
    json_begin_object(&j);
    json_put_string(&j, "schema", "clrperf.events.counts/1");
    json_put_u64(&j, "lost", question_lost(&a->scope));
    json_put_array(&j, "rows");
    for (size_t i = 0; i < count && (!a->top || i < a->top); i++) {
        json_begin_object(&j);
        json_put_string(&j, "provider", rows[i].provider);
        json_put_string(&j, "event", rows[i].event);
        json_put_u64(&j, "id", rows[i].id);
        json_put_u64(&j, "version", rows[i].version);
        json_put_u64(&j, "count", rows[i].count);
        json_put_u64(&j, "with_stack", rows[i].with_stack);
        json_put_u64(&j, "payload_bytes", rows[i].payload_bytes);
        json_put_known_double(&j, "per_s", a->duration_ns != 0, events_per_s(a, &rows[i]));
        json_put_array(&j, "when");
        for (size_t k = 0; k < EVENT_COUNTS_SLICES; k++)
            json_u64(&j, rows[i].when[k]);
        json_end_array(&j);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    free(rows);
    return stdout_json_end(&j, err);
}
