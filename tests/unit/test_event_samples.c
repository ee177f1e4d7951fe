#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/event_samples.h"
#include "analyse/profile.h"
#include "base/own.h"
#include "told_fixture.h"
#include "trace/facts.h"

enum { THREAD = 10, THROWN = 80, TRIGGERED = 35 };

static void test_first_kind(void **state)
{
    (void)state;
    struct told_fixture f;
    struct profile *p;
    told_fixture_begin(&f);
    uint32_t stack = told_stack(&f, "app", (const char *const[]){ "App.P::Main()", "App.P::A()", NULL });
    told_event(&f, 100, THREAD, TRIGGERED, 0); /* has none */
    f.stack = stack;
    told_event(&f, 300, THREAD, TRIGGERED, 0);
    told_event(&f, 200, THREAD, THROWN, 0);
    told_event(&f, 400, THREAD, THROWN, 1); /* another version of it */
    told_event(&f, 500, 0, THROWN, 1);      /* of no thread */
    assert_true(event_samples_add(&f.b.trace, NULL));
    assert_int_equal(f.b.trace.samples.count, 2);
    assert_string_equal(trace_fact_value(&f.b.trace, FACT_COUNTED_EVENT), "Exception/Start");
    assert_true(profile_build(&f.b.trace, &(struct profile_options){ .kind = SAMPLE_EVENT }, &p, NULL));
    assert_int_equal(p->counts.weight, 2);
    assert_string_equal(p->weight_unit, "count");
    profile_free(p);
    assert_false(event_samples_add(&f.b.trace, NULL)); /* it has samples now */
    told_fixture_end(&f);
}

static void test_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t samples;
    } cases[] = { { "GC/Triggered", 2 }, { "Exception/Start", 1 }, { "GC/Start", 0 }, { "cpu", 0 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct told_fixture f;
        told_fixture_begin(&f);
        f.stack = told_stack(&f, "app", (const char *const[]){ "App.P::Main()", NULL });
        told_event(&f, 100, THREAD, THROWN, 0);
        told_event(&f, 200, THREAD, TRIGGERED, 0);
        told_event(&f, 300, THREAD, TRIGGERED, 0);
        f.stack = 0;
        told_event(&f, 400, THREAD, 1, 0); /* GC/Start has no stack */
        assert_int_equal(event_samples_add(&f.b.trace, cases[i].name), cases[i].samples != 0);
        assert_int_equal(f.b.trace.samples.count, cases[i].samples);
        const char *counted = trace_fact_value(&f.b.trace, FACT_COUNTED_EVENT);
        assert_string_equal(counted ? counted : "", cases[i].samples ? cases[i].name : "");
        told_fixture_end(&f);
    }
}

/* As in the reports, which begin where the recording does: a runtime may tell of what was before. */
static void test_before_recording(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    f.stack = told_stack(&f, "app", (const char *const[]){ "App.P::Main()", NULL });
    trace_set_fact_number(&f.b.trace, FACT_STARTED_MONOTONIC_NS, 200);
    told_event(&f, 100, THREAD, TRIGGERED, 0);
    told_event(&f, 199, THREAD, THROWN, 0);
    assert_false(event_samples_add(&f.b.trace, NULL));
    told_event(&f, 200, THREAD, THROWN, 0);
    assert_true(event_samples_add(&f.b.trace, NULL));
    assert_int_equal(f.b.trace.samples.count, 1);
    assert_string_equal(trace_fact_value(&f.b.trace, FACT_COUNTED_EVENT), "Exception/Start");
    told_fixture_end(&f);
}

static void test_none(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    told_event(&f, 100, THREAD, TRIGGERED, 0);
    assert_false(event_samples_add(&f.b.trace, NULL));
    assert_int_equal(f.b.trace.samples.count, 0);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_kind),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_before_recording),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
