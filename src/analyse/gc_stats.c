#include "analyse/gc_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/gc_sizes.h"
#include "analyse/told_events.h"
#include "base/mem.h"
#include "clr/runtime_events.h"

enum { GC_LEVEL = 4, NONE = UINT32_MAX };

static const uint16_t gc_ids[] = {
    GC_EVENT_START,
    GC_EVENT_END,
    GC_EVENT_RESTART_END,
    GC_EVENT_HEAP_STATS,
    GC_EVENT_RESTART_BEGIN,
    GC_EVENT_SUSPEND_END,
    GC_EVENT_SUSPEND_BEGIN,
    GC_EVENT_ALLOCATION_TICK,
    GC_EVENT_FINALIZE_OBJECT,
    GC_EVENT_PINNED_OBJECT,
    GC_EVENT_TRIGGERED,
    GC_EVENT_MARKED,
    GC_EVENT_HEAP_HISTORY,
    GC_EVENT_GLOBAL_HISTORY,
    0,
};

/* Threads are stopped for a collection, by this thread, until it lets them go. */
struct suspension {
    uint32_t thread; /* 0: nobody does */
    bool is_prep;    /* for a later pause of one in the background */
    uint64_t from_ns, stopped_ns, to_ns;
    uint64_t over_ns; /* all collections that began in it are over since then; 0: one goes on */
    uint32_t going;   /* collections that began in it and go on */
    size_t first_row; /* collections that began in it are rows from here on */
};

/* A process's events, one after the other. */
struct gc_reading {
    struct gc_stats *stats;
    const struct told_events *told;
    struct gc_process_stats *process;
    struct suspension gc, prep;             /* both can be under way: one waits for the other */
    size_t background;                      /* row of the one that goes on, or SIZE_MAX */
    size_t last_background;                 /* row of the last one, that events may still be of */
    uint32_t trigger_thread, trigger_stack; /* of the one that begins next */
    uint64_t tick_small, tick_large;
    bool ticks;
};

static struct gc_record *row_at(struct gc_reading *r, size_t row)
{
    return row == SIZE_MAX ? NULL : &r->stats->rows[row];
}

static struct gc_record *last_row(struct gc_reading *r)
{
    size_t count = r->stats->row_count;
    return count > r->process->first ? &r->stats->rows[count - 1] : NULL;
}

/* The collection that an event without a number is of. */
static struct gc_record *current_row(struct gc_reading *r)
{
    struct gc_record *last = last_row(r);
    if (last && !last->complete && !last->end_ns)
        return last;
    if (last && !last->has_stats && last->kind != GC_KIND_BACKGROUND)
        return last;
    return row_at(r, r->background != SIZE_MAX ? r->background : r->last_background);
}

static void on_suspend_begin(struct gc_reading *r, const struct told_event *e)
{
    uint32_t reason;
    if (!runtime_suspend_begin_read(told_payload(r->told, e), &reason, NULL)) {
        r->stats->malformed++;
        return;
    }
    if (reason != RUNTIME_SUSPEND_GC && reason != RUNTIME_SUSPEND_GC_PREP)
        return;
    struct suspension *s = reason == RUNTIME_SUSPEND_GC ? &r->gc : &r->prep;
    *s = (struct suspension){
        .thread = told_row(r->told, e)->thread,
        .is_prep = reason == RUNTIME_SUSPEND_GC_PREP,
        .from_ns = e->time_ns,
        .first_row = r->stats->row_count,
    };
}

/* The suspension this thread is at, or NULL. */
static struct suspension *suspension_of(struct gc_reading *r, const struct told_event *e)
{
    uint32_t thread = told_row(r->told, e)->thread;
    if (r->gc.from_ns && r->gc.thread == thread)
        return &r->gc;
    return r->prep.from_ns && r->prep.thread == thread ? &r->prep : NULL;
}

/* The one in which threads stand still: of two, the one that is through with stopping them. */
static struct suspension *suspension_open(struct gc_reading *r)
{
    if (r->gc.from_ns && (r->gc.stopped_ns || !r->prep.from_ns))
        return &r->gc;
    return r->prep.from_ns ? &r->prep : NULL;
}

static void on_start(struct gc_reading *r, const struct told_event *e)
{
    struct runtime_gc_start_event start;
    if (!runtime_gc_start_read(told_payload(r->told, e), &start, NULL) || start.generation > 2) {
        r->stats->malformed++;
        return;
    }
    struct suspension *s = suspension_open(r);
    struct gc_stats *stats = r->stats;
    if (s) {
        s->over_ns = 0;
        s->going++;
    }
    stats->rows = mem_grow(stats->rows, &stats->row_capacity, stats->row_count + 1, sizeof *stats->rows);
    struct gc_record *row = &stats->rows[stats->row_count++];
    *row = (struct gc_record){
        .process = e->process,
        .number = start.number,
        .reason = start.reason,
        .generation = (uint8_t)start.generation,
        .kind = start.type <= GC_KIND_FOREGROUND ? (uint8_t)start.type : GC_KIND_BLOCKING,
        .start_ns = e->time_ns,
        .pause_from_ns = s ? s->from_ns : e->time_ns,
        .trigger_thread = r->trigger_thread,
        .trigger_stack = r->trigger_stack,
    };
    r->trigger_thread = r->trigger_stack = 0;
    if (row->kind == GC_KIND_BACKGROUND)
        r->background = r->last_background = stats->row_count - 1;
}

static void on_end(struct gc_reading *r, const struct told_event *e)
{
    struct runtime_gc_end_event end;
    if (!runtime_gc_end_read(told_payload(r->told, e), &end, NULL)) {
        r->stats->malformed++;
        return;
    }
    for (size_t i = r->stats->row_count; i-- > r->process->first;) {
        struct gc_record *row = &r->stats->rows[i];
        if (row->number != end.number || row->end_ns)
            continue;
        row->end_ns = e->time_ns;
        struct suspension *s = suspension_open(r);
        if (i == r->background && !s)
            r->background = SIZE_MAX;
        if (s && i >= s->first_row && s->going && --s->going == 0)
            s->over_ns = e->time_ns;
        return;
    }
}

static void on_heap_stats(struct gc_reading *r, const struct told_event *e)
{
    struct gc_record *row = NULL;
    for (size_t i = r->stats->row_count; i-- > r->process->first && !row;)
        if (r->stats->rows[i].end_ns && !r->stats->rows[i].has_stats)
            row = &r->stats->rows[i];
    if (!row)
        return;
    if (!gc_heap_stats_read(told_payload(r->told, e), &row->stats, NULL)) {
        r->stats->malformed++;
        return;
    }
    row->has_stats = true;
    for (unsigned i = 0; i < GC_EVENT_GENS; i++) {
        row->heap_after += row->stats.size_bytes[i];
        row->promoted += row->stats.promoted_bytes[i];
    }
    row->has_ticks = r->ticks;
    row->tick_small_bytes = r->tick_small;
    row->tick_large_bytes = r->tick_large;
    r->tick_small = r->tick_large = 0;
}

/* The first pause of collections: of one or, when one in the background lets another go first, of two. */
static void share_pause(struct gc_reading *r, const struct suspension *s)
{
    struct gc_record *rows = r->stats->rows + s->first_row;
    size_t count = r->stats->row_count - s->first_row, main = 0;
    uint64_t left_ns = s->to_ns - s->from_ns;
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind == GC_KIND_BACKGROUND)
            main = i;
    for (size_t i = 0; i < count; i++) {
        struct gc_record *row = &rows[i];
        if (i == main)
            continue;
        uint64_t own_ns = row->end_ns > row->start_ns ? row->end_ns - row->start_ns : 0;
        row->pause_ns = own_ns < left_ns ? own_ns : left_ns;
        row->pause_from_ns = row->start_ns;
        row->pauses = 1;
        row->complete = row->end_ns != 0;
        left_ns -= row->pause_ns;
    }
    struct gc_record *row = &rows[main];
    row->pause_ns += left_ns;
    row->suspend_ns += s->stopped_ns ? s->stopped_ns - s->from_ns : 0;
    row->pauses++;
    if (row->kind == GC_KIND_BACKGROUND && row->end_ns) { /* it never was in the background */
        row->kind = GC_KIND_BLOCKING;
        row->turned_blocking = true;
        if (r->background == s->first_row + main)
            r->background = SIZE_MAX;
    }
    row->complete = row->kind != GC_KIND_BACKGROUND && row->end_ns;
}

/* A later pause of the one in the background. */
static bool add_pause(struct gc_reading *r, const struct suspension *s)
{
    struct gc_record *row = row_at(r, r->background != SIZE_MAX ? r->background : r->last_background);
    if (!row || row->kind != GC_KIND_BACKGROUND || (row->end_ns && row->end_ns < s->from_ns))
        return false;
    row->final_pause_ns = s->to_ns - s->from_ns;
    row->pause_ns += row->final_pause_ns;
    row->suspend_ns += s->stopped_ns ? s->stopped_ns - s->from_ns : 0;
    row->pauses++;
    return true;
}

static void on_restarted(struct gc_reading *r, const struct told_event *e)
{
    struct suspension *s = suspension_of(r, e);
    if (!s)
        return;
    if (!s->to_ns)
        s->to_ns = e->time_ns;
    if (s->first_row < r->stats->row_count) {
        share_pause(r, s);
    } else if (!s->is_prep || !add_pause(r, s)) {
        r->process->other_pauses++;
        r->process->other_pause_ns += s->to_ns - s->from_ns;
    }
    *s = (struct suspension){ 0 };
}

static void on_heap_history(struct gc_reading *r, const struct told_event *e)
{
    struct gc_record *row = current_row(r);
    struct gc_stats *stats = r->stats;
    struct gc_heap_history_event told;
    if (!row)
        return;
    if (!gc_heap_history_read(told_payload(r->told, e), told_pointer_size(r->told, e), &told, NULL) ||
        stats->heap_count == UINT32_MAX) {
        stats->malformed++;
        return;
    }
    if (!stats->heap_count)
        stats->heap_count = 1;
    stats->heaps = mem_grow(stats->heaps, &stats->heap_capacity, stats->heap_count + 1, sizeof *stats->heaps);
    stats->heaps[stats->heap_count] = (struct gc_heap_record){ .told = told, .next = row->first_heap };
    row->first_heap = (uint32_t)stats->heap_count++;
    row->heaps++;
}

static void on_global_history(struct gc_reading *r, const struct told_event *e)
{
    struct gc_record *row = current_row(r);
    if (row && !gc_global_history_read(told_payload(r->told, e), &row->history, NULL)) {
        r->stats->malformed++;
        return;
    }
    if (row)
        row->has_history = true;
}

static void on_marked(struct gc_reading *r, const struct told_event *e)
{
    struct gc_record *row = current_row(r);
    struct gc_marked_event told;
    if (!gc_marked_read(told_payload(r->told, e), &told, NULL)) {
        r->stats->malformed++;
    } else if (row && told.root_kind < GC_EVENT_ROOTS) {
        row->root_bytes[told.root_kind] += told.promoted_bytes;
        row->has_roots = true;
    }
}

static void on_pinned(struct gc_reading *r, const struct told_event *e)
{
    struct gc_record *row = current_row(r);
    struct gc_pinned_event told;
    if (!gc_pinned_read(told_payload(r->told, e), told_pointer_size(r->told, e), &told, NULL)) {
        r->stats->malformed++;
    } else if (row) {
        row->has_pins = true;
        row->pinned_bytes += told.size_bytes;
    }
}

static void on_tick(struct gc_reading *r, const struct told_event *e)
{
    struct gc_allocation_tick_event told;
    if (!gc_allocation_tick_read(told_payload(r->told, e), told_pointer_size(r->told, e), &told, NULL)) {
        r->stats->malformed++;
        return;
    }
    r->ticks = true;
    if (told.kind == GC_ALLOCATION_SMALL)
        r->tick_small += told.bytes;
    else
        r->tick_large += told.bytes;
}

static void read_event(struct gc_reading *r, const struct told_event *e)
{
    struct suspension *s;
    switch ((enum gc_event_id)e->id) {
    case GC_EVENT_SUSPEND_BEGIN:
        on_suspend_begin(r, e);
        break;
    case GC_EVENT_SUSPEND_END:
        s = suspension_of(r, e);
        if (s)
            s->stopped_ns = e->time_ns;
        break;
    case GC_EVENT_RESTART_BEGIN:
        s = suspension_of(r, e);
        if (s) /* the runtime looks at its clock when a collection is over, then tells of it for some
                  microseconds */
            s->to_ns = s->over_ns ? s->over_ns : e->time_ns;
        break;
    case GC_EVENT_RESTART_END:
        on_restarted(r, e);
        break;
    case GC_EVENT_TRIGGERED:
        r->trigger_thread = told_row(r->told, e)->thread;
        r->trigger_stack = told_row(r->told, e)->stack;
        break;
    case GC_EVENT_START:
        on_start(r, e);
        break;
    case GC_EVENT_END:
        on_end(r, e);
        break;
    case GC_EVENT_HEAP_STATS:
        on_heap_stats(r, e);
        break;
    case GC_EVENT_HEAP_HISTORY:
        on_heap_history(r, e);
        break;
    case GC_EVENT_GLOBAL_HISTORY:
        on_global_history(r, e);
        break;
    case GC_EVENT_MARKED:
        on_marked(r, e);
        break;
    case GC_EVENT_PINNED_OBJECT:
        on_pinned(r, e);
        break;
    case GC_EVENT_ALLOCATION_TICK:
        on_tick(r, e);
        break;
    case GC_EVENT_FINALIZE_OBJECT:
        r->process->finalized++;
        break;
    case GC_EVENT_BULK_TYPE:
    case GC_EVENT_ALLOCATION_SAMPLED:
        break;
    }
}

/* What only the whole process's rows tell. */
static void finish_rows(struct gc_reading *r)
{
    struct gc_record *rows = r->stats->rows + r->process->first;
    size_t count = r->process->count;
    uint64_t over_ns = 0; /* the end of the last pause */
    for (size_t i = 0; i < count; i++) {
        struct gc_record *row = &rows[i];
        if (row->kind == GC_KIND_BACKGROUND)
            row->complete = row->end_ns && row->pauses;
        row->since_last_ns = over_ns && row->pause_from_ns > over_ns ? row->pause_from_ns - over_ns : 0;
        uint64_t to_ns = row->kind == GC_KIND_BACKGROUND ? row->end_ns : row->pause_from_ns + row->pause_ns;
        over_ns = to_ns > over_ns ? to_ns : over_ns;
    }
    gc_sizes_fill(r->stats, rows, count);
}

static void sum_row(struct gc_sum *sum, const struct gc_record *row)
{
    /* a heap can be larger after a collection in the background: the program allocates meanwhile */
    bool grew = row->has_before && row->has_stats && row->heap_after > row->peak;
    uint64_t most = grew ? row->heap_after : row->peak;
    sum->count++;
    sum->induced += gc_reason_is_induced(row->reason);
    sum->background += row->kind == GC_KIND_BACKGROUND;
    sum->with_stats += row->has_stats;
    sum->with_allocated += row->has_allocated;
    sum->pause_ns += row->pause_ns;
    sum->pause_max_ns = row->pause_ns > sum->pause_max_ns ? row->pause_ns : sum->pause_max_ns;
    sum->suspend_ns += row->suspend_ns;
    sum->suspend_max_ns = row->suspend_ns > sum->suspend_max_ns ? row->suspend_ns : sum->suspend_max_ns;
    sum->peak_max = most > sum->peak_max ? most : sum->peak_max;
    sum->promoted += row->promoted;
    sum->allocated += row->allocated;
    sum->pinned += row->stats.pinned_count;
    double rate = row->has_allocated && row->since_last_ns
                      ? (double)row->allocated * 1e9 / (double)row->since_last_ns
                      : 0;
    sum->allocated_per_s_max = rate > sum->allocated_per_s_max ? rate : sum->allocated_per_s_max;
}

static void read_process(struct gc_stats *stats, const struct told_events *told,
                         const struct told_event *events, size_t count)
{
    stats->processes = mem_grow(stats->processes, &stats->process_capacity, stats->process_count + 1,
                                sizeof *stats->processes);
    struct gc_process_stats *process = &stats->processes[stats->process_count++];
    *process = (struct gc_process_stats){ .process = events->process, .first = stats->row_count };
    struct gc_reading r = {
        .stats = stats, .told = told, .process = process, .background = SIZE_MAX, .last_background = SIZE_MAX
    };
    for (size_t i = 0; i < count; i++)
        read_event(&r, &events[i]);
    process->count = stats->row_count - process->first;
    finish_rows(&r);
    for (size_t i = process->first; i < stats->row_count; i++) {
        const struct gc_record *row = &stats->rows[i];
        process->incomplete += !row->complete;
        if (row->complete) {
            sum_row(&process->all, row);
            sum_row(&process->by_generation[row->generation], row);
        }
    }
}

bool gc_stats_wants(const char *provider, uint32_t event_id)
{
    return strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(gc_ids, event_id);
}

void gc_stats_init(struct gc_stats *stats, const struct trace *t, uint64_t from_ns, uint64_t to_ns)
{
    *stats = (struct gc_stats){ .trace = t };
    struct told_events told;
    told_events_init(&told, t,
                     &(struct told_choice){
                         .provider = RUNTIME_PROVIDER, .ids = gc_ids, .from_ns = from_ns, .to_ns = to_ns });
    const struct told_event *events;
    for (size_t at = 0, count; (count = told_events_process(&told, &at, &events)) > 0;)
        read_process(stats, &told, events, count);
    stats->any = told.count != 0;
    told_events_done(&told);
}

void gc_stats_done(struct gc_stats *stats)
{
    free(stats->rows);
    free(stats->heaps);
    free(stats->processes);
}

bool gc_record_pause_share(const struct gc_record *r, double *out)
{
    if (!r->since_last_ns)
        return false;
    *out = (double)r->pause_ns / (double)(r->pause_ns + r->since_last_ns);
    return true;
}

void gc_record_label(const struct gc_record *r, char out[8])
{
    static const char kinds[] = { 'N', 'B', 'F' };
    bool forced = r->reason != 7;
    snprintf(out, 8, "%u%c%s", (unsigned)r->generation, kinds[r->kind],
             !gc_reason_is_induced(r->reason) ? ""
             : forced                         ? "I"
                                              : "i");
}
