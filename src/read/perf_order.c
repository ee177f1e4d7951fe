#include "read/perf_order.h"

/* One record fits, however low the ceiling is. */
enum { SLACK_BYTES = 1 << 20 };

void perf_order_init(struct perf_order *o, size_t ceiling, perf_order_fn *deliver,
                     perf_order_settle_fn *settle, void *user)
{
    *o = (struct perf_order){ .deliver = deliver, .settle = settle, .user = user, .ceiling = ceiling };
    time_queue_init(&o->waiting, ceiling + SLACK_BYTES);
}

void perf_order_done(struct perf_order *o)
{
    time_queue_done(&o->waiting);
}

static void take(void *user, const struct time_item *item, struct span record)
{
    struct perf_order *o = user;
    if (o->failed)
        return;
    if (item->time_ns < o->delivered_ns)
        o->late++;
    else
        o->delivered_ns = item->time_ns;
    o->failed = !o->deliver(o->user, record, item->time_ns, o->err);
}

static bool release(struct perf_order *o, uint64_t until_ns, struct error *err)
{
    o->err = err;
    time_queue_hand_over(&o->waiting, until_ns, take, o);
    o->settle(o->user);
    time_queue_forget(&o->waiting);
    return !o->failed;
}

bool perf_order_add(struct perf_order *o, struct span record, uint64_t time_ns, struct error *err)
{
    struct time_queue *q = &o->waiting;
    while (q->live_bytes && q->live_bytes + record.size > o->ceiling)
        if (!release(o, q->unsorted ? time_queue_middle_ns(q) : UINT64_MAX, err))
            return false;
    if (time_ns > o->newest_ns)
        o->newest_ns = time_ns;
    return time_queue_add(q, time_ns, 0, record) ||
           error_set(err, ERROR_LIMIT, "a record of %zu bytes does not fit beside those that wait",
                     record.size);
}

bool perf_order_round(struct perf_order *o, struct error *err)
{
    uint64_t until_ns = o->round_end_ns;
    o->round_end_ns = o->newest_ns;
    return release(o, until_ns, err);
}

bool perf_order_flush(struct perf_order *o, struct error *err)
{
    return release(o, UINT64_MAX, err);
}
