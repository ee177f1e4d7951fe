#include "import/thread_time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/runtime_events.h"
#include "trace/facts.h"

enum { ROUND_NS = 1000000 }; /* of the runtime's sampler */

/* What is known of a process's rounds behind the sample that is looked at, from the last one backwards. */
struct later_rounds {
    uint64_t start_ns; /* of the next round; 0: there is none */
    uint64_t first_ns; /* the earliest sample of this round so far */
    uint32_t round;    /* this one */
};

struct later_sample {
    uint64_t time_ns;
    uint32_t round; /* 0: none */
};

/* Numbers each sample's round: a new one begins when a thread comes again. The caller frees. */
static uint32_t *rounds_of(const struct trace *t)
{
    const struct trace_samples *s = &t->samples;
    uint32_t *rounds = mem_alloc(s->count, sizeof *rounds);
    AUTO_FREE uint32_t *of_thread = mem_alloc(t->threads.count, sizeof *of_thread);
    AUTO_FREE uint32_t *of_process = mem_alloc(t->processes.count, sizeof *of_process);
    for (size_t i = 0; i < s->count; i++) {
        if (s->kind[i] != SAMPLE_WALL)
            continue;
        uint32_t thread = s->thread[i], process = t->threads.rows[thread].process;
        if (of_process[process] == 0 || of_thread[thread] == of_process[process])
            of_process[process]++;
        rounds[i] = of_thread[thread] = of_process[process];
    }
    return rounds;
}

static void weigh(struct trace *t, uint64_t last_ns)
{
    struct trace_samples *s = &t->samples;
    AUTO_FREE uint32_t *rounds = rounds_of(t);
    AUTO_FREE struct later_rounds *later = mem_alloc(t->processes.count, sizeof *later);
    AUTO_FREE struct later_sample *next = mem_alloc(t->threads.count, sizeof *next);
    for (size_t i = s->count; i-- > 0;) {
        if (s->kind[i] != SAMPLE_WALL)
            continue;
        uint64_t time_ns = s->time_ns[i], until_ns;
        struct later_rounds *after = &later[t->threads.rows[s->thread[i]].process];
        struct later_sample *same = &next[s->thread[i]];
        if (after->round != rounds[i]) {
            after->start_ns = after->first_ns;
            after->round = rounds[i];
        }
        after->first_ns = time_ns;
        until_ns = same->round == rounds[i] + 1 ? same->time_ns : after->start_ns;
        s->weight[i] = !after->start_ns ? last_ns : until_ns > time_ns ? until_ns - time_ns : 0;
        *same = (struct later_sample){ time_ns, rounds[i] };
    }
}

void thread_time_finish(struct trace *t, const uint8_t *states, uint64_t last_ns)
{
    uint64_t managed_ns = 0, native_ns = 0, count = 0;
    weigh(t, last_ns ? last_ns : ROUND_NS);
    for (size_t i = 0; i < t->samples.count; i++) {
        if (t->samples.kind[i] != SAMPLE_WALL)
            continue;
        count++;
        *(states[i] == THREAD_TIME_MANAGED ? &managed_ns : &native_ns) += t->samples.weight[i];
    }
    if (!count)
        return;
    AUTO_FREE char *text = mem_format("managed %" PRIu64 " native %" PRIu64, managed_ns, native_ns);
    trace_set_fact(t, FACT_WALL_EVENT, "thread-time");
    trace_set_fact(t, FACT_WALL_STATES, text);
}

struct sampler_event {
    uint64_t time_ns;
    uint32_t event;
};

static int sampler_compare(const void *a, const void *b)
{
    const struct sampler_event *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* By time. The caller frees. */
static struct sampler_event *sampler_events(const struct trace *t, size_t *out_count)
{
    AUTO_FREE bool *wanted = mem_alloc(t->event_types.count, sizeof *wanted);
    struct sampler_event *found = mem_alloc(t->events.count, sizeof *found);
    *out_count = 0;
    for (size_t i = 1; i < t->event_types.count; i++)
        wanted[i] = t->event_types.rows[i].event_id == 0 &&
                    strcmp(trace_string(t, t->event_types.rows[i].provider), RUNTIME_SAMPLER_PROVIDER) == 0;
    for (uint32_t i = 1; i < t->events.count; i++)
        if (wanted[t->events.rows[i].type] && t->events.rows[i].thread)
            found[(*out_count)++] = (struct sampler_event){ t->events.rows[i].time_ns, i };
    if (*out_count)
        qsort(found, *out_count, sizeof *found, sampler_compare);
    return found;
}

void thread_time_from_events(struct trace *t)
{
    if (trace_fact_value(t, FACT_WALL_EVENT))
        return;
    size_t count, first = t->samples.count;
    AUTO_FREE struct sampler_event *events = sampler_events(t, &count);
    if (!count)
        return;
    AUTO_FREE uint8_t *states = mem_alloc(first + count, sizeof *states);
    for (size_t i = 0; i < count; i++) {
        const struct trace_event *row = &t->events.rows[events[i].event];
        struct span payload = trace_event_payload(t, row);
        trace_push_sample(&t->samples, row->time_ns, row->thread, row->stack ? row->stack : STACK_WHOLE, 0,
                          SAMPLE_WALL, 0);
        states[first + i] = payload.size ? payload.data[0] : THREAD_TIME_UNKNOWN;
    }
    thread_time_finish(t, states, ROUND_NS);
}
