#include "analyse/work_stretches.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/event_schemas.h"
#include "base/mem.h"
#include "clr/provider_names.h"

/* What a thread was in after its last event. */
struct open_work {
    uint64_t from_ns;
    struct activity_path path;
};

struct reading {
    struct work_stretches *work;
    const struct trace *t;
    const struct activity_parents *parents;
    struct open_work *open; /* by thread */
    bool *sets;             /* by type of event: it tells what a thread takes up */
    uint8_t *edges;         /* by type: enum event_opcode */
    size_t activity;        /* row of the trace's, of the last event that was looked at */
};

bool work_stretches_wants(const char *provider, uint32_t event_id)
{
    return event_id == TASKS_EVENT_SET_ACTIVITY && strcmp(provider, TASKS_PROVIDER) == 0;
}

static void find_types(struct reading *r)
{
    const struct trace *t = r->t;
    for (uint32_t i = 1; i < t->event_types.count; i++) {
        r->edges[i] = (uint8_t)event_type_edge(t, i);
        r->sets[i] = work_stretches_wants(trace_string(t, t->event_types.rows[i].provider),
                                          t->event_types.rows[i].event_id);
    }
    for (size_t i = 1; i < t->events.count; i++)
        if (r->sets[t->events.rows[i].type])
            r->work->told[t->events.rows[i].process] = true;
}

static void end_work(struct reading *r, const struct trace_event *row, uint64_t to_ns)
{
    struct work_stretches *w = r->work;
    struct open_work *open = &r->open[row->thread];
    if (activity_path_is_none(&open->path) || to_ns <= open->from_ns)
        return;
    w->rows = mem_grow(w->rows, &w->capacity, w->count + 1, sizeof *w->rows);
    w->rows[w->count++] = (struct work_stretch){ .from_ns = open->from_ns,
                                                 .to_ns = to_ns,
                                                 .process = row->process,
                                                 .thread = row->thread,
                                                 .path = open->path };
}

/* What a program sets by itself does not end what it is part of. */
static void on_set(struct reading *r, const struct trace_event *row)
{
    static const uint8_t none[ACTIVITY_ID_BYTES];
    struct span payload = trace_event_payload(r->t, row);
    struct activity_path path = { { 0 } };
    if (payload.size < ACTIVITY_ID_BYTES)
        return;
    if (memcmp(payload.data, none, sizeof none) != 0 && !activity_path_read(payload.data, &path))
        return;
    end_work(r, row, row->time_ns);
    r->open[row->thread] = (struct open_work){ row->time_ns, path };
}

static const struct trace_event_activity *activity_of(struct reading *r, uint32_t event)
{
    const struct trace *t = r->t;
    while (r->activity < t->event_activities.count && t->event_activities.rows[r->activity].event < event)
        r->activity++;
    bool found =
        r->activity < t->event_activities.count && t->event_activities.rows[r->activity].event == event;
    return found ? &t->event_activities.rows[r->activity] : NULL;
}

/* Before an activity's begin, and after its end, a thread is in what it was begun in. */
static void on_any(struct reading *r, const struct trace_event *row, uint32_t event)
{
    const struct trace_event_activity *activity = activity_of(r, event);
    struct activity_path before = { { 0 } };
    if (activity && !activity_path_read(activity->id, &before))
        before = (struct activity_path){ { 0 } };
    struct activity_path after = before;
    if (r->edges[row->type] == EVENT_OPCODE_START)
        before = activity_parents_of(r->parents, row->process, &before);
    else if (r->edges[row->type] == EVENT_OPCODE_STOP)
        after = activity_parents_of(r->parents, row->process, &after);
    struct open_work *open = &r->open[row->thread];
    if (memcmp(&open->path, &before, sizeof before) == 0)
        end_work(r, row, row->time_ns);
    *open = (struct open_work){ row->time_ns, after };
}

/* What goes on at the end of the trace, or of its thread. */
static void end_all(struct reading *r)
{
    const struct trace *t = r->t;
    for (uint32_t i = 1; i < t->threads.count; i++) {
        const struct trace_thread *thread = &t->threads.rows[i];
        if (r->work->told[thread->process])
            end_work(r, &(struct trace_event){ .process = thread->process, .thread = i },
                     thread->to_ns ? thread->to_ns : UINT64_MAX);
    }
}

static int stretch_compare(const void *a, const void *b)
{
    const struct work_stretch *x = a, *y = b;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

void work_stretches_init(struct work_stretches *work, const struct trace *t,
                         const struct activity_parents *parents)
{
    *work = (struct work_stretches){ 0 };
    struct reading r = { .work = work, .t = t, .parents = parents, .activity = 1 };
    work->told = mem_alloc(t->processes.count + 1, sizeof *work->told);
    r.open = mem_alloc(t->threads.count + 1, sizeof *r.open);
    r.sets = mem_alloc(t->event_types.count + 1, sizeof *r.sets);
    r.edges = mem_alloc(t->event_types.count + 1, sizeof *r.edges);
    find_types(&r);
    for (uint32_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        if (!row->thread)
            continue;
        if (!work->told[row->process])
            on_any(&r, row, i);
        else if (r.sets[row->type])
            on_set(&r, row);
    }
    end_all(&r);
    if (work->count)
        qsort(work->rows, work->count, sizeof *work->rows, stretch_compare);
    free(r.open);
    free(r.sets);
    free(r.edges);
}

void work_stretches_done(struct work_stretches *work)
{
    free(work->rows);
    free(work->told);
}
