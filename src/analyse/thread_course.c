#include "analyse/thread_course.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/alloc_stats.h"
#include "analyse/exception_stats.h"
#include "analyse/lock_stats.h"
#include "analyse/thrown_events.h"
#include "base/mem.h"
#include "base/own.h"
#include "clr/exception_events.h"
#include "clr/gc_events.h"
#include "clr/provider_names.h"
#include "clr/runtime_events.h"
#include "trace/facts.h"

enum mark_kind {
    MARK_SEEN, /* an event of its own */
    MARK_CPU,  /* a sample on a CPU; weighs nanoseconds */
    MARK_BLOCKED,
    MARK_READY,
    MARK_OFF,
    MARK_LOCK_BEGIN,
    MARK_LOCK_END,
    MARK_EXCEPTION,
    MARK_ALLOCATION, /* weighs bytes */
};

/* For how long a thread is taken to run without one sample of it. */
enum { UNSEEN_PERIODS_MAX = 16 };
#define UNSEEN_NS_MIN UINT64_C(20000000)

struct thread_mark {
    uint64_t time_ns;
    double weight;
    uint32_t thread;
    uint8_t kind;
    uint8_t state; /* enum thread_state, from here to the next mark */
};

struct course_reading {
    struct thread_course *course;
    size_t capacity;
    uint8_t *switch_kinds; /* by stack: enum mark_kind of a sample that left the CPU; 0: not looked at */
    uint8_t *event_kinds;  /* by type of event */
    bool *skipped;         /* by type: others tell it */
};

bool thread_course_wants(const char *provider, uint32_t event_id)
{
    return lock_stats_wants(provider, event_id) || exception_stats_wants(provider, event_id) ||
           alloc_stats_wants(provider, event_id) ||
           runtime_event_kind_named(provider, event_id) >= RUNTIME_EVENT_GC_START;
}

static void add_mark(struct course_reading *r, const struct thread_mark *mark)
{
    struct thread_course *c = r->course;
    c->marks = mem_grow(c->marks, &r->capacity, c->mark_count + 1, sizeof *c->marks);
    c->marks[c->mark_count++] = *mark;
}

/* The kernel's function that gave the CPU away, below the scheduler's own; NULL when that is not known. */
static const char *giver_of(const struct trace *t, uint32_t stack)
{
    static const char *const own[] = { "schedule", "__schedule" };
    for (uint32_t at = stack; at >= STACK_ROOTS; at = t->stacks.rows[at].parent) {
        uint32_t function = t->locations.rows[t->stacks.rows[at].location].function;
        if (t->functions.rows[function].kind != CODE_KERNEL)
            return NULL;
        const char *name = trace_string(t, t->functions.rows[function].name);
        if (strcmp(name, own[0]) != 0 && strcmp(name, own[1]) != 0)
            return name;
    }
    return NULL;
}

/* Whoever does not ask to be woken up stays ready to run. */
static enum mark_kind switch_kind(struct course_reading *r, uint32_t stack)
{
    static const char *const ready[] = { "exit_to_user_mode", "preempt_schedule", "cond_resched",
                                         "irqentry_exit", "sched_yield" };
    const struct trace *t = r->course->trace;
    if (r->switch_kinds[stack])
        return r->switch_kinds[stack];
    const char *giver = giver_of(t, stack);
    enum mark_kind kind = giver ? MARK_BLOCKED : MARK_OFF;
    for (size_t i = 0; giver && i < ARRAY_LEN(ready); i++)
        if (strstr(giver, ready[i]))
            kind = MARK_READY;
    r->switch_kinds[stack] = (uint8_t)kind;
    return kind;
}

static void add_samples(struct course_reading *r)
{
    struct thread_course *c = r->course;
    const struct trace_samples *s = &c->trace->samples;
    const char *counted = trace_fact_value(c->trace, FACT_COUNTED_EVENT);
    bool counts_switches = counted && strcmp(counted, "context-switches") == 0;
    for (size_t i = 0; i < s->count; i++) {
        struct thread_mark mark = { .time_ns = s->time_ns[i], .thread = s->thread[i] };
        if (s->kind[i] == SAMPLE_CPU) {
            mark.kind = MARK_CPU;
            mark.weight = (double)s->weight[i];
            c->has_cpu = true;
        } else if (s->kind[i] == SAMPLE_EVENT && counts_switches) {
            mark.kind = (uint8_t)switch_kind(r, s->stack[i]);
            c->has_switches = true;
        } else {
            continue;
        }
        add_mark(r, &mark);
    }
}

static enum mark_kind event_kind(const char *provider, uint32_t id)
{
    if (strcmp(provider, RUNTIME_PROVIDER) != 0)
        return MARK_SEEN;
    switch (id) {
    case LOCK_EVENT_CONTENTION_START:
        return MARK_LOCK_BEGIN;
    case LOCK_EVENT_CONTENTION_STOP:
        return MARK_LOCK_END;
    case EXCEPTION_EVENT_THROWN:
        return MARK_EXCEPTION;
    case GC_EVENT_ALLOCATION_TICK:
    case GC_EVENT_ALLOCATION_SAMPLED:
        return MARK_ALLOCATION;
    default:
        return MARK_SEEN;
    }
}

static void add_events(struct course_reading *r)
{
    struct thread_course *c = r->course;
    const struct trace *t = c->trace;
    for (size_t i = 1; i < t->event_types.count; i++) {
        const char *provider = trace_string(t, t->event_types.rows[i].provider);
        r->event_kinds[i] = (uint8_t)event_kind(provider, t->event_types.rows[i].event_id);
        r->skipped[i] = strcmp(provider, RUNTIME_SAMPLER_PROVIDER) == 0;
    }
    AUTO_FREE bool *thrown_again = thrown_events_all_again(t);
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        if (!row->thread || r->skipped[row->type])
            continue;
        struct thread_mark mark = { .time_ns = row->time_ns,
                                    .thread = row->thread,
                                    .kind = thrown_again[i] ? MARK_SEEN : r->event_kinds[row->type] };
        if (mark.kind == MARK_ALLOCATION)
            mark.weight = alloc_event_bytes(t, row);
        add_mark(r, &mark);
    }
}

static int mark_compare(const void *a, const void *b)
{
    const struct thread_mark *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static enum thread_state state_after(const struct thread_course *c, enum mark_kind kind)
{
    switch (kind) {
    case MARK_BLOCKED:
        return THREAD_BLOCKED;
    case MARK_READY:
        return THREAD_READY;
    case MARK_OFF:
        return THREAD_OFF;
    default:
        return c->has_switches ? THREAD_RAN : THREAD_UNKNOWN;
    }
}

/* A thread that runs has a sample in every period, or nearly: one that has none for longer does not. */
static uint64_t unseen_max_ns(const struct thread_course *c)
{
    double weight = 0;
    size_t samples = 0;
    for (size_t i = 0; i < c->mark_count; i++) {
        weight += c->marks[i].kind == MARK_CPU ? c->marks[i].weight : 0;
        samples += c->marks[i].kind == MARK_CPU;
    }
    if (!samples)
        return UINT64_MAX;
    uint64_t ns = (uint64_t)(weight / (double)samples * UNSEEN_PERIODS_MAX);
    return ns > UNSEEN_NS_MIN ? ns : UNSEEN_NS_MIN;
}

/* What holds from each mark on; a thread that wants a lock and has no CPU waits for it. */
static void set_states(struct thread_course *c)
{
    bool in_lock = false;
    uint64_t unseen_ns = unseen_max_ns(c);
    for (size_t i = 0; i < c->mark_count; i++) {
        struct thread_mark *m = &c->marks[i];
        if (i == 0 || m[-1].thread != m->thread)
            in_lock = false;
        if (m->kind == MARK_LOCK_BEGIN || m->kind == MARK_LOCK_END)
            in_lock = m->kind == MARK_LOCK_BEGIN;
        m->state = (uint8_t)state_after(c, m->kind);
        if (in_lock && m->state != THREAD_RAN)
            m->state = THREAD_LOCK;
        bool goes_on = i + 1 < c->mark_count && m[1].thread == m->thread;
        if (goes_on && m->state == THREAD_RAN && m[1].time_ns - m->time_ns > unseen_ns)
            m->state = THREAD_UNKNOWN; /* that it left the CPU was lost */
    }
}

static void index_threads(struct thread_course *c)
{
    size_t threads = c->trace->threads.count;
    c->first = mem_alloc(threads + 2, sizeof *c->first);
    for (size_t i = 0; i < c->mark_count; i++)
        c->first[c->marks[i].thread + 1]++;
    for (size_t i = 1; i < threads + 2; i++)
        c->first[i] += c->first[i - 1];
}

void thread_course_init(struct thread_course *course, const struct trace *t)
{
    *course = (struct thread_course){ .trace = t };
    struct course_reading r = { .course = course };
    r.switch_kinds = mem_alloc(t->stacks.count + 1, sizeof *r.switch_kinds);
    r.event_kinds = mem_alloc(t->event_types.count + 1, sizeof *r.event_kinds);
    r.skipped = mem_alloc(t->event_types.count + 1, sizeof *r.skipped);
    gc_history_init(&course->gc, t);
    add_samples(&r);
    add_events(&r);
    if (course->mark_count)
        qsort(course->marks, course->mark_count, sizeof *course->marks, mark_compare);
    set_states(course);
    index_threads(course);
    free(r.switch_kinds);
    free(r.event_kinds);
    free(r.skipped);
}

void thread_course_done(struct thread_course *course)
{
    gc_history_done(&course->gc);
    free(course->marks);
    free(course->first);
}

static uint64_t paused_ns(const struct thread_course *c, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
    uint32_t process = c->trace->threads.rows[thread].process;
    return process < c->gc.process_count ? gc_process_paused_ns(&c->gc.processes[process], from_ns, to_ns)
                                         : 0;
}

static void add_mark_to(const struct thread_course *c, const struct thread_mark *m, struct thread_times *sum)
{
    if (m->kind == MARK_CPU && !paused_ns(c, m->thread, m->time_ns, m->time_ns + 1))
        sum->sampled_ns += (uint64_t)m->weight;
    else if (m->kind == MARK_EXCEPTION)
        sum->exceptions++;
    else if (m->kind == MARK_ALLOCATION)
        sum->allocated_bytes += m->weight;
}

/* Of a thread in one state. `end`: the mark that it ends at, or NULL. */
struct course_piece {
    uint64_t from_ns, to_ns;
    enum thread_state state;
    uint32_t thread;
    const struct thread_mark *end;
};

typedef void course_piece_fn(const struct thread_course *c, const struct course_piece *piece, void *user);

static void each_piece(const struct thread_course *c, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
                       course_piece_fn *each, void *user)
{
    size_t low = c->first[thread], end = c->first[thread + 1], begin = low, high = end;
    while (low < high) { /* the first mark at or behind the beginning */
        size_t middle = low + (high - low) / 2;
        if (c->marks[middle].time_ns < from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    struct course_piece piece = { .from_ns = from_ns,
                                  .state = low > begin ? c->marks[low - 1].state : THREAD_UNKNOWN,
                                  .thread = thread };
    for (; low < end && c->marks[low].time_ns < to_ns; low++) {
        piece.end = &c->marks[low];
        piece.to_ns = piece.end->time_ns;
        each(c, &piece, user);
        piece.from_ns = piece.to_ns;
        piece.state = piece.end->state;
    }
    piece.end = NULL;
    piece.to_ns = to_ns;
    each(c, &piece, user);
}

static void add_piece(const struct thread_course *c, const struct course_piece *piece, void *user)
{
    struct thread_times *sum = user;
    if (piece->to_ns > piece->from_ns) {
        uint64_t paused = paused_ns(c, piece->thread, piece->from_ns, piece->to_ns);
        sum->ns[THREAD_GC] += paused;
        sum->ns[piece->state] += piece->to_ns - piece->from_ns - paused;
    }
    if (piece->end)
        add_mark_to(c, piece->end, sum);
}

void thread_course_add(const struct thread_course *course, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
                       struct thread_times *sum)
{
    each_piece(course, thread, from_ns, to_ns, add_piece, sum);
}

struct known_pieces {
    thread_course_fn *each;
    void *user;
};

/* In a pause it stands still, whatever else is not known. */
static void tell_pauses(const struct thread_course *c, const struct course_piece *piece,
                        const struct known_pieces *known)
{
    uint32_t process = c->trace->threads.rows[piece->thread].process;
    const struct gc_process *gc = process < c->gc.process_count ? &c->gc.processes[process] : NULL;
    for (size_t i = gc ? gc_process_pause_behind(gc, piece->from_ns) : 0;
         gc && i < gc->pause_count && gc->pauses[i].from_ns < piece->to_ns; i++) {
        const struct gc_pause *pause = &gc->pauses[i];
        known->each(known->user, pause->from_ns > piece->from_ns ? pause->from_ns : piece->from_ns,
                    pause->to_ns < piece->to_ns ? pause->to_ns : piece->to_ns);
    }
}

static void tell_known(const struct thread_course *c, const struct course_piece *piece, void *user)
{
    const struct known_pieces *known = user;
    if (piece->state == THREAD_UNKNOWN)
        tell_pauses(c, piece, known);
    else
        known->each(known->user, piece->from_ns, piece->to_ns);
}

void thread_course_known(const struct thread_course *course, uint32_t thread, uint64_t from_ns,
                         uint64_t to_ns, thread_course_fn *each, void *user)
{
    struct known_pieces known = { each, user };
    each_piece(course, thread, from_ns, to_ns, tell_known, &known);
}

static uint64_t take(struct thread_times *times, enum thread_state from, uint64_t ns)
{
    if (ns > times->ns[from])
        ns = times->ns[from];
    times->ns[from] -= ns;
    times->ns[THREAD_RAN] += ns;
    return ns;
}

uint64_t thread_times_claim(struct thread_times *times, uint64_t ns)
{
    static const enum thread_state open[] = { THREAD_UNKNOWN, THREAD_READY, THREAD_OFF };
    for (size_t i = 0; i < ARRAY_LEN(open); i++)
        ns -= take(times, open[i], ns);
    return ns;
}

/*
 * A thread that is away and comes back is seen only by the next sample or event: what it ran until then was
 * taken for waiting. Samples of the CPU do not have that error.
 */
void thread_times_settle(struct thread_times *times)
{
    static const enum thread_state away[] = { THREAD_READY, THREAD_BLOCKED, THREAD_OFF };
    if (times->sampled_ns <= times->ns[THREAD_RAN])
        return;
    uint64_t more = times->sampled_ns - times->ns[THREAD_RAN];
    more -= take(times, THREAD_UNKNOWN, more);
    uint64_t waited = 0;
    for (size_t i = 0; i < ARRAY_LEN(away); i++)
        waited += times->ns[away[i]];
    if (more > waited)
        more = waited;
    for (size_t i = 0; waited && i < ARRAY_LEN(away); i++)
        take(times, away[i], (uint64_t)((double)more * ((double)times->ns[away[i]] / (double)waited)));
}
