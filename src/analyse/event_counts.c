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

/* What lies outside counts for the first or last one. */
static size_t slice_of(uint64_t time_ns, uint64_t from_ns, uint64_t duration_ns)
{
    if (time_ns <= from_ns)
        return 0;
    double share = (double)(time_ns - from_ns) / (double)duration_ns;
    size_t slice = share < 1 ? (size_t)(share * EVENT_COUNTS_SLICES) : EVENT_COUNTS_SLICES;
    return slice < EVENT_COUNTS_SLICES ? slice : EVENT_COUNTS_SLICES - 1;
}

/* What was counted when the trace was made. */
static void count_counted(const struct trace *t, uint32_t type, uint64_t from_ns, uint64_t duration_ns,
                          struct event_count *out)
{
    const struct trace_event_type *row = &t->event_types.rows[type];
    out->count = row->counted;
    out->with_stack = row->counted_with_stack;
    out->payload_bytes = row->counted_bytes;
    if (type >= t->course.count || !duration_ns)
        return;
    for (size_t i = 0; i < EVENT_COURSE_SLICES; i++)
        out->when[slice_of(event_course_time(&t->course, i), from_ns, duration_ns)] +=
            t->course.rows[type][i];
}

/* By type of the trace. */
static struct event_count *count_types(struct event_query *q, uint64_t from_ns, uint64_t duration_ns)
{
    const struct trace *t = q->trace;
    struct event_count *rows = mem_alloc(t->event_types.count, sizeof *rows);
    for (uint32_t type = 1; type < t->event_types.count; type++)
        count_counted(t, type, from_ns, duration_ns, &rows[type]);
    for (uint32_t event = event_query_next(q); event; event = event_query_next(q)) {
        const struct trace_event *e = &t->events.rows[event];
        rows[e->type].count++;
        rows[e->type].with_stack += e->stack >= STACK_ROOTS;
        rows[e->type].payload_bytes += e->payload_bytes;
        if (duration_ns)
            rows[e->type].when[slice_of(e->time_ns, from_ns, duration_ns)]++;
    }
    return rows;
}

static void count_add(struct event_count *sum, const struct event_count *row)
{
    sum->count += row->count;
    sum->with_stack += row->with_stack;
    sum->payload_bytes += row->payload_bytes;
    for (size_t i = 0; i < EVENT_COUNTS_SLICES; i++)
        sum->when[i] += row->when[i];
}

size_t event_counts_take(struct event_query *q, uint64_t from_ns, uint64_t duration_ns,
                         struct event_count **out_rows)
{
    const struct trace *t = q->trace;
    struct event_count *rows = count_types(q, from_ns, duration_ns);
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
        if (kept && count_compare(&rows[kept - 1], &rows[i]) == 0)
            count_add(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    }
    *out_rows = rows;
    return kept;
}
