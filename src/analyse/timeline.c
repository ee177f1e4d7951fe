#include "analyse/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analyse/exception_stats.h"
#include "analyse/gc_history.h"
#include "analyse/gc_stats.h"
#include "analyse/thrown_events.h"
#include "base/mem.h"
#include "clr/runtime_events.h"
#include "clr/type_name.h"

enum { TEXT_BYTES_MAX = 1024 };

bool timeline_wants(const char *provider, uint32_t event_id)
{
    return gc_stats_wants(provider, event_id) || exception_stats_wants(provider, event_id);
}

/* What is being built. */
struct building {
    struct timeline *out;
    const struct trace *t;
    const struct thread_filter *who;
    uint64_t start_ns, from_ns, to_ns;
};

static uint64_t since_start(const struct building *b, uint64_t time_ns)
{
    return time_ns > b->start_ns ? time_ns - b->start_ns : 0;
}

static bool is_asked(const struct building *b, uint32_t process, uint64_t time_ns)
{
    if (b->who && !thread_filter_wants_process(b->who, b->t, process))
        return false;
    return time_ns >= b->from_ns && (!b->to_ns || time_ns < b->to_ns);
}

/* `text` is the building's from then on, and empty again. */
static void add_mark(struct building *b, struct timeline_mark mark, struct buffer *text)
{
    struct timeline *out = b->out;
    mark.text = arena_string(&out->texts, buffer_span(text));
    buffer_clear(text);
    if (!mark.text || out->mark_count == TIMELINE_MARKS_MAX) {
        out->left_out++;
        return;
    }
    mark.from_ns = since_start(b, mark.from_ns);
    mark.to_ns = since_start(b, mark.to_ns);
    out->marks = mem_grow(out->marks, &out->mark_capacity, out->mark_count + 1, sizeof *out->marks);
    out->marks[out->mark_count++] = mark;
}

static void add_size(struct building *b, uint32_t pid, uint64_t time_ns, uint64_t bytes)
{
    struct timeline *out = b->out;
    out->sizes = mem_grow(out->sizes, &out->size_capacity, out->size_count + 1, sizeof *out->sizes);
    out->sizes[out->size_count++] =
        (struct timeline_size){ .time_ns = since_start(b, time_ns), .bytes = bytes, .pid = pid };
}

static void add_pauses(struct building *b, struct buffer *text)
{
    struct gc_history history;
    gc_history_init(&history, b->t);
    for (size_t process = 1; process < history.process_count; process++) {
        const struct gc_process *p = &history.processes[process];
        for (size_t i = 0; i < p->pause_count; i++) {
            const struct gc_pause *pause = &p->pauses[i];
            if (!is_asked(b, (uint32_t)process, pause->from_ns))
                continue;
            buffer_string(text, "all threads stand still for the collector");
            add_mark(b,
                     (struct timeline_mark){ .kind = TIMELINE_PAUSE,
                                             .from_ns = pause->from_ns,
                                             .to_ns = pause->to_ns,
                                             .pid = b->t->processes.rows[process].pid,
                                             .tid = b->t->threads.rows[pause->thread].tid },
                     text);
        }
    }
    gc_history_done(&history);
}

static void add_collection(struct building *b, const struct gc_record *row, struct buffer *text)
{
    static const char *const kinds[] = { "", " in the background", " during one in the background" };
    uint32_t pid = b->t->processes.rows[row->process].pid;
    const char *reason = gc_reason_name(row->reason);
    if (!row->complete || !is_asked(b, row->process, row->start_ns))
        return;
    buffer_format(text, "#%" PRIu32 " gen %u%s: %s", row->number, row->generation, kinds[row->kind],
                  reason ? reason : "unknown reason");
    uint64_t end_ns = row->end_ns > row->start_ns ? row->end_ns : row->start_ns;
    add_mark(b,
             (struct timeline_mark){
                 .kind = TIMELINE_COLLECTION, .from_ns = row->start_ns, .to_ns = end_ns, .pid = pid },
             text);
    if (row->has_before)
        add_size(b, pid, row->start_ns, row->heap_before);
    if (row->has_stats)
        add_size(b, pid, end_ns, row->heap_after);
}

static void add_collections(struct building *b, struct buffer *text)
{
    struct gc_stats stats;
    gc_stats_init(&stats, b->t, b->from_ns, b->to_ns);
    for (size_t i = 0; i < stats.row_count; i++)
        add_collection(b, &stats.rows[i], text);
    gc_stats_done(&stats);
}

static void add_exception(struct building *b, struct thrown_events *thrown, const struct told_event *e,
                          struct buffer *text)
{
    const struct trace_event *row = told_row(&thrown->told, e);
    bool again = thrown_events_again(thrown, e);
    if (!is_asked(b, row->process, row->time_ns))
        return;
    if (again)
        buffer_string(text, "thrown again: ");
    type_name_show_full(buffer_span(&thrown->type), text);
    if (runtime_text_is_told(buffer_span(&thrown->message))) {
        buffer_string(text, ": ");
        buffer_append(text, thrown->message.data, thrown->message.size);
    }
    add_mark(b,
             (struct timeline_mark){ .kind = TIMELINE_EXCEPTION,
                                     .from_ns = row->time_ns,
                                     .to_ns = row->time_ns,
                                     .pid = b->t->processes.rows[row->process].pid,
                                     .tid = b->t->threads.rows[row->thread].tid },
             text);
}

static void add_exceptions(struct building *b, struct buffer *text)
{
    struct thrown_events thrown;
    thrown_events_init(&thrown, b->t, b->from_ns, b->to_ns);
    for (size_t i = 0; i < thrown.told.count; i++)
        add_exception(b, &thrown, &thrown.told.rows[i], text);
    thrown_events_done(&thrown);
}

static int mark_compare(const void *a, const void *b)
{
    const struct timeline_mark *x = a, *y = b;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    if (x->to_ns != y->to_ns)
        return x->to_ns > y->to_ns ? -1 : 1; /* the longer one is around the other */
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static int size_compare(const void *a, const void *b)
{
    const struct timeline_size *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

void timeline_init(struct timeline *out, const struct trace *t, const struct thread_filter *who,
                   uint64_t start_ns, uint64_t from_ns, uint64_t to_ns)
{
    struct building b = { out, t, who, start_ns, from_ns, to_ns };
    struct buffer text;
    *out = (struct timeline){ 0 };
    arena_init(&out->texts, TIMELINE_TEXT_BYTES_MAX);
    if (t->events.count <= 1)
        return;
    buffer_init(&text, TEXT_BYTES_MAX);
    add_pauses(&b, &text);
    add_collections(&b, &text);
    add_exceptions(&b, &text);
    buffer_done(&text);
    if (out->mark_count)
        qsort(out->marks, out->mark_count, sizeof *out->marks, mark_compare);
    if (out->size_count)
        qsort(out->sizes, out->size_count, sizeof *out->sizes, size_compare);
}

void timeline_done(struct timeline *timeline)
{
    arena_done(&timeline->texts);
    free(timeline->marks);
    free(timeline->sizes);
    *timeline = (struct timeline){ 0 };
}

const char *timeline_kind_name(enum timeline_kind kind)
{
    static const char *const names[TIMELINE_KINDS] = { "GC pause", "GC", "exception" };
    return names[kind];
}
