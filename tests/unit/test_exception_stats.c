#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/exception_stats.h"
#include "analyse/thrown_before.h"
#include "base/own.h"
#include "clr/exception_events.h"
#include "told_fixture.h"

enum { THREAD = 10, INNER = 1, NESTED = 2, RETHROWN = 4 };

static void put_thrown(struct told_fixture *f, const char *type, const char *message, uint16_t flags)
{
    told_text(f, type);
    told_text(f, message);
    buffer_u64le(&f->payload, 0x7f00);
    buffer_u32le(&f->payload, 0x80131537);
    buffer_u16le(&f->payload, flags);
    buffer_u16le(&f->payload, 1);
}

static void thrown(struct told_fixture *f, uint64_t time_ns, const char *type, const char *message,
                   uint16_t flags)
{
    put_thrown(f, type, message, flags);
    told_event(f, time_ns, THREAD, EXCEPTION_EVENT_THROWN, 1);
}

static void test_type_names(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    thrown(&f, 10, "Missing`1[System.Collections.Generic.List`1[System.Int32]]", "none", 16);
    static const char *const wanted[] = { "Missing<List<int>>",
                                          "Missing`1[System.Collections.Generic.List`1[System.Int32]]" };
    for (unsigned raw = 0; raw < 2; raw++) {
        struct exception_stats stats;
        exception_stats_init(&stats, &f.b.trace, raw, 0, 0);
        assert_int_equal(stats.tally.total.count, 1);
        assert_string_equal(intern_text(&stats.tally.texts, stats.tally.rows[1].text), wanted[raw]);
        exception_stats_done(&stats);
    }
    told_fixture_end(&f);
}

/* The leaf is who threw, also where compiled code called a helper of the runtime's. */
static void test_helpers_are_cut(void **state)
{
    (void)state;
    static const char *const helpers[] = { "System.Runtime.EH::DispatchEx()",
                                           "Internal.Runtime.CompilerHelpers.ThrowHelpers::ThrowOverflow()",
                                           "System.Runtime.CompilerServices.CastHelpers::ChkCastAny()",
                                           "System.Runtime.CompilerServices.InitHelpers::InitClassSlow()",
                                           "System.Runtime.CompilerServices.StaticsHelpers::GetBase()" };
    for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
        struct told_fixture f;
        struct exception_stats stats;
        told_fixture_begin(&f);
        f.stack = told_stack(&f, "System.Private.CoreLib",
                             (const char *const[]){ "App.Price::Parse()", helpers[i], NULL });
        thrown(&f, 10, "System.FormatException", "no price", 16);
        exception_stats_init(&stats, &f.b.trace, false, 0, 0);
        const struct profile_frame *leaf = event_stacks_leaf(&stats.stacks, stats.tally.rows[1].node);
        assert_string_equal(leaf->name, "App.Price.Parse");
        exception_stats_done(&stats);
        told_fixture_end(&f);
    }
}

static void test_counts(void **state)
{
    (void)state;
    struct told_fixture f;
    struct exception_stats stats;
    struct event_groups groups;
    told_fixture_begin(&f);
    f.stack =
        told_stack(&f, "app", (const char *const[]){ "App.Program::Main()", "App.Price::Parse()", NULL });
    thrown(&f, 10, "System.FormatException", "no price", 16);
    thrown(&f, 20, "System.FormatException", "no price", 16);
    thrown(&f, 30, "System.FormatException", "another", 16);
    f.stack = 0;
    thrown(&f, 40, "System.ArgumentException", "NULL", 16 | INNER | NESTED);
    thrown(&f, 50, "System.ArgumentException", "", 16 | RETHROWN);
    exception_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.tally.total.count, 4);
    assert_int_equal(stats.rethrown, 1);
    assert_int_equal(stats.nested, 1);
    assert_int_equal(stats.malformed, 0);
    event_groups_init(&groups, &stats.tally, TALLY_BY_TEXT);
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.rows[0].sum.count, 3);
    assert_int_equal(groups.rows[0].count, 2);
    const struct tally_row *most = event_group_row(&groups, &groups.rows[0], 0);
    assert_string_equal(intern_text(&stats.tally.texts, most->detail), "no price");
    assert_string_equal(event_stacks_leaf(&stats.stacks, most->node)->name, "App.Price.Parse");
    /* for no message the runtime says "NULL" */
    most = event_group_row(&groups, &groups.rows[1], 0);
    assert_string_equal(intern_text(&stats.tally.texts, most->detail), "");
    event_groups_done(&groups);
    exception_stats_done(&stats);
    /* in a stretch of time */
    exception_stats_init(&stats, &f.b.trace, false, 15, 35);
    assert_int_equal(stats.tally.total.count, 2);
    exception_stats_done(&stats);
    told_fixture_end(&f);
}

/* Each await on the way up throws the same object; one that a task was given was thrown by nobody else. */
static void test_passed_on(void **state)
{
    (void)state;
    static const char *const thrower[] = { "App.Program::Main()", "App.Price::Parse()", NULL };
    static const char *const awaits[] = { "App.Program::Main()",
                                          "System.Runtime.ExceptionServices.ExceptionDispatchInfo::Throw()",
                                          NULL };
    struct told_fixture f;
    struct exception_stats stats;
    told_fixture_begin(&f);
    f.stack = told_stack(&f, "app", thrower);
    thrown(&f, 10, "System.FormatException", "no price", 16);
    f.stack = told_stack(&f, "System.Private.CoreLib", awaits);
    thrown(&f, 20, "System.FormatException", "no price", 16);
    thrown(&f, 30, "System.FormatException", "no price", 16 | NESTED);
    thrown(&f, 40, "System.FormatException", "given to a task", 16);
    thrown(&f, 50, "System.FormatException", "given to a task", 16);
    f.stack = told_stack(&f, "app", awaits); /* a method of the program's */
    thrown(&f, 60, "System.FormatException", "no price", 16);
    f.stack = told_stack(&f, "", awaits); /* whose it is was not told */
    thrown(&f, 70, "System.FormatException", "no price", 16);
    for (int raw_names = 0; raw_names < 2; raw_names++) {
        exception_stats_init(&stats, &f.b.trace, raw_names, 0, 0);
        assert_int_equal(stats.tally.total.count, 4);
        assert_int_equal(stats.rethrown, 3);
        assert_int_equal(stats.nested, 0);
        exception_stats_done(&stats);
    }
    told_fixture_end(&f);
}

/* What a task was given: the innermost await counts, and each time; those around it pass it on. */
static void test_given_to_tasks(void **state)
{
    (void)state;
#define AWAIT                                                                                                \
    "System.Runtime.CompilerServices.TaskAwaiter::GetResult()",                                              \
        "System.Runtime.ExceptionServices.ExceptionDispatchInfo::Throw()", NULL
#define START "System.Runtime.CompilerServices.AsyncMethodBuilderCore::Start()"
#define TELL                                                                                                 \
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1[System.Int32]::SetException()",                \
        "System.Threading.Tasks.Task::RunContinuations()"
    static const struct {
        const char *frames[10];
        bool again;
    } cases[] = {
        { { "A::MoveNext()", START, "B::MoveNext()", AWAIT }, false },
        { { "A::MoveNext()", AWAIT }, true },                          /* it had called the one that failed */
        { { "A::MoveNext()", AWAIT }, false },                         /* another one, of its own */
        { { "A::MoveNext()", START, "B::MoveNext()", AWAIT }, false }, /* it tries again */
        { { "B::MoveNext()", AWAIT }, false },
        { { "B::MoveNext()", TELL, "A::MoveNext()", AWAIT },
          true }, /* it goes on when the other has failed */
        { { "C::MoveNext()", AWAIT }, false },
    };
#undef AWAIT
#undef START
#undef TELL
    struct told_fixture f;
    struct exception_stats stats;
    uint64_t thrown_again = 0;
    told_fixture_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        f.stack = told_stack(&f, "", cases[i].frames);
        thrown(&f, 10 + i, "System.TimeoutException", "late", 16);
        thrown_again += cases[i].again;
        exception_stats_init(&stats, &f.b.trace, false, 0, 0);
        assert_int_equal(stats.rethrown, thrown_again);
        assert_int_equal(stats.tally.total.count, i + 1 - thrown_again);
        exception_stats_done(&stats);
    }
    told_fixture_end(&f);
}

/* The latest kinds are known, many of them. */
static void test_many_kinds(void **state)
{
    (void)state;
    struct thrown_before before = { 0 };
    const struct span type = span_of("T", 1);
    for (uint32_t i = 0; i < 5 * THROWN_BEFORE_MAX; i++) {
        thrown_before_add(&before, thrown_before_kind(1, type, span_of(&i, sizeof i)));
        thrown_before_add(&before, thrown_before_kind(1, type, span_of(&i, sizeof i)));
        uint32_t earlier = i < THROWN_BEFORE_MAX / 2 ? 0 : i - THROWN_BEFORE_MAX / 2 + 1;
        assert_true(
            thrown_before_has(&before, thrown_before_kind(1, type, span_of(&earlier, sizeof earlier))));
        assert_false(thrown_before_has(&before, thrown_before_kind(2, type, span_of(&i, sizeof i))));
    }
    assert_false(thrown_before_has(&before, thrown_before_kind(1, type, span_of(&(uint32_t){ 0 }, 4))));
    assert_in_range(before.kinds[0].count + before.kinds[1].count, 1, THROWN_BEFORE_MAX);
    thrown_before_done(&before);
}

static void test_cut_payloads(void **state)
{
    (void)state;
    struct told_fixture f;
    struct exception_stats stats;
    struct buffer whole;
    told_fixture_begin(&f);
    buffer_init(&whole, 1 << 10);
    put_thrown(&f, "T", "m", 0);
    buffer_append(&whole, f.payload.data, f.payload.size);
    for (size_t size = 0; size < whole.size; size++) {
        buffer_clear(&f.payload);
        buffer_append(&f.payload, whole.data, size);
        told_event(&f, 1000 + size, THREAD, EXCEPTION_EVENT_THROWN, 1);
    }
    exception_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.malformed, 4); /* the type is cut */
    assert_int_equal(stats.tally.total.count, whole.size - 4);
    exception_stats_done(&stats);
    buffer_done(&whole);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),         cmocka_unit_test(test_helpers_are_cut),
        cmocka_unit_test(test_type_names),     cmocka_unit_test(test_passed_on),
        cmocka_unit_test(test_given_to_tasks), cmocka_unit_test(test_many_kinds),
        cmocka_unit_test(test_cut_payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
