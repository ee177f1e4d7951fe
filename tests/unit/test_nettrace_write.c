/* What is written as a nettrace file is what is read from it again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/own.h"
#include "nettrace_round.h"

static void check_events(const struct trace *a, const struct trace *b)
{
    size_t before = 0;
    for (size_t i = 1, k = 1; i < a->events.count; i++, k++) {
        const struct trace_event *x = &a->events.rows[i], *y = NULL;
        assert_true(x->time_ns >= before);
        before = x->time_ns;
        assert_true(k < b->events.count);
        y = &b->events.rows[k];
        const struct trace_event_type *p = &a->event_types.rows[x->type], *q = &b->event_types.rows[y->type];
        assert_int_equal(x->time_ns, y->time_ns);
        assert_string_equal(trace_string(a, p->provider), trace_string(b, q->provider));
        assert_int_equal(p->event_id, q->event_id);
        assert_int_equal(p->version, q->version);
        assert_int_equal(p->keywords, q->keywords);
        assert_int_equal(p->level, q->level);
        assert_true(span_equals(trace_event_payload(a, x), trace_event_payload(b, y)));
        assert_int_equal(a->threads.rows[x->thread].tid, b->threads.rows[y->thread].tid);
        check_stacks(a, x->stack, b, y->stack);
    }
}

/* A file of a runtime is written again; its events are sorted by time then. */
static void test_again(void **state)
{
    (void)state;
    static uint8_t bytes[128 << 10];
    struct trace_builder first, second, third;
    struct buffer once, twice;
    FILE *file = fopen(GOLDEN_DIR "/nettrace/primes.nettrace", "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    import_bytes(&first, span_of(bytes, size));
    write_trace(&first.trace, &once);
    import_bytes(&second, buffer_span(&once));
    write_trace(&second.trace, &twice);
    import_bytes(&third, buffer_span(&twice));
    assert_true(second.trace.complete);
    assert_int_equal(second.trace.samples.count, 150);
    for (size_t i = 0; i < 150; i++) {
        assert_int_equal(first.trace.samples.time_ns[i], second.trace.samples.time_ns[i]);
        assert_int_equal(first.trace.samples.weight[i], second.trace.samples.weight[i]);
        check_stacks(&first.trace, first.trace.samples.stack[i], &second.trace,
                     second.trace.samples.stack[i]);
    }
    uint64_t lost[2] = { 0 };
    for (size_t i = 1; i < first.trace.losses.count; i++)
        lost[0] += first.trace.losses.rows[i].count;
    for (size_t i = 1; i < second.trace.losses.count; i++)
        lost[1] += second.trace.losses.rows[i].count;
    assert_int_equal(lost[0], lost[1]);
    check_events(&second.trace, &third.trace);
    trace_builder_done(&first);
    trace_builder_done(&second);
    trace_builder_done(&third);
    buffer_done(&once);
    buffer_done(&twice);
}

static void test_full_sink(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t thread = trace_builder_thread(&b, 10, 11, 1);
    trace_push_sample(&b.trace.samples, 5, thread, STACK_WHOLE, 100, SAMPLE_CPU, 0);
    for (size_t ceiling = 0; ceiling < 100; ceiling += 33) {
        struct buffer memory;
        struct output out;
        struct error err = { 0 };
        buffer_init(&memory, ceiling);
        output_over_buffer(&out, &memory);
        bool ok = nettrace_write(&b.trace, &out, &err);
        ok = output_close(&out, ok ? &err : NULL) && ok;
        assert_false(ok);
        assert_int_equal(err.kind, ERROR_LIMIT);
        buffer_done(&memory);
    }
    trace_builder_done(&b);
}

static void test_nothing(void **state)
{
    (void)state;
    struct trace_builder b;
    struct output out;
    struct buffer file;
    struct error err;
    trace_builder_init(&b, 64);
    buffer_init(&file, 1 << 20);
    output_over_buffer(&out, &file);
    assert_false(nettrace_write(&b.trace, &out, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    output_close(&out, NULL);
    trace_builder_done(&b);
    buffer_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_full_sink),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
