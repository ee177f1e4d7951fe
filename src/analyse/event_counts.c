#include "analyse/event_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int count_compare(const void *a, const void *b)
{
    const struct event_count *x = a, *y = b;
    int order = strcmp(x->provider, y->provider);
    if (!order)
        order = strcmp(x->event, y->event);
    if (!order)
        order = (x->id > y->id) - (x->id < y->id);
    return order ? order : (x->version > y->version) - (x->version < y->version);
}

/* By type of the trace. */
static struct event_count *count_types(struct event_query *q)
{
    const struct trace *t = q->trace;
    struct event_count *rows = mem_alloc(t->event_types.count, sizeof *rows);
    for (uint32_t type = 1; type < t->event_types.count; type++) {
        const struct trace_event_type *row = &t->event_types.rows[type];
        rows[type].count = row->counted;
        rows[type].with_stack = row->counted_with_stack;
        rows[type].payload_bytes = row->counted_bytes;
    }
    for (uint32_t event = event_query_next(q); event; event = event_query_next(q)) {
        const struct trace_event *e = &t->events.rows[event];
        rows[e->type].count++;
        rows[e->type].with_stack += e->stack >= STACK_ROOTS;
        rows[e->type].payload_bytes += e->payload_bytes;
    }
    return rows;
}

size_t event_counts_take(struct event_query *q, struct event_count **out_rows)
{
    const struct trace *t = q->trace;
    struct event_count *rows = count_types(q);
    size_t count = 0;
    for (uint32_t type = 0; type < t->event_types.count; type++) {
        if (!rows[type].count)
            continue;
        struct event_count row = rows[type];
        row.provider = trace_string(t, t->event_types.rows[type].provider);
        row.event = event_schema_name(event_schemas_get(&q->schemas, type));
        row.id = t->event_types.rows[type].event_id;
        row.version = t->event_types.rows[type].version;
        rows[count++] = row;
    }
    qsort(rows, count, sizeof *rows, count_compare);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept && count_compare(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].count += rows[i].count;
            rows[kept - 1].with_stack += rows[i].with_stack;
            rows[kept - 1].payload_bytes += rows[i].payload_bytes;
        } else {
            rows[kept++] = rows[i];
        }
    }
    *out_rows = rows;
    return kept;
}
