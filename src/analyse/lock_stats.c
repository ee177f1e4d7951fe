#include "analyse/lock_stats.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/runtime_events.h"

enum { LOCK_TEXT_MAX = 64, CONTENTION_NATIVE = 1 };

static const uint16_t lock_ids[] = { LOCK_EVENT_CONTENTION_START, LOCK_EVENT_CONTENTION_STOP, 0 };

struct lock_reading {
    struct lock_stats *stats;
    struct told_events *told;
    const struct told_event **open; /* by thread of the trace: the wait that goes on, or NULL */
    struct buffer lock, owner;
};

static void put_lock(struct lock_reading *r, const struct told_event *start)
{
    uint64_t lock = told_number(r->told, start, "LockID", 0);
    uint64_t owner = told_number(r->told, start, "LockOwnerThreadID", 0);
    buffer_clear(&r->lock);
    buffer_clear(&r->owner);
    if (told_number(r->told, start, "ContentionFlags", 0) == CONTENTION_NATIVE)
        buffer_string(&r->lock, "native");
    else if (lock)
        buffer_format(&r->lock, "0x%" PRIx64, lock);
    if (owner)
        buffer_format(&r->owner, "%" PRIu64, owner);
}

/* As the runtime measured it; older ones leave that to us. */
static double wait_ns(struct lock_reading *r, const struct told_event *start, const struct told_event *stop)
{
    struct event_value value;
    if (told_field(r->told, stop, "DurationNs", &value) && value.kind == EVENT_VALUE_FLOAT && value.f >= 0)
        return value.f;
    return (double)(stop->time_ns - start->time_ns);
}

static void on_stop(struct lock_reading *r, const struct told_event *stop)
{
    const struct trace_event *row = told_row(r->told, stop);
    const struct told_event *start = row->thread ? r->open[row->thread] : NULL;
    if (!start) {
        r->stats->unbegun++;
        return;
    }
    r->open[row->thread] = NULL;
    put_lock(r, start);
    struct event_weight w = { .weight = wait_ns(r, start, stop) };
    uint32_t node = event_stacks_node(&r->stats->stacks, told_row(r->told, start)->stack);
    r->stats->is_full |= !event_tally_add(&r->stats->tally, buffer_span(&r->lock), buffer_span(&r->owner),
                                          node, start->process, start->time_ns, &w);
}

static void read_all(struct lock_reading *r)
{
    const struct trace *t = r->told->trace;
    r->open = mem_alloc(t->threads.count + 1, sizeof *r->open);
    for (size_t i = 0; i < r->told->count; i++) {
        const struct told_event *e = &r->told->rows[i];
        uint32_t thread = told_row(r->told, e)->thread;
        if (e->id == LOCK_EVENT_CONTENTION_STOP) {
            on_stop(r, e);
        } else if (thread) {
            r->stats->unfinished += r->open[thread] != NULL; /* its end was lost */
            r->open[thread] = e;
        } else {
            r->stats->malformed++;
        }
    }
    for (size_t i = 1; i < t->threads.count; i++)
        r->stats->unfinished += r->open[i] != NULL;
    free(r->open);
}

bool lock_stats_wants(const char *provider, uint32_t event_id)
{
    return strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(lock_ids, event_id);
}

void lock_stats_init(struct lock_stats *stats, const struct trace *t, bool raw_names, uint64_t from_ns,
                     uint64_t to_ns)
{
    *stats = (struct lock_stats){ 0 };
    struct told_events told;
    event_stacks_init(&stats->stacks, t, raw_names, EVENT_CUT_WAIT);
    event_tally_init(&stats->tally, &stats->stacks);
    told_events_init(&told, t,
                     &(struct told_choice){
                         .provider = RUNTIME_PROVIDER, .ids = lock_ids, .from_ns = from_ns, .to_ns = to_ns });
    struct lock_reading r = { .stats = stats, .told = &told };
    buffer_init(&r.lock, LOCK_TEXT_MAX);
    buffer_init(&r.owner, LOCK_TEXT_MAX);
    read_all(&r);
    stats->any = told.count != 0;
    buffer_done(&r.lock);
    buffer_done(&r.owner);
    told_events_done(&told);
}

void lock_stats_done(struct lock_stats *stats)
{
    event_tally_done(&stats->tally);
    event_stacks_done(&stats->stacks);
}
