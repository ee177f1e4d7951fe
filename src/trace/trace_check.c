#include "trace/trace_check.h"

#include "base/mem.h"
#include "base/own.h"

static void clear_if_beyond(uint32_t *id, size_t count, uint64_t *malformed)
{
    if (*id >= count) {
        *id = 0;
        ++*malformed;
    }
}

/* Nobody writes deeper stacks, and everybody who walks them relies on it. */
static void check_depths(struct trace *t, uint64_t *bad)
{
    AUTO_FREE uint16_t *depth = mem_alloc(t->stacks.count, sizeof *depth);
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++) {
        uint32_t *parent = &t->stacks.rows[i].parent; /* always an older one */
        if (depth[*parent] >= TRACE_STACK_DEPTH_MAX) {
            *parent = STACK_TRUNCATED;
            ++*bad;
        }
        depth[i] = depth[*parent] + 1;
    }
}

static void check_references(struct trace *t, uint64_t *bad)
{
    for (size_t i = 1; i < t->threads.count; i++)
        clear_if_beyond(&t->threads.rows[i].process, t->processes.count, bad);
    for (size_t i = 1; i < t->mappings.count; i++) {
        clear_if_beyond(&t->mappings.rows[i].process, t->processes.count, bad);
        clear_if_beyond(&t->mappings.rows[i].image, t->images.count, bad);
    }
    for (size_t i = 1; i < t->codes.count; i++) {
        clear_if_beyond(&t->codes.rows[i].process, t->processes.count, bad);
        clear_if_beyond(&t->codes.rows[i].function, t->functions.count, bad);
    }
    for (size_t i = 1; i < t->locations.count; i++) {
        clear_if_beyond(&t->locations.rows[i].process, t->processes.count, bad);
        clear_if_beyond(&t->locations.rows[i].mapping, t->mappings.count, bad);
        clear_if_beyond(&t->locations.rows[i].code, t->codes.count, bad);
        clear_if_beyond(&t->locations.rows[i].function, t->functions.count, bad);
    }
    for (size_t i = 1; i < t->inlined.count; i++)
        clear_if_beyond(&t->inlined.rows[i].function, t->functions.count, bad);
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++)
        clear_if_beyond(&t->stacks.rows[i].location, t->locations.count, bad);
    for (size_t i = 1; i < t->subscriptions.count; i++)
        clear_if_beyond(&t->subscriptions.rows[i].process, t->processes.count, bad);
    for (size_t i = 1; i < t->events.count; i++) {
        struct trace_event *row = &t->events.rows[i];
        clear_if_beyond(&row->type, t->event_types.count, bad);
        clear_if_beyond(&row->process, t->processes.count, bad);
        clear_if_beyond(&row->thread, t->threads.count, bad);
        clear_if_beyond(&row->stack, t->stacks.count, bad);
    }
    for (size_t i = 1; i < t->losses.count; i++)
        clear_if_beyond(&t->losses.rows[i].process, t->processes.count, bad);
    for (size_t i = 0; i < t->samples.count; i++) {
        clear_if_beyond(&t->samples.thread[i], t->threads.count, bad);
        clear_if_beyond(&t->samples.stack[i], t->stacks.count, bad);
    }
}

uint64_t trace_limit_weights(struct trace *t, uint64_t *out_max)
{
    struct trace_samples *s = &t->samples;
    uint64_t left = INT64_MAX, cut = 0;
    size_t fit = 0;
    for (; fit < s->count && s->weight[fit] <= left; fit++)
        left -= s->weight[fit];
    if (fit == s->count)
        return 0;
    *out_max = INT64_MAX / s->count;
    for (size_t i = 0; i < s->count; i++)
        if (s->weight[i] > *out_max) {
            s->weight[i] = *out_max;
            cut++;
        }
    return cut;
}

uint64_t trace_check(struct trace *t)
{
    uint64_t bad = 0, most;
    check_references(t, &bad);
    check_depths(t, &bad);
    return bad + trace_limit_weights(t, &most);
}
