#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/process_events.h"
#include "analyse/told_events.h"
#include "trace/builder.h"

static uint32_t add_process(struct trace_builder *b, uint32_t pid, const char *name)
{
    uint32_t process = trace_builder_process_start(b, pid, 1);
    b->trace.processes.rows[process].name = trace_add_string(&b->trace, name);
    uint32_t asked = trace_push(&b->trace.subscriptions);
    b->trace.subscriptions.rows[asked] = (struct trace_subscription){
        .process = process, .provider = trace_add_string(&b->trace, name), .level = 4
    };
    uint32_t lost = trace_push(&b->trace.losses);
    b->trace.losses.rows[lost] = (struct trace_loss){ .process = process, .count = pid };
    return process;
}

/* Each with its time as its activity. */
static void add_event(struct trace_builder *b, uint32_t process, uint64_t time_ns)
{
    uint32_t event = trace_push(&b->trace.events), activity = trace_push(&b->trace.event_activities);
    b->trace.events.rows[event] = (struct trace_event){ .time_ns = time_ns, .process = process };
    b->trace.event_activities.rows[activity] =
        (struct trace_event_activity){ .event = event, .id = { (uint8_t)time_ns } };
}

/* Two processes whose events alternate: three of shop, two of worker. */
static void make(struct trace_builder *b)
{
    trace_builder_init(b, 16);
    uint32_t shop = add_process(b, 11, "shop"), worker = add_process(b, 12, "worker");
    trace_push(&b->trace.losses); /* nobody knows whose */
    for (uint64_t time_ns = 1; time_ns <= 5; time_ns++)
        add_event(b, time_ns % 2 ? shop : worker, time_ns);
}

static void assert_kept(const struct trace_builder *b, uint32_t pid, const uint8_t *times, size_t count)
{
    const struct trace *t = &b->trace;
    assert_int_equal(t->events.count, count + 1);
    assert_int_equal(t->event_activities.count, count + 1);
    assert_int_equal(t->losses.count, 1 + 2);
    assert_int_equal(t->losses.rows[1].count, pid);
    assert_int_equal(t->losses.rows[2].process, 0);
    for (size_t i = 1; i <= count; i++) {
        assert_int_equal(t->events.rows[i].time_ns, times[i - 1]);
        assert_int_equal(t->processes.rows[t->events.rows[i].process].pid, pid);
        assert_int_equal(t->event_activities.rows[i].event, i);
        assert_int_equal(t->event_activities.rows[i].id[0], times[i - 1]);
    }
}

static void test_keeps_one(void **state)
{
    (void)state;
    static const uint8_t of_shop[] = { 1, 3, 5 }, of_worker[] = { 2, 4 };
    struct trace_builder b;
    make(&b);
    assert_true(process_events_told(&b.trace, 2));
    process_events_keep(&b.trace, &(struct thread_filter){ .process = "SH*" });
    assert_false(process_events_told(&b.trace, 2));
    assert_kept(&b, 11, of_shop, 3);
    assert_true(told_was_asked(&b.trace, "shop", 0, 4));
    assert_false(told_was_asked(&b.trace, "worker", 0, 4));
    trace_builder_done(&b);
    make(&b);
    process_events_keep(&b.trace, &(struct thread_filter){ .process = "12" });
    assert_kept(&b, 12, of_worker, 2);
    trace_builder_done(&b);
}

static void test_keeps_none_and_all(void **state)
{
    (void)state;
    static const uint8_t all[] = { 1, 2, 3, 4, 5 };
    struct trace_builder b;
    make(&b);
    process_events_keep(&b.trace, &(struct thread_filter){ .process = "*" });
    assert_int_equal(b.trace.events.count, 6);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(b.trace.events.rows[i + 1].time_ns, all[i]);
    process_events_keep(&b.trace, &(struct thread_filter){ .process = "1" });
    assert_int_equal(b.trace.event_activities.count, 1);
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_keeps_one),
                                        cmocka_unit_test(test_keeps_none_and_all) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
