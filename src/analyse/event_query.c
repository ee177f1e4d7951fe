#include "analyse/event_query.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob_text.h"
#include "base/mem.h"
#include "clr/event_path.h"

enum { WANTED = 1, UNWANTED, QUERY_TEXT_MAX = 8 << 20 };
enum { FIELD_ABSENT = -1, FIELD_INSIDE = -2 /* another field */ };

/* ---- order ---- */

/* Events come nearly in order: runs that are, are merged. */
struct order {
    const struct trace_event *events;
    uint32_t *from, *to;
};

static size_t run_end(const struct order *o, size_t at, size_t count)
{
    if (at == count)
        return count;
    for (at++; at < count; at++)
        if (o->events[o->from[at]].time_ns < o->events[o->from[at - 1]].time_ns)
            break;
    return at;
}

static void merge_runs(const struct order *o, size_t from, size_t middle, size_t end)
{
    size_t a = from, b = middle;
    for (size_t out = from; out < end; out++) {
        bool second =
            a == middle || (b < end && o->events[o->from[b]].time_ns < o->events[o->from[a]].time_ns);
        o->to[out] = o->from[second ? b++ : a++];
    }
}

/* The ids of events 1 and up, those of the same time as they were. NULL when they are in order. */
static uint32_t *order_by_time(const struct trace *t)
{
    size_t count = t->events.count - 1;
    bool sorted = true;
    for (size_t i = 2; i <= count && sorted; i++)
        sorted = t->events.rows[i - 1].time_ns <= t->events.rows[i].time_ns;
    if (sorted)
        return NULL;
    struct order o = { .events = t->events.rows, .from = mem_alloc(count, sizeof *o.from) };
    for (size_t i = 0; i < count; i++)
        o.from[i] = (uint32_t)i + 1;
    o.to = mem_alloc(count, sizeof *o.to);
    while (run_end(&o, 0, count) < count) {
        for (size_t from = 0; from < count;) {
            size_t middle = run_end(&o, from, count), end = run_end(&o, middle, count);
            merge_runs(&o, from, middle, end);
            from = end;
        }
        uint32_t *swap = o.from;
        o.from = o.to;
        o.to = swap;
    }
    free(o.to);
    return o.from;
}

/* ---- what is wanted ---- */

static bool type_named(struct event_query *q, uint32_t type)
{
    const struct trace_event_type *row = &q->trace->event_types.rows[type];
    if (q->wish.provider && !glob_matches(q->wish.provider, trace_string(q->trace, row->provider)))
        return false;
    return !q->wish.event || glob_matches_number(q->wish.event, row->event_id,
                                                 event_schema_name(event_schemas_get(&q->schemas, type)));
}

static bool type_wanted(struct event_query *q, uint32_t type)
{
    const struct event_schema *s = event_schemas_get(&q->schemas, type);
    if (!type_named(q, type))
        return false;
    bool all = true;
    for (size_t i = 0; i < q->wish.condition_count; i++) {
        int field = event_schema_field(s, q->wish.conditions[i].field);
        if (field < 0 && event_schema_has_path(s, q->wish.conditions[i].field))
            field = FIELD_INSIDE;
        q->fields[type * q->wish.condition_count + i] = field;
        all &= field != FIELD_ABSENT;
    }
    return all;
}

bool event_query_has_field(struct event_query *q, const char *field)
{
    for (uint32_t type = 1; type < q->trace->event_types.count; type++)
        if (type_named(q, type) && event_schema_has_path(event_schemas_get(&q->schemas, type), field))
            return true;
    return false;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

size_t event_query_fields(struct event_query *q, const char **names, size_t most)
{
    size_t count = 0;
    for (uint32_t type = 1; type < q->trace->event_types.count; type++) {
        if (!type_named(q, type))
            continue;
        const struct event_schema *s = event_schemas_get(&q->schemas, type);
        for (uint32_t i = 0; i < event_schema_fields(s) && count < most; i++) {
            const char *name = event_schema_field_name(s, i);
            if (name && !is_among(name, names, count))
                names[count++] = name;
        }
    }
    return count;
}

static bool process_wanted(struct event_query *q, uint32_t id)
{
    return thread_filter_wants_process(&q->wish.who, q->trace, id);
}

static bool thread_wanted(struct event_query *q, uint32_t id)
{
    return thread_filter_wants_thread(&q->wish.who, q->trace, id);
}

/* Found out once for each id. */
static bool wanted_once(struct event_query *q, uint8_t *known, uint32_t id,
                        bool (*wanted)(struct event_query *q, uint32_t id))
{
    if (!known[id])
        known[id] = wanted(q, id) ? WANTED : UNWANTED;
    return known[id] == WANTED;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* As whole numbers where both are, as those may be larger than a double holds. False: `text` is no number. */
static bool compare_numbers(const struct event_value *v, const char *text, int *out)
{
    char *end;
    errno = 0;
    bool negative = *text == '-';
    uint64_t whole = strtoull(text, &end, 0);
    if (end != text && !*end && !errno && v->kind != EVENT_VALUE_FLOAT) {
        if (v->kind == EVENT_VALUE_INT && (v->i < 0 || negative))
            *out = v->i < (int64_t)whole ? -1 : v->i > (int64_t)whole;
        else
            *out = negative ? 1 : compare_u64(v->u, whole);
        return true;
    }
    double number = strtod(text, &end);
    if (end == text || *end)
        return false;
    if (v->kind == EVENT_VALUE_FLOAT && v->size == sizeof(float))
        number = (float)number; /* 0.1 is not the same as both */
    *out = v->f < number ? -1 : v->f > number;
    return true;
}

static bool relation_holds(enum event_relation relation, int order)
{
    switch (relation) {
    case EVENT_IS:
        return order == 0;
    case EVENT_IS_NOT:
        return order != 0;
    case EVENT_LESS:
        return order < 0;
    case EVENT_MORE:
        return order > 0;
    case EVENT_AT_MOST:
        return order <= 0;
    case EVENT_AT_LEAST:
        return order >= 0;
    }
    return false;
}

static const char *query_text(struct event_query *q, const struct event_value *v)
{
    buffer_clear(&q->text);
    event_value_append(&q->text, v);
    buffer_u8(&q->text, 0);
    return q->text.failed ? "" : (const char *)q->text.data;
}

/* NaN is neither less nor more than anything, nor is anything than NaN. False: there is none. */
static bool compare_nan(const struct event_condition *c, const struct event_value *v, bool *out)
{
    bool is = v->kind == EVENT_VALUE_FLOAT && isnan(v->f), asked = strcasecmp(c->value, "NaN") == 0;
    *out = (is && asked ? EVENT_IS : EVENT_IS_NOT) == c->relation;
    return is || asked;
}

static bool condition_holds(struct event_query *q, const struct event_condition *c,
                            const struct event_value *v)
{
    int order;
    bool holds;
    if (event_value_is_number(v) && compare_nan(c, v, &holds))
        return holds;
    if (event_value_is_number(v) && compare_numbers(v, c->value, &order))
        return relation_holds(c->relation, order);
    const char *text = query_text(q, v);
    if (c->relation == EVENT_IS || c->relation == EVENT_IS_NOT)
        return glob_matches(c->value, text) == (c->relation == EVENT_IS);
    return relation_holds(c->relation, strcasecmp(text, c->value));
}

static bool conditions_hold(struct event_query *q, const struct trace_event *e, struct span payload)
{
    const struct event_schema *s = event_schemas_get(&q->schemas, e->type);
    for (size_t i = 0; i < q->wish.condition_count; i++) {
        struct event_value v;
        const struct event_condition *c = &q->wish.conditions[i];
        int field = q->fields[e->type * q->wish.condition_count + i];
        bool known = field == FIELD_INSIDE ? event_path_read(s, payload, c->field, &v)
                                           : event_schema_read(s, payload, field, &v);
        if (!known || !condition_holds(q, c, &v))
            return false;
    }
    return true;
}

static void append_value(void *user, const char *name, const struct event_value *v)
{
    struct buffer *text = user;
    buffer_string(text, name);
    buffer_u8(text, '=');
    event_value_append(text, v);
    buffer_u8(text, ' ');
}

static bool has_text(struct event_query *q, const struct trace_event *e, struct span payload)
{
    const struct event_schema *s = event_schemas_get(&q->schemas, e->type);
    const struct event_visitor visitor = { .user = &q->text, .value = append_value };
    buffer_clear(&q->text);
    buffer_string(&q->text, event_schema_name(s));
    buffer_u8(&q->text, ' ');
    event_schema_visit(s, payload, &visitor);
    for (size_t i = 0; i < q->text.size; i++) /* of a text with a zero in it the rest counts too */
        if (!q->text.data[i])
            q->text.data[i] = ' ';
    buffer_u8(&q->text, 0);
    bool without = q->wish.text[0] == '!';
    bool has = !q->text.failed && strcasestr((const char *)q->text.data, q->wish.text + without);
    return has != without;
}

static bool event_wanted(struct event_query *q, const struct trace_event *e)
{
    const struct event_wish *w = &q->wish;
    if (e->time_ns < w->from_ns || (w->to_ns && e->time_ns >= w->to_ns))
        return false;
    if (!wanted_once(q, q->types, e->type, type_wanted) ||
        (w->who.process && !wanted_once(q, q->processes, e->process, process_wanted)) ||
        (w->who.thread && !wanted_once(q, q->threads, e->thread, thread_wanted)))
        return false;
    if (!w->condition_count && !w->text)
        return true;
    struct span payload = trace_event_payload(q->trace, e);
    return conditions_hold(q, e, payload) && (!w->text || has_text(q, e, payload));
}

void event_query_init(struct event_query *q, const struct trace *t, const struct event_wish *wish,
                      bool by_time)
{
    *q = (struct event_query){ .trace = t, .wish = *wish };
    event_schemas_init(&q->schemas, t);
    q->order = by_time ? order_by_time(t) : NULL;
    q->types = mem_alloc(t->event_types.count, 1);
    q->processes = mem_alloc(t->processes.count, 1);
    q->threads = mem_alloc(t->threads.count, 1);
    q->fields = mem_alloc(t->event_types.count * (wish->condition_count + 1), sizeof *q->fields);
    buffer_init(&q->text, QUERY_TEXT_MAX);
}

void event_query_done(struct event_query *q)
{
    event_schemas_done(&q->schemas);
    free(q->order);
    free(q->types);
    free(q->processes);
    free(q->threads);
    free(q->fields);
    buffer_done(&q->text);
}

uint32_t event_query_next(struct event_query *q)
{
    while (q->at + 1 < q->trace->events.count) {
        uint32_t event = q->order ? q->order[q->at] : (uint32_t)q->at + 1;
        q->at++;
        if (event_wanted(q, &q->trace->events.rows[event]))
            return event;
    }
    return 0;
}
