#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/event_query.h"
#include "analyse/sample_events.h"
#include "base/cursor.h"
#include "told_fixture.h"
#include "trace/facts.h"

enum { THREAD = 10, STARTED = 81 };

/* The rest of the query: "name@time " for each event. */
static const char *told(struct event_query *q, struct buffer *out)
{
    const struct trace *t = q->trace;
    uint32_t event;
    buffer_clear(out);
    while ((event = event_query_next(q)))
        buffer_format(out, "%s@%u ", event_schema_name(event_query_schema(q, event)),
                      (unsigned)t->events.rows[event].time_ns);
    buffer_u8(out, 0);
    return (const char *)out->data;
}

static void test_among_events(void **state)
{
    (void)state;
    struct told_fixture f;
    struct event_query q;
    struct buffer text;
    told_fixture_begin(&f);
    struct trace *t = &f.b.trace;
    uint32_t stack = told_stack(&f, "app", (const char *const[]){ "App.P::Main()", "App.P::A()", NULL });
    told_event(&f, 200, THREAD, STARTED, 0);
    uint32_t thread = t->events.rows[1].thread;
    trace_set_fact(t, FACT_COUNTED_EVENT, "context-switches");
    trace_push_sample(&t->samples, 100, thread, stack, 5000, SAMPLE_CPU, 3);
    trace_push_sample(&t->samples, 300, thread, stack, 1, SAMPLE_EVENT, 258);
    trace_push_sample(&t->samples, 400, thread, stack, 1, SAMPLE_WALL, 0); /* is an event already */
    assert_true(sample_events_add(t));
    buffer_init(&text, 1 << 16);
    event_query_init(&q, t, &(struct event_wish){ 0 }, true);
    assert_string_equal(told(&q, &text), "cpu@100 Contention/Start@200 context-switches@300 ");
    event_query_done(&q);

    const struct event_condition on_cpu = { "CPU", EVENT_IS, "258" };
    struct event_wish wish = { .provider = "linux", .conditions = &on_cpu, .condition_count = 1 };
    event_query_init(&q, t, &wish, true);
    assert_string_equal(told(&q, &text), "context-switches@300 ");
    event_query_done(&q);
    buffer_done(&text);
    told_fixture_end(&f);
}

/* What has native frames of its own is told from what lacks them. */
static void test_own_stack(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    struct trace *t = &f.b.trace;
    told_event(&f, 200, THREAD, STARTED, 0);
    trace_push_sample(&t->samples, 100, t->events.rows[1].thread, 0, 5000, SAMPLE_CPU, 3);
    assert_true(sample_events_add(t));
    assert_int_equal(t->events.count, 3);
    assert_false(sample_events_has(t, &t->events.rows[1]));
    assert_true(sample_events_has(t, &t->events.rows[2]));
    told_fixture_end(&f);
}

static void test_without_samples(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    size_t types = f.b.trace.event_types.count;
    assert_true(sample_events_add(&f.b.trace));
    assert_int_equal(f.b.trace.event_types.count, types);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_among_events),
        cmocka_unit_test(test_own_stack),
        cmocka_unit_test(test_without_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
