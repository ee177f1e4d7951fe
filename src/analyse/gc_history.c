#include "analyse/gc_history.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/told_events.h"
#include "base/mem.h"
#include "clr/runtime_events.h"

enum { COLLECTIONS_LEVEL = 4 };

/* Of the runtime's provider: collections begin, end; threads are stopped, stand, are let go, run. */
static const uint16_t event_ids[] = { 1, 2, 9, 8, 7, 3, 0 };

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
static void process_read(struct gc_process *p, const struct trace *t, const struct told_event *rows,
                         size_t count)
{
    struct gc_pause open = { 0 }; /* from_ns 0: none is */
    for (size_t i = 0; i < count; i++) {
        const struct trace_event *event = &t->events.rows[rows[i].event];
        switch (runtime_event_kind_named(RUNTIME_PROVIDER, rows[i].id)) {
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
    struct told_events told;
    const struct told_event *rows;
    told_events_init(&told, t, &(struct told_choice){ .provider = RUNTIME_PROVIDER, .ids = event_ids });
    for (size_t at = 0, count; (count = told_events_process(&told, &at, &rows)) > 0;)
        if (rows->process)
            process_read(&history->processes[rows->process], t, rows, count);
    told_events_done(&told);
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

size_t gc_process_pause_behind(const struct gc_process *p, uint64_t time_ns)
{
    size_t low = 0, high = p->pause_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->pauses[middle].to_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t gc_process_paused_ns(const struct gc_process *p, uint64_t from_ns, uint64_t to_ns)
{
    size_t low = gc_process_pause_behind(p, from_ns);
    uint64_t sum = 0;
    for (; low < p->pause_count && p->pauses[low].from_ns < to_ns; low++)
        sum += overlap_ns(from_ns, to_ns, p->pauses[low].from_ns, p->pauses[low].to_ns);
    return sum;
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

struct gc_summary gc_history_summary(const struct gc_history *history, const struct thread_filter *who,
                                     uint64_t from_ns, uint64_t to_ns)
{
    struct gc_summary sum = { 0 };
    for (size_t i = 0; i < history->process_count; i++) {
        const struct gc_process *p = &history->processes[i];
        if (p->told_from_ns != p->told_to_ns &&
            (!who || thread_filter_wants_process(who, history->trace, (uint32_t)i)))
            sum_process(p, from_ns, to_ns, &sum);
    }
    return sum;
}
