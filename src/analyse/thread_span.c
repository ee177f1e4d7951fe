#include "analyse/thread_span.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/gc_events.h"
#include "clr/runtime_events.h"

/* The runtime tells what process it is when a recording ends: that counts as the last look at its thread. */
static void last_seen(const struct trace *t, uint64_t *ends_ns)
{
    for (size_t i = t->events.count; i-- > 1;) {
        const struct trace_event_type *type = &t->event_types.rows[t->events.rows[i].type];
        if (type->event_id == 1 && strcmp(trace_string(t, type->provider), RUNTIME_STREAM_PROVIDER) == 0)
            ends_ns[t->events.rows[i].thread] = t->events.rows[i].time_ns;
    }
}

bool thread_span_wants(const char *provider, uint32_t event_id)
{
    return event_id == GC_EVENT_ALLOCATION_TICK && strcmp(provider, RUNTIME_PROVIDER) == 0;
}

bool thread_span_add_allocations(struct trace *t)
{
    AUTO_FREE bool *wanted = mem_alloc(t->event_types.count + 1, sizeof *wanted);
    for (size_t i = 1; i < t->event_types.count; i++) {
        const struct trace_event_type *type = &t->event_types.rows[i];
        wanted[i] = thread_span_wants(trace_string(t, type->provider), type->event_id);
    }
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        if (!wanted[row->type] || !row->thread || row->stack < STACK_ROOTS)
            continue;
        if (t->samples.runs)
            return false;
        trace_push_sample(&t->samples, row->time_ns, row->thread, row->stack, 0, SAMPLE_WALL, 0);
    }
    return true;
}

struct timed_sample {
    uint64_t time_ns;
    size_t row;
};

static int timed_compare(const void *a, const void *b)
{
    const struct timed_sample *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Samples of wall time in the order of their times. */
static struct timed_sample *samples_by_time(const struct trace_samples *s, size_t *out_count)
{
    struct timed_sample *rows = mem_alloc(s->count + 1, sizeof *rows);
    size_t count = 0;
    bool in_order = true;
    for (size_t i = 0; i < s->count; i++) {
        if (s->kind[i] != SAMPLE_WALL)
            continue;
        in_order &= !count || rows[count - 1].time_ns <= s->time_ns[i];
        rows[count++] = (struct timed_sample){ s->time_ns[i], i };
    }
    if (!in_order)
        qsort(rows, count, sizeof *rows, timed_compare);
    *out_count = count;
    return rows;
}

uint64_t *thread_span_weights(const struct trace *t)
{
    const struct trace_samples *s = &t->samples;
    size_t count;
    AUTO_FREE struct timed_sample *rows = samples_by_time(s, &count);
    uint64_t *weights = mem_alloc(s->count, sizeof *weights);
    AUTO_FREE uint64_t *next_ns = mem_alloc(t->threads.count, sizeof *next_ns); /* 0: none */
    last_seen(t, next_ns);
    for (size_t at = count; at-- > 0;) {
        size_t i = rows[at].row;
        uint64_t next = next_ns[s->thread[i]],
                 until_ns = next || !s->runs ? next : s->time_ns[i] + s->runs[i].length_ns;
        weights[i] = until_ns > s->time_ns[i] ? until_ns - s->time_ns[i] : 0;
        next_ns[s->thread[i]] = s->time_ns[i];
    }
    return weights;
}
