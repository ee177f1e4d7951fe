#include "analyse/gc_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/runtime_events.h"

enum { COLLECTIONS_LEVEL = 4 };

/* An event that says something of collections. */
struct told_event {
    uint64_t time_ns;
    uint32_t process, id;
    uint8_t kind; /* enum runtime_event_kind */
};

static int told_compare(const void *a, const void *b)
{
    const struct told_event *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* By event type: enum runtime_event_kind. The caller frees. */
static uint8_t *kinds_of_types(const struct trace *t)
{
    uint8_t *kinds = mem_alloc(t->event_types.count, sizeof *kinds);
    for (size_t i = 1; i < t->event_types.count; i++) {
        const struct trace_event_type *type = &t->event_types.rows[i];
        kinds[i] = (uint8_t)runtime_event_kind_named(trace_string(t, type->provider), type->event_id);
    }
    return kinds;
}

/* The events by process and time. The caller frees. */
static struct told_event *told_events(const struct trace *t, size_t *out_count)
{
    AUTO_FREE uint8_t *kinds = kinds_of_types(t);
    struct told_event *told = mem_alloc(t->events.count, sizeof *told);
    size_t count = 0;
    for (uint32_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        uint8_t kind = kinds[row->type];
        if (kind >= RUNTIME_EVENT_GC_START && row->process)
            told[count++] = (struct told_event){ row->time_ns, row->process, i, kind };
    }
    qsort(told, count, sizeof *told, told_compare);
    *out_count = count;
    return told;
}

static void add_pause(struct gc_process *p, const struct gc_pause *pause)
{
    if (p->pause_count && p->pauses[p->pause_count - 1].over_ns > pause->from_ns)
        return; /* nobody can stop what stands still */
    p->pauses = mem_grow(p->pauses, &p->pause_capacity, p->pause_count + 1, sizeof *p->pauses);
    p->pauses[p->pause_count++] = *pause;
}

static void close_pause(struct gc_process *p, struct gc_pause *open, uint64_t time_ns)
{
    open->over_ns = time_ns;
    if (!open->to_ns)
        open->to_ns = time_ns;
    add_pause(p, open);
    open->from_ns = 0;
}

static void add_collection(struct gc_process *p, const struct trace *t, const struct trace_event *event)
{
    struct runtime_gc_start_event start;
    if (!runtime_gc_start_read(trace_event_payload(t, event), &start, NULL) ||
        start.generation >= GC_GENERATIONS)
        return;
    p->collections =
        mem_grow(p->collections, &p->collection_capacity, p->collection_count + 1, sizeof *p->collections);
    p->collections[p->collection_count++] = (struct gc_collection){
        .start_ns = event->time_ns,
        .generation = (uint8_t)start.generation,
        .background = start.type == RUNTIME_GC_BACKGROUND,
    };
}

static bool stops_for_collection(const struct trace *t, const struct trace_event *event)
{
    uint32_t reason;
    return runtime_suspend_begin_read(trace_event_payload(t, event), &reason, NULL) &&
           (reason == RUNTIME_SUSPEND_GC || reason == RUNTIME_SUSPEND_GC_PREP);
}

/* The events of one process, in time order. */
static void process_read(struct gc_process *p, const struct trace *t, const struct told_event *told,
                         size_t count)
{
    struct gc_pause open = { 0 }; /* from_ns 0: none is */
    for (size_t i = 0; i < count; i++) {
        const struct trace_event *event = &t->events.rows[told[i].id];
        switch ((enum runtime_event_kind)told[i].kind) {
        case RUNTIME_EVENT_GC_START:
            add_collection(p, t, event);
            break;
        case RUNTIME_EVENT_GC_END:
            if (open.from_ns && !open.to_ns && p->collection_count &&
                p->collections[p->collection_count - 1].start_ns >= open.from_ns)
                p->collections[p->collection_count - 1].background = false; /* nobody ran meanwhile */
            break;
        case RUNTIME_EVENT_SUSPEND_BEGIN:
            if (stops_for_collection(t, event))
                open = (struct gc_pause){ .from_ns = event->time_ns, .thread = event->thread };
            break;
        case RUNTIME_EVENT_RESTART_BEGIN:
            if (open.from_ns && open.thread == event->thread)
                open.to_ns = event->time_ns;
            break;
        case RUNTIME_EVENT_RESTART_END:
            if (open.from_ns && open.thread == event->thread)
                close_pause(p, &open, event->time_ns);
            break;
        default:
            break;
        }
    }
    if (open.from_ns && p->told_to_ns != UINT64_MAX && p->told_to_ns > open.from_ns)
        close_pause(p, &open, p->told_to_ns);
}

/* When each process told of its collections: several sessions with one count as one. */
static void read_subscriptions(struct gc_history *history)
{
    const struct trace *t = history->trace;
    for (size_t i = 1; i < t->subscriptions.count; i++) {
        const struct trace_subscription *row = &t->subscriptions.rows[i];
        struct gc_process *p = &history->processes[row->process];
        uint64_t to_ns = row->to_ns ? row->to_ns : UINT64_MAX;
        if (!row->process || !(row->keywords & RUNTIME_KEYWORD_GC) || row->level < COLLECTIONS_LEVEL ||
            strcmp(trace_string(t, row->provider), RUNTIME_PROVIDER) != 0 || row->from_ns >= to_ns)
            continue;
        bool first = p->told_from_ns == p->told_to_ns;
        p->told_from_ns = first || row->from_ns < p->told_from_ns ? row->from_ns : p->told_from_ns;
        p->told_to_ns = to_ns > p->told_to_ns ? to_ns : p->told_to_ns;
        history->told = true;
    }
}

void gc_history_init(struct gc_history *history, const struct trace *t)
{
    *history = (struct gc_history){ .trace = t };
    if (t->subscriptions.count <= 1)
        return;
    history->process_count = t->processes.count;
    history->processes = mem_alloc(t->processes.count, sizeof *history->processes);
    read_subscriptions(history);
    size_t count;
    AUTO_FREE struct told_event *told = told_events(t, &count);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && told[to].process == told[from].process;)
            to++;
        process_read(&history->processes[told[from].process], t, told + from, to - from);
    }
}

void gc_history_done(struct gc_history *history)
{
    for (size_t i = 0; i < history->process_count; i++) {
        free(history->processes[i].pauses);
        free(history->processes[i].collections);
    }
    free(history->processes);
}

enum gc_time gc_history_at(struct gc_history *history, uint32_t thread, uint64_t time_ns)
{
    struct gc_process *p = &history->processes[history->trace->threads.rows[thread].process];
    if (time_ns < p->told_from_ns || time_ns >= p->told_to_ns)
        return GC_TIME_UNTOLD;
    while (p->at < p->pause_count && p->pauses[p->at].over_ns <= time_ns)
        p->at++;
    while (p->at > 0 && p->pauses[p->at - 1].over_ns > time_ns)
        p->at--;
    if (p->at == p->pause_count || p->pauses[p->at].from_ns > time_ns)
        return GC_TIME_NONE;
    return p->pauses[p->at].thread == thread ? GC_TIME_OWN : GC_TIME_OTHERS;
}

/* How much of one stretch lies in the other. */
static uint64_t overlap_ns(uint64_t from_ns, uint64_t to_ns, uint64_t other_from_ns, uint64_t other_to_ns)
{
    uint64_t from = from_ns > other_from_ns ? from_ns : other_from_ns;
    uint64_t to = to_ns < other_to_ns ? to_ns : other_to_ns;
    return to > from ? to - from : 0;
}

static void sum_process(const struct gc_process *p, uint64_t from_ns, uint64_t to_ns, struct gc_summary *sum)
{
    sum->processes++;
    sum->told_ns += overlap_ns(from_ns, to_ns, p->told_from_ns, p->told_to_ns);
    for (size_t i = 0; i < p->collection_count; i++) {
        const struct gc_collection *one = &p->collections[i];
        if (one->start_ns < from_ns || one->start_ns >= to_ns)
            continue;
        sum->collections[one->generation]++;
        sum->background += one->background;
    }
    for (size_t i = 0; i < p->pause_count; i++) {
        uint64_t paused_ns = overlap_ns(from_ns, to_ns, p->pauses[i].from_ns, p->pauses[i].to_ns);
        sum->pauses += paused_ns != 0;
        sum->paused_ns += paused_ns;
        if (paused_ns > sum->longest_ns)
            sum->longest_ns = paused_ns;
    }
}

struct gc_summary gc_history_summary(const struct gc_history *history, uint64_t from_ns, uint64_t to_ns)
{
    struct gc_summary sum = { 0 };
    for (size_t i = 0; i < history->process_count; i++) {
        const struct gc_process *p = &history->processes[i];
        if (p->told_from_ns != p->told_to_ns)
            sum_process(p, from_ns, to_ns, &sum);
    }
    return sum;
}
