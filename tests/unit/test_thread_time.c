#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/thread_span.h"
#include "base/own.h"
#include "clr/gc_events.h"
#include "import/gc_stops.h"
#include "import/thread_time.h"
#include "told_fixture.h"
#include "trace/builder.h"
#include "trace/facts.h"

#define MS UINT64_C(1000000)
enum { START = 1000, PID = 1, THREADS = 3, ROUNDS = 20000, LAST_NS = 77 };

struct sampled {
    struct trace_builder b;
    struct thread_time w;
    uint32_t threads[THREADS];
};

static void begin(struct sampled *s, bool runs)
{
    trace_builder_init(&s->b, 64);
    trace_builder_process_start(&s->b, PID, 0);
    thread_time_init(&s->w, &s->b.trace, runs);
    for (uint32_t i = 0; i < THREADS; i++)
        s->threads[i] = trace_builder_thread(&s->b, PID, 10 + i, 0);
}

static void look(struct sampled *s, unsigned thread, uint64_t time_ns, uint32_t stack)
{
    thread_time_add(&s->w, START * MS + time_ns, s->threads[thread], stack,
                    stack == STACK_WHOLE ? THREAD_TIME_MANAGED : THREAD_TIME_EXTERNAL);
}

static void end(struct sampled *s)
{
    thread_time_finish(&s->w, LAST_NS);
    thread_time_done(&s->w);
}

static void test_weights(void **state)
{
    (void)state;
    struct sampled s;
    begin(&s, false);
    look(&s, 0, 0, STACK_WHOLE);
    look(&s, 1, 10, STACK_BROKEN); /* the next round does not see it: until then */
    look(&s, 0, 1000, STACK_WHOLE);
    look(&s, 2, 1020, STACK_WHOLE); /* it is new */
    look(&s, 0, 2000, STACK_BROKEN);
    look(&s, 1, 2015, STACK_BROKEN);
    look(&s, 2, 2030, STACK_WHOLE);
    end(&s);
    static const uint64_t weights[] = { 1000, 990, 1000, 1010, LAST_NS, LAST_NS, LAST_NS };
    const struct trace_samples *samples = &s.b.trace.samples;
    assert_int_equal(samples->count, ARRAY_LEN(weights));
    assert_memory_equal(samples->weight, weights, sizeof weights);
    assert_null(samples->runs);
    assert_string_equal(trace_fact_value(&s.b.trace, FACT_WALL_EVENT), "thread-time");
    assert_string_equal(trace_fact_value(&s.b.trace, FACT_WALL_STATES), "managed 3087 native 1144");
    trace_builder_done(&s.b);
}

/* One thread that stays, one that moves every so often, and one that comes and goes. */
static void look_around(struct sampled *s)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        look(s, 0, round * MS, STACK_WHOLE);
        look(s, 1, round * MS + 10, round / 7 % 2 ? STACK_WHOLE : STACK_BROKEN);
        if (round % 50 < 30)
            look(s, 2, round * MS + 20, STACK_TRUNCATED);
    }
    end(s);
}

struct sums {
    uint64_t samples, weight, span;
};

static void sum(const struct sampled *s, struct sums sums[THREADS][STACK_ROOTS])
{
    const struct trace_samples *samples = &s->b.trace.samples;
    AUTO_FREE uint64_t *spans = thread_span_weights(&s->b.trace);
    memset(sums, 0, THREADS * sizeof *sums);
    for (size_t i = 0; i < samples->count; i++) {
        unsigned thread = samples->thread[i] - s->threads[0];
        struct sums *at = &sums[thread][samples->stack[i]];
        at->samples += samples->runs ? samples->runs[i].samples : 1;
        at->weight += samples->weight[i];
        at->span += spans[i];
    }
}

/* In runs there are fewer rows, and nothing else is different. */
static void test_runs(void **state)
{
    (void)state;
    struct sampled each, runs;
    struct sums sums[2][THREADS][STACK_ROOTS];
    begin(&each, false);
    look_around(&each);
    sum(&each, sums[0]);
    begin(&runs, true);
    look_around(&runs);
    sum(&runs, sums[1]);
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    assert_int_equal(sums[1][0][STACK_WHOLE].samples, ROUNDS);
    assert_string_equal(trace_fact_value(&each.b.trace, FACT_WALL_STATES),
                        trace_fact_value(&runs.b.trace, FACT_WALL_STATES));
    assert_int_equal(each.b.trace.samples.count, ROUNDS * 2 + ROUNDS / 50 * 30);
    assert_true(runs.b.trace.samples.count < each.b.trace.samples.count / 4);
    trace_builder_done(&each.b);
    trace_builder_done(&runs.b);
}

/* Each tells roughly when: to a 256th of what was sampled until then. */
static void test_runs_tell_when(void **state)
{
    (void)state;
    struct sampled s;
    uint64_t ends_ns[THREADS] = { 0 };
    begin(&s, true);
    look_around(&s);
    const struct trace_samples *samples = &s.b.trace.samples;
    for (size_t i = 0; i < samples->count; i++) {
        unsigned thread = samples->thread[i] - s.threads[0];
        uint64_t from_ns = samples->time_ns[i] - START * MS, last_ns = from_ns + samples->runs[i].length_ns;
        assert_true(from_ns >= ends_ns[thread]);
        assert_true(last_ns - from_ns <= last_ns / 256 || samples->runs[i].samples <= 2);
        assert_true(samples->runs[i].samples == (last_ns - from_ns) / MS + 1);
        ends_ns[thread] = last_ns + 1;
    }
    trace_builder_done(&s.b);
}

/* Times that a damaged file tells. */
static void test_time_goes_back(void **state)
{
    (void)state;
    struct sampled s;
    static const uint64_t times[] = { 5000 * MS, 1, 5001 * MS, UINT64_MAX - 2 * START * MS, 0, 0 };
    begin(&s, true);
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        look(&s, 0, times[i], STACK_WHOLE);
    end(&s);
    uint64_t samples = 0;
    for (size_t i = 0; i < s.b.trace.samples.count; i++)
        samples += s.b.trace.samples.runs[i].samples;
    assert_int_equal(samples, ARRAY_LEN(times));
    trace_builder_done(&s.b);
}

/* Two processes have rounds of their own. */
static void test_processes(void **state)
{
    (void)state;
    struct sampled s;
    begin(&s, false);
    trace_builder_process_start(&s.b, PID + 1, 0);
    s.threads[2] = trace_builder_thread(&s.b, PID + 1, 10, 0);
    look(&s, 0, 0, STACK_WHOLE);
    look(&s, 2, 300, STACK_WHOLE);
    look(&s, 0, 1000, STACK_WHOLE);
    look(&s, 2, 1700, STACK_WHOLE);
    end(&s);
    static const uint64_t weights[] = { 1000, 1400, LAST_NS, LAST_NS };
    assert_memory_equal(s.b.trace.samples.weight, weights, sizeof weights);
    trace_builder_done(&s.b);
}

static bool wants(struct gc_stops *stops, enum runtime_event_kind kind, uint32_t thread, uint32_t reason)
{
    uint8_t payload[10] = { (uint8_t)reason };
    return gc_stops_wants(stops, kind, thread, span_of(payload, sizeof payload));
}

static void test_stops(void **state)
{
    (void)state;
    struct gc_stops stops = { 0 };
    assert_true(wants(&stops, RUNTIME_EVENT_RESTART_END, 3, 0)); /* nobody knows of what */
    assert_true(wants(&stops, RUNTIME_EVENT_SUSPEND_BEGIN, 3, RUNTIME_SUSPEND_GC));
    assert_false(wants(&stops, RUNTIME_EVENT_SUSPEND_BEGIN, 900, RUNTIME_SUSPEND_OTHER));
    assert_false(wants(&stops, RUNTIME_EVENT_SUSPEND_END, 900, 0));
    assert_true(wants(&stops, RUNTIME_EVENT_GC_START, 900, 0));
    assert_true(wants(&stops, RUNTIME_EVENT_RESTART_BEGIN, 3, 0));
    assert_false(wants(&stops, RUNTIME_EVENT_RESTART_END, 900, 0));
    assert_true(wants(&stops, RUNTIME_EVENT_RESTART_END, 3, 0));
    assert_true(wants(&stops, RUNTIME_EVENT_SUSPEND_BEGIN, 900, RUNTIME_SUSPEND_GC_PREP));
    assert_true(wants(&stops, RUNTIME_EVENT_RESTART_END, 900, 0));
    assert_true(gc_stops_wants(&stops, RUNTIME_EVENT_SUSPEND_BEGIN, 3, span_of("", 0))); /* cut: who knows */
    gc_stops_done(&stops);
}

/* A thread that allocates is seen where it does, between its samples, whatever it does that tells of it. */
static void test_allocations(void **state)
{
    (void)state;
    enum { THREAD = 7, OTHER = 8, TICK = GC_EVENT_ALLOCATION_TICK, TRIGGERED = 35 };
    struct told_fixture f;
    told_fixture_begin(&f);
    uint32_t at_rest = told_stack(&f, "app", (const char *const[]){ "App.P::Rest()", NULL });
    uint32_t thread = trace_builder_thread(&f.b, f.pid, THREAD, 0);
    trace_push_sample(&f.b.trace.samples, 100, thread, at_rest, 50, SAMPLE_WALL, 0);
    trace_push_sample(&f.b.trace.samples, 400, thread, at_rest, 50, SAMPLE_WALL, 0);
    told_event(&f, 150, THREAD, TICK, 4); /* has no stack */
    f.stack = told_stack(&f, "app", (const char *const[]){ "App.P::Allocate()", NULL });
    told_event(&f, 180, THREAD, TRIGGERED, 0);
    told_event(&f, 200, THREAD, TICK, 4);
    told_event(&f, 250, OTHER, TICK, 4);
    told_event(&f, 270, 0, TICK, 4);
    assert_true(thread_span_add_allocations(&f.b.trace));
    assert_int_equal(f.b.trace.samples.count, 4);
    AUTO_FREE uint64_t *spans = thread_span_weights(&f.b.trace);
    const uint64_t expected[] = { 100, 0, 200, 0 };
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        assert_int_equal(spans[i], expected[i]);
    assert_int_equal(f.b.trace.samples.stack[2], f.stack);
    assert_int_equal(f.b.trace.samples.kind[2], SAMPLE_WALL);
    told_fixture_end(&f);
}

/* Of a run it is not known which of its samples such an event is behind. */
static void test_allocations_divide_runs(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    trace_samples_in_runs(&f.b.trace.samples);
    told_event(&f, 150, 7, GC_EVENT_ALLOCATION_TICK, 4);
    assert_true(thread_span_add_allocations(&f.b.trace)); /* it has no stack */
    f.stack = told_stack(&f, "app", (const char *const[]){ "App.P::Allocate()", NULL });
    told_event(&f, 200, 7, GC_EVENT_ALLOCATION_TICK, 4);
    assert_false(thread_span_add_allocations(&f.b.trace));
    assert_int_equal(f.b.trace.samples.count, 0);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_allocations_divide_runs),
        cmocka_unit_test(test_runs_tell_when),
        cmocka_unit_test(test_time_goes_back),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
