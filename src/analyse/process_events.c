#include "analyse/process_events.h"

#include <stdlib.h>

#include "base/mem.h"

bool process_events_told(const struct trace *t, uint32_t process)
{
    for (size_t i = 1; i < t->events.count; i++)
        if (t->events.rows[i].process == process)
            return true;
    return false;
}

/* Rows of the trace count from 1; 0 is none. */

/* Moves the rows that are wanted together; `now_at` has where each is, or 0. */
static void keep_events(struct trace *t, const bool *wanted, size_t *now_at)
{
    size_t kept = 1;
    for (size_t i = 1; i < t->events.count; i++) {
        now_at[i] = wanted[t->events.rows[i].process] ? kept : 0;
        if (now_at[i])
            t->events.rows[kept++] = t->events.rows[i];
    }
    t->events.count = kept;
}

static void keep_activities(struct trace *t, const size_t *now_at)
{
    size_t kept = 1;
    for (size_t i = 1; i < t->event_activities.count; i++) {
        struct trace_event_activity activity = t->event_activities.rows[i];
        if (!now_at[activity.event])
            continue;
        activity.event = (uint32_t)now_at[activity.event];
        t->event_activities.rows[kept++] = activity;
    }
    t->event_activities.count = kept;
}

static void keep_subscriptions(struct trace *t, const bool *wanted)
{
    size_t kept = 1;
    for (size_t i = 1; i < t->subscriptions.count; i++)
        if (wanted[t->subscriptions.rows[i].process])
            t->subscriptions.rows[kept++] = t->subscriptions.rows[i];
    t->subscriptions.count = kept;
}

/* What is not known whose it is may be anybody's. */
static void keep_losses(struct trace *t, const bool *wanted)
{
    size_t kept = 1;
    for (size_t i = 1; i < t->losses.count; i++)
        if (!t->losses.rows[i].process || wanted[t->losses.rows[i].process])
            t->losses.rows[kept++] = t->losses.rows[i];
    t->losses.count = kept;
}

void process_events_keep(struct trace *t, const struct thread_filter *filter)
{
    bool *wanted = mem_alloc(t->processes.count, sizeof *wanted);
    size_t *now_at = mem_alloc(t->events.count, sizeof *now_at);
    for (uint32_t i = 0; i < t->processes.count; i++)
        wanted[i] = thread_filter_wants_process(filter, t, i);
    keep_events(t, wanted, now_at);
    keep_activities(t, now_at);
    keep_subscriptions(t, wanted);
    keep_losses(t, wanted);
    free(now_at);
    free(wanted);
}
