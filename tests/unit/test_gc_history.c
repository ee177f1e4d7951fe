#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/gc_history.h"
#include "analyse/profile.h"
#include "base/own.h"
#include "clr/runtime_events.h"
#include "trace/builder.h"

enum { PID = 1, OTHER_PID = 2, COLLECTOR = 10, WORKER = 11, FROM_NS = 1000, TO_NS = 100000 };

struct told {
    uint64_t time_ns;
    uint32_t tid; /* 0: not known */
    uint32_t event_id;
    uint32_t words[4];
    uint32_t pid;
};

static void subscribe(struct trace_builder *b, uint32_t pid, uint64_t from_ns, uint64_t to_ns)
{
    uint32_t process = trace_builder_process_start(b, pid, 0);
    uint32_t id = trace_push(&b->trace.subscriptions);
    b->trace.subscriptions.rows[id] =
        (struct trace_subscription){ .process = process,
                                     .provider = trace_add_string(&b->trace, RUNTIME_PROVIDER),
                                     .keywords = RUNTIME_KEYWORD_GC,
                                     .level = 4,
                                     .from_ns = from_ns,
                                     .to_ns = to_ns };
}

static void tell(struct trace_builder *b, const struct told *told)
{
    uint32_t pid = told->pid ? told->pid : PID;
    const struct trace_event row = {
        .time_ns = told->time_ns,
        .type = trace_builder_event_type(
            b, &(struct trace_event_type){ .provider = trace_add_string(&b->trace, RUNTIME_PROVIDER),
                                           .event_id = told->event_id }),
        .process = trace_builder_process(b, pid),
        .thread = told->tid ? trace_builder_thread(b, pid, told->tid, 0) : 0,
    };
    struct buffer payload;
    buffer_init(&payload, 64);
    for (unsigned i = 0; i < ARRAY_LEN(told->words); i++)
        buffer_u32le(&payload, told->words[i]);
    assert_true(trace_push_event(&b->trace, &row, buffer_span(&payload)));
    buffer_done(&payload);
}

/* One collection that blocks, one in the background with its two pauses, and a stop for another reason. */
static const struct told stream[] = {
    { 2000, COLLECTOR, 9, { RUNTIME_SUSPEND_GC } },
    { 2010, COLLECTOR, 8, { 0 } },
    { 2020, COLLECTOR, 1, { 1, 0, 0, RUNTIME_GC_BLOCKING } },
    { 2900, COLLECTOR, 2, { 1, 0 } },
    { 2950, COLLECTOR, 7, { 0 } },
    { 3000, COLLECTOR, 3, { 0 } },
    { 5000, COLLECTOR, 9, { RUNTIME_SUSPEND_GC } },
    { 5010, COLLECTOR, 1, { 2, 2, 0, RUNTIME_GC_BACKGROUND } },
    { 5100, COLLECTOR, 7, { 0 } },
    { 5110, COLLECTOR, 3, { 0 } },
    { 7000, WORKER, 9, { RUNTIME_SUSPEND_GC_PREP } },
    { 7100, COLLECTOR, 9, { RUNTIME_SUSPEND_OTHER } }, /* waits for its turn */
    { 7150, COLLECTOR, 3, { 0 } },
    { 7300, WORKER, 7, { 0 } },
    { 7310, WORKER, 3, { 0 } },
    { 8000, WORKER, 2, { 2, 2 } },
    { 9000, COLLECTOR, 9, { RUNTIME_SUSPEND_OTHER } },
    { 9100, COLLECTOR, 3, { 0 } },
};

static void tell_all(struct trace_builder *b)
{
    trace_builder_init(b, 64);
    subscribe(b, PID, FROM_NS, TO_NS);
    for (size_t i = ARRAY_LEN(stream); i-- > 0;) /* threads report one after the other */
        tell(b, &stream[i]);
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        uint64_t time_ns;
        enum gc_time collector, worker;
    } times[] = {
        { 500, GC_TIME_UNTOLD, GC_TIME_UNTOLD },    { 1000, GC_TIME_NONE, GC_TIME_NONE },
        { 1999, GC_TIME_NONE, GC_TIME_NONE },       { 2000, GC_TIME_OWN, GC_TIME_OTHERS },
        { 2999, GC_TIME_OWN, GC_TIME_OTHERS },      { 3000, GC_TIME_NONE, GC_TIME_NONE },
        { 5050, GC_TIME_OWN, GC_TIME_OTHERS },      { 6000, GC_TIME_NONE, GC_TIME_NONE },
        { 7200, GC_TIME_OTHERS, GC_TIME_OWN },      { 2500, GC_TIME_OWN, GC_TIME_OTHERS }, /* and back */
        { 9050, GC_TIME_NONE, GC_TIME_NONE },       { 99999, GC_TIME_NONE, GC_TIME_NONE },
        { 100000, GC_TIME_UNTOLD, GC_TIME_UNTOLD },
    };
    struct trace_builder b;
    struct gc_history history;
    tell_all(&b);
    uint32_t collector = trace_builder_thread(&b, PID, COLLECTOR, 0);
    uint32_t worker = trace_builder_thread(&b, PID, WORKER, 0);
    uint32_t stranger = trace_builder_thread(&b, OTHER_PID, WORKER, 0);
    gc_history_init(&history, &b.trace);
    assert_true(history.told);
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        assert_int_equal(gc_history_at(&history, collector, times[i].time_ns), times[i].collector);
        assert_int_equal(gc_history_at(&history, worker, times[i].time_ns), times[i].worker);
        assert_int_equal(gc_history_at(&history, stranger, times[i].time_ns), GC_TIME_UNTOLD);
    }
    gc_history_done(&history);
    trace_builder_done(&b);
}

static void test_summary(void **state)
{
    (void)state;
    struct trace_builder b;
    struct gc_history history;
    tell_all(&b);
    gc_history_init(&history, &b.trace);
    struct gc_summary sum = gc_history_summary(&history, NULL, 0, TO_NS);
    assert_int_equal(sum.processes, 1);
    assert_int_equal(sum.told_ns, TO_NS - FROM_NS);
    assert_int_equal(sum.collections[0], 1);
    assert_int_equal(sum.collections[1], 0);
    assert_int_equal(sum.collections[2], 1);
    assert_int_equal(sum.background, 1);
    assert_int_equal(sum.pauses, 3);
    assert_int_equal(sum.paused_ns, 950 + 100 + 300); /* up to when threads are let go */
    assert_int_equal(sum.longest_ns, 950);
    sum = gc_history_summary(&history, NULL, 2100, 5050); /* two pauses are cut, one start is before it */
    assert_int_equal(sum.collections[0], 0);
    assert_int_equal(sum.collections[2], 1);
    assert_int_equal(sum.pauses, 2);
    assert_int_equal(sum.paused_ns, 850 + 50);
    gc_history_done(&history);
    trace_builder_done(&b);
}

/* What is lost, cut short or made up never makes a pause that nobody told of. */
static void test_bad_streams(void **state)
{
    (void)state;
    static const struct {
        struct told told[6];
        uint64_t pauses, paused_ns, collections;
    } cases[] = {
        { { { 2000, COLLECTOR, 3, { 0 } } }, 0, 0, 0 }, /* its begin is from before the session */
        { { { 2000, COLLECTOR, 9, { 1 } }, { 3000, WORKER, 3, { 0 } } }, 1, TO_NS - 2000, 0 },
        { { { 2000, COLLECTOR, 9, { 1 } },
            { 4000, COLLECTOR, 9, { 1 } }, /* the end was lost */
            { 4500, COLLECTOR, 3, { 0 } } },
          1,
          500,
          0 },
        { { { 2000, COLLECTOR, 9, { 5 } }, { 3000, COLLECTOR, 3, { 0 } } }, 0, 0, 0 }, /* a debugger */
        { { { 2000, COLLECTOR, 1, { 1, 77, 0, 0 } } }, 0, 0, 0 }, /* no such generation */
        { { { 2000, 0, 9, { 1 } }, { 2500, 0, 7, { 0 } }, { 2600, 0, 3, { 0 } } }, 1, 500, 0 },
        { { { 2000, COLLECTOR, 9, { 1 } }, { 2001, COLLECTOR, 143, { 0 } }, { 3000, COLLECTOR, 3, { 0 } } },
          1,
          1000,
          0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace_builder b;
        struct gc_history history;
        trace_builder_init(&b, 64);
        subscribe(&b, PID, FROM_NS, TO_NS);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].told) && cases[i].told[k].time_ns; k++)
            tell(&b, &cases[i].told[k]);
        gc_history_init(&history, &b.trace);
        struct gc_summary sum = gc_history_summary(&history, NULL, 0, UINT64_MAX);
        if (sum.pauses != cases[i].pauses || sum.paused_ns != cases[i].paused_ns)
            fail_msg("case %zu: %llu pauses of %llu ns", i, (unsigned long long)sum.pauses,
                     (unsigned long long)sum.paused_ns);
        assert_int_equal(sum.collections[0] + sum.collections[1] + sum.collections[2], cases[i].collections);
        gc_history_done(&history);
        trace_builder_done(&b);
    }
}

static void test_nothing_told(void **state)
{
    (void)state;
    struct trace_builder b;
    struct gc_history history;
    trace_builder_init(&b, 64);
    gc_history_init(&history, &b.trace);
    assert_false(history.told);
    assert_int_equal(gc_history_summary(&history, NULL, 0, UINT64_MAX).processes, 0);
    gc_history_done(&history);
    subscribe(&b, PID, FROM_NS, 0);
    b.trace.subscriptions.rows[1].keywords = RUNTIME_KEYWORD_JIT; /* something else was asked for */
    gc_history_init(&history, &b.trace);
    assert_false(history.told);
    gc_history_done(&history);
    trace_builder_done(&b);
}

/* One stack, sampled before the session, outside and inside of a pause: three kinds of work, each its own. */
static void test_profile(void **state)
{
    (void)state;
    static const uint64_t sampled_ns[] = { 500, 2500, 2600, 4000, 7200 };
    struct trace_builder b;
    struct profile *p;
    struct error err;
    tell_all(&b);
    b.trace.symbolized = true;
    const uint32_t functions[] = {
        trace_builder_function(&b,
                               &(struct trace_function){ .name = trace_add_string(&b.trace, "App::Main()"),
                                                         .module = trace_add_string(&b.trace, "App"),
                                                         .kind = CODE_JIT }),
        trace_builder_function(
            &b, &(struct trace_function){ .name = trace_add_string(&b.trace, "JIT_New"),
                                          .module = trace_add_string(&b.trace, "libcoreclr.so"),
                                          .kind = CODE_RUNTIME }),
    };
    uint32_t stack = trace_builder_named_stack(&b, functions, ARRAY_LEN(functions));
    uint32_t thread = trace_builder_thread(&b, PID, COLLECTOR, 0);
    for (size_t i = 0; i < ARRAY_LEN(sampled_ns); i++)
        trace_push_sample(&b.trace.samples, sampled_ns[i], thread, stack, 10, SAMPLE_CPU, 0);
    for (int grouped = 0; grouped < 2; grouped++) {
        const struct profile_options options = { .group_runtime = grouped };
        assert_true(profile_build(&b.trace, &options, &p, &err));
        assert_int_equal(p->counts.samples, 5);
        assert_int_equal(p->counts.work[WORK_GC], 40); /* while another thread collects it waits for that */
        assert_int_equal(p->counts.work[WORK_ALLOCATION], 10);
        assert_int_equal(p->counts.gc_untold, 10);
        assert_int_equal(p->counts.whole, 5);
        assert_int_equal(p->total[0], 50);
        assert_int_equal(p->counts.gc.collections[0], 1);
        assert_int_equal(p->node_count, grouped ? 4 : 3); /* [GC] and [allocating] below Main */
        uint64_t self = 0;
        for (uint32_t node = 1; node < p->node_count; node++)
            self += p->self[node];
        assert_int_equal(self, 50);
        profile_free(p);
    }
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),       cmocka_unit_test(test_summary),
        cmocka_unit_test(test_bad_streams), cmocka_unit_test(test_nothing_told),
        cmocka_unit_test(test_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
