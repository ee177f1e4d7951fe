#include "import/thread_time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "clr/runtime_events.h"
#include "trace/facts.h"

enum {
    ROUND_NS = 1000000, /* of the runtime's sampler */
    GRAIN_BITS = 20,    /* about a round */
    GRAINS_MAX = 512,   /* then they are twice as long */
    GRAIN_BITS_MAX = 31,
};

void thread_time_init(struct thread_time *w, struct trace *t, bool runs)
{
    *w = (struct thread_time){ .t = t, .grain_bits = GRAIN_BITS };
    if (runs)
        trace_samples_in_runs(&t->samples);
}

static struct seen_thread *thread_seen(struct thread_time *w, uint32_t thread)
{
    if (thread < w->thread_capacity && w->threads[thread].process)
        return &w->threads[thread];
    uint32_t process = w->t->threads.rows[thread].process;
    w->threads = mem_grow_zeroed(w->threads, &w->thread_capacity, thread + (size_t)1, sizeof *w->threads);
    w->processes =
        mem_grow_zeroed(w->processes, &w->process_capacity, process + (size_t)1, sizeof *w->processes);
    w->threads[thread].process = process;
    return &w->threads[thread];
}

static void begin_round(struct seen_process *process, uint64_t time_ns)
{
    process->round++;
    process->starts_ns = mem_grow(process->starts_ns, &process->capacity, process->round + (size_t)1,
                                  sizeof *process->starts_ns);
    process->starts_ns[process->round] = time_ns;
}

/* The thread's last sample stands for the time until then, those before it for the time until the next. */
static void tell_until(struct thread_time *w, struct seen_thread *seen, uint64_t until_ns)
{
    struct trace_samples *s = &w->t->samples;
    uint64_t last_ns = until_ns > seen->time_ns ? until_ns : seen->time_ns;
    uint64_t weight_ns = last_ns - seen->since_ns;
    s->weight[seen->row] += weight_ns;
    *(seen->state == THREAD_TIME_MANAGED ? &w->managed_ns : &w->native_ns) += weight_ns;
    if (!seen->more)
        return;
    s->runs[seen->row].samples += seen->more;
    s->runs[seen->row].length_ns = (uint32_t)(seen->time_ns - s->time_ns[seen->row]);
    seen->more = 0;
}

/* Until when samples are of one row with one of `from_ns`, at `time_ns`, which is not before it. */
static uint64_t row_end(struct thread_time *w, uint64_t from_ns, uint64_t time_ns)
{
    if (!w->t->samples.runs || from_ns < w->first_ns)
        return 0;
    while ((time_ns - w->first_ns) >> w->grain_bits >= GRAINS_MAX && w->grain_bits < GRAIN_BITS_MAX)
        w->grain_bits++;
    return w->first_ns + ((((from_ns - w->first_ns) >> w->grain_bits) + 1) << w->grain_bits);
}

/* Whether a sample like the thread's last one, in the round before, is of its row. */
static bool is_of_row(struct thread_time *w, struct seen_thread *seen, uint64_t time_ns, uint32_t stack)
{
    if (!w->t->samples.runs || seen->stack != stack || time_ns < seen->time_ns)
        return false;
    seen->row_end_ns = row_end(w, w->t->samples.time_ns[seen->row], time_ns);
    return time_ns < seen->row_end_ns;
}

static void add_row(struct thread_time *w, struct seen_thread *seen, uint64_t time_ns, uint32_t thread)
{
    seen->row = w->t->samples.count;
    seen->row_end_ns = row_end(w, time_ns, time_ns);
    trace_push_sample(&w->t->samples, time_ns, thread, seen->stack, 0, SAMPLE_WALL, 0);
}

/* One that may not go on in the thread's row, or says something new of it. */
static void add_other(struct thread_time *w, struct seen_thread *seen, const struct seen_process *process,
                      uint64_t time_ns, uint32_t thread, uint32_t stack)
{
    bool again = seen->round && seen->round + 1 == process->round;
    if (seen->round)
        tell_until(w, seen, again ? time_ns : process->starts_ns[seen->round + 1]);
    bool goes_on = again && is_of_row(w, seen, time_ns, stack);
    seen->stack = stack;
    seen->more = goes_on;
    if (!goes_on)
        add_row(w, seen, time_ns, thread);
    seen->since_ns = time_ns;
}

void thread_time_add(struct thread_time *w, uint64_t time_ns, uint32_t thread, uint32_t stack,
                     enum thread_time_state state)
{
    struct seen_thread *seen = thread_seen(w, thread);
    struct seen_process *process = &w->processes[seen->process];
    if (!w->first_ns)
        w->first_ns = time_ns;
    if (process->round == seen->round)
        begin_round(process, time_ns);
    if (thread_time_goes_on(w, time_ns, thread, stack, state))
        return;
    add_other(w, seen, process, time_ns, thread, stack);
    seen->time_ns = time_ns;
    seen->round = process->round;
    seen->state = (uint8_t)state;
}

/* What is not known yet: how long the last sample of each thread stands for. */
static void end_threads(struct thread_time *w, uint64_t last_ns)
{
    for (size_t i = 0; i < w->thread_capacity; i++) {
        struct seen_thread *seen = &w->threads[i];
        if (!seen->round)
            continue;
        const struct seen_process *process = &w->processes[seen->process];
        tell_until(w, seen,
                   seen->round < process->round ? process->starts_ns[seen->round + 1]
                                                : seen->time_ns + last_ns);
    }
}

void thread_time_finish(struct thread_time *w, uint64_t last_ns)
{
    end_threads(w, last_ns ? last_ns : ROUND_NS);
    if (w->thread_capacity) {
        AUTO_FREE char *text = mem_format("managed %" PRIu64 " native %" PRIu64, w->managed_ns, w->native_ns);
        trace_set_fact(w->t, FACT_WALL_EVENT, "thread-time");
        trace_set_fact(w->t, FACT_WALL_STATES, text);
    }
}

void thread_time_done(struct thread_time *w)
{
    for (size_t i = 0; i < w->process_capacity; i++)
        free(w->processes[i].starts_ns);
    free(w->processes);
    free(w->threads);
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
    size_t count;
    AUTO_FREE struct sampler_event *events = sampler_events(t, &count);
    if (!count)
        return;
    struct thread_time w;
    thread_time_init(&w, t, false);
    for (size_t i = 0; i < count; i++) {
        const struct trace_event *row = &t->events.rows[events[i].event];
        struct span payload = trace_event_payload(t, row);
        thread_time_add(&w, row->time_ns, row->thread, row->stack ? row->stack : STACK_WHOLE,
                        payload.size ? (enum thread_time_state)payload.data[0] : THREAD_TIME_UNKNOWN);
    }
    thread_time_finish(&w, ROUND_NS);
    thread_time_done(&w);
}
