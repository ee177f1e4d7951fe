#include "analyse/request_ends.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "clr/provider_names.h"

struct numbering {
    struct request_ends *ends;
    struct told_events told;
    struct id_map open; /* by process and number: index in ends->rows and one */
};

static uint64_t number_hash(const struct request_end *row)
{
    return hash_pair(row->number, row->process);
}

static bool same_open(const void *ends, uint32_t id, const void *key)
{
    const struct request_end *row = &((const struct request_ends *)ends)->rows[id - 1], *wanted = key;
    return row->number == wanted->number && row->process == wanted->process && !row->stop_ns;
}

static void read_event(struct numbering *n, const struct told_event *e)
{
    struct request_ends *ends = n->ends;
    struct event_value value;
    if (!told_field(&n->told, e, "requestId", &value))
        return;
    struct request_end row = { .start_ns = e->time_ns,
                               .number = hash_bytes(value.bytes.data, value.bytes.size),
                               .process = e->process,
                               .thread = told_row(&n->told, e)->thread,
                               .event = e->event };
    if (e->id == HTTP_KESTREL_EVENT_STOP) {
        uint32_t id = id_map_find(&n->open, number_hash(&row), same_open, ends, &row);
        if (id)
            ends->rows[id - 1].stop_ns = e->time_ns;
        return;
    }
    ends->rows = mem_grow(ends->rows, &ends->capacity, ends->count + 1, sizeof *ends->rows);
    ends->rows[ends->count++] = row;
    id_map_add(&n->open, number_hash(&row), (uint32_t)ends->count);
}

static int end_compare(const void *a, const void *b)
{
    const struct request_end *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void request_ends_init(struct request_ends *ends, const struct trace *t, uint64_t from_ns, uint64_t to_ns)
{
    static const uint16_t ids[] = { HTTP_KESTREL_EVENT_START, HTTP_KESTREL_EVENT_STOP, 0 };
    struct numbering n = { .ends = ends };
    *ends = (struct request_ends){ 0 };
    told_events_init(&n.told, t,
                     &(struct told_choice){
                         .provider = HTTP_KESTREL_PROVIDER, .ids = ids, .from_ns = from_ns, .to_ns = to_ns });
    for (size_t i = 0; i < n.told.count; i++)
        read_event(&n, &n.told.rows[i]);
    id_map_done(&n.open);
    told_events_done(&n.told);
    if (ends->count)
        qsort(ends->rows, ends->count, sizeof *ends->rows, end_compare);
}

void request_ends_done(struct request_ends *ends)
{
    free(ends->rows);
}

/* The first on this thread from then on. */
static const struct request_end *next_on(const struct request_ends *ends, uint32_t thread, uint64_t time_ns)
{
    struct request_end wanted = { .thread = thread, .start_ns = time_ns };
    size_t low = 0, high = ends->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (end_compare(&ends->rows[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ends->count && ends->rows[low].thread == thread ? &ends->rows[low] : NULL;
}

uint64_t request_ends_of(const struct request_ends *ends, const struct trace *t, uint32_t event)
{
    const struct trace_event *row = &t->events.rows[event];
    const struct trace_event_activity *own = trace_event_activity(t, event);
    const struct request_end *next = row->thread ? next_on(ends, row->thread, row->time_ns) : NULL;
    const struct trace_event_activity *inner = next ? trace_event_activity(t, next->event) : NULL;
    bool is_it = own && inner && memcmp(inner->related, own->id, sizeof own->id) == 0;
    return is_it ? next->stop_ns : 0;
}
