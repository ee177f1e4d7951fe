#include "analyse/threadpool_stats.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/told_events.h"
#include "base/mem.h"
#include "clr/runtime_events.h"

static const uint16_t pool_ids[] = {
    THREADPOOL_EVENT_START,    THREADPOOL_EVENT_STOP,    THREADPOOL_EVENT_RETIRE,
    THREADPOOL_EVENT_UNRETIRE, THREADPOOL_EVENT_SAMPLE,  THREADPOOL_EVENT_ADJUSTMENT,
    THREADPOOL_EVENT_WAIT,     THREADPOOL_EVENT_MIN_MAX, 0,
};

const char *threadpool_reason_name(unsigned reason)
{
    static const char *const names[THREADPOOL_REASONS + 1] = {
        "Warmup",      "Initializing", "RandomMove",     "ClimbingMove",        "ChangePoint",
        "Stabilizing", "Starvation",   "ThreadTimedOut", "CooperativeBlocking", "Other",
    };
    return names[reason < THREADPOOL_REASONS ? reason : THREADPOOL_REASONS];
}

struct pool_reading {
    struct threadpool_stats *stats;
    struct told_events *told;
    struct threadpool_process *process;
    uint32_t wanted; /* by the last adjustment, when has_wanted */
    bool has_wanted;
};

static void on_workers(struct pool_reading *r, const struct told_event *e)
{
    struct threadpool_stats *stats = r->stats;
    struct threadpool_process *p = r->process;
    struct event_value count;
    if (!told_field(r->told, e, "ActiveWorkerThreadCount", &count) || count.u > UINT32_MAX) {
        stats->malformed++;
        return;
    }
    uint32_t workers = (uint32_t)count.u;
    p->started += e->id == THREADPOOL_EVENT_START;
    p->stopped += e->id == THREADPOOL_EVENT_STOP;
    if (!p->has_workers || p->last_workers != workers) {
        stats->levels =
            mem_grow(stats->levels, &stats->level_capacity, stats->level_count + 1, sizeof *stats->levels);
        stats->levels[stats->level_count++] = (struct threadpool_level){ e->time_ns, e->process, workers };
    }
    p->has_workers = true;
    p->last_workers = workers;
    p->most_workers = workers > p->most_workers ? workers : p->most_workers;
}

static double throughput_of(struct pool_reading *r, const struct told_event *e, const char *field)
{
    struct event_value value;
    if (!told_field(r->told, e, field, &value) || value.kind != EVENT_VALUE_FLOAT || !(value.f >= 0))
        return -1;
    if (value.f > r->process->throughput_max)
        r->process->throughput_max = value.f;
    return value.f;
}

static void on_adjustment(struct pool_reading *r, const struct told_event *e)
{
    struct threadpool_stats *stats = r->stats;
    struct threadpool_process *p = r->process;
    struct event_value wanted, reason;
    if (!told_field(r->told, e, "NewWorkerThreadCount", &wanted) || wanted.u > UINT32_MAX ||
        !told_field(r->told, e, "Reason", &reason)) {
        stats->malformed++;
        return;
    }
    stats->adjustments = mem_grow(stats->adjustments, &stats->adjustment_capacity,
                                  stats->adjustment_count + 1, sizeof *stats->adjustments);
    struct threadpool_adjustment *a = &stats->adjustments[stats->adjustment_count++];
    *a = (struct threadpool_adjustment){
        .time_ns = e->time_ns,
        .process = e->process,
        .thread = told_row(r->told, e)->thread,
        .workers = (uint32_t)wanted.u,
        .workers_before = r->has_wanted ? r->wanted : p->last_workers,
        .has_before = r->has_wanted || p->has_workers,
        .reason = reason.u < THREADPOOL_REASONS ? (uint8_t)reason.u : THREADPOOL_REASONS,
        .throughput = throughput_of(r, e, "AverageThroughput"),
    };
    r->wanted = a->workers;
    r->has_wanted = true;
    p->adjustments[a->reason]++;
    if (a->reason != THREADPOOL_STARVATION)
        return;
    p->first_starved_ns = p->first_starved_ns ? p->first_starved_ns : e->time_ns;
    p->last_starved_ns = e->time_ns;
}

static void on_limits(struct pool_reading *r, const struct told_event *e)
{
    struct event_value min, max;
    if (!told_field(r->told, e, "MinWorkerThreads", &min) ||
        !told_field(r->told, e, "MaxWorkerThreads", &max)) {
        r->stats->malformed++;
        return;
    }
    r->process->min_workers = (uint32_t)min.u;
    r->process->max_workers = (uint32_t)max.u;
    r->process->has_limits = true;
}

static void read_event(struct pool_reading *r, const struct told_event *e)
{
    switch ((enum threadpool_event_id)e->id) {
    case THREADPOOL_EVENT_START:
    case THREADPOOL_EVENT_STOP:
    case THREADPOOL_EVENT_RETIRE:
    case THREADPOOL_EVENT_UNRETIRE:
    case THREADPOOL_EVENT_WAIT:
        on_workers(r, e);
        break;
    case THREADPOOL_EVENT_SAMPLE:
        throughput_of(r, e, "Throughput");
        break;
    case THREADPOOL_EVENT_ADJUSTMENT:
        on_adjustment(r, e);
        break;
    case THREADPOOL_EVENT_MIN_MAX:
        on_limits(r, e);
        break;
    }
}

/* What was so before the time that is asked about: how many workers were wanted, and how many may be. */
static void read_earlier(struct pool_reading *r, const struct told_event *e)
{
    struct event_value wanted;
    if (e->id == THREADPOOL_EVENT_MIN_MAX)
        on_limits(r, e);
    if (e->id != THREADPOOL_EVENT_ADJUSTMENT || !told_field(r->told, e, "NewWorkerThreadCount", &wanted) ||
        wanted.u > UINT32_MAX)
        return;
    r->wanted = (uint32_t)wanted.u;
    r->has_wanted = true;
}

bool threadpool_stats_wants(const char *provider, uint32_t event_id)
{
    return strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(pool_ids, event_id);
}

void threadpool_stats_init(struct threadpool_stats *stats, const struct trace *t, uint64_t from_ns,
                           uint64_t to_ns)
{
    *stats = (struct threadpool_stats){ 0 };
    struct told_events told;
    told_events_init(&told, t,
                     &(struct told_choice){ .provider = RUNTIME_PROVIDER, .ids = pool_ids, .to_ns = to_ns });
    const struct told_event *events;
    for (size_t at = 0, count; (count = told_events_process(&told, &at, &events)) > 0;) {
        if (events[count - 1].time_ns < from_ns)
            continue;
        stats->processes = mem_grow(stats->processes, &stats->process_capacity, stats->process_count + 1,
                                    sizeof *stats->processes);
        struct pool_reading r = { .stats = stats,
                                  .told = &told,
                                  .process = &stats->processes[stats->process_count++] };
        *r.process = (struct threadpool_process){ .process = events->process };
        for (size_t i = 0; i < count; i++)
            (events[i].time_ns < from_ns ? read_earlier : read_event)(&r, &events[i]);
    }
    stats->any = stats->process_count != 0;
    told_events_done(&told);
}

void threadpool_stats_done(struct threadpool_stats *stats)
{
    free(stats->adjustments);
    free(stats->levels);
    free(stats->processes);
}
