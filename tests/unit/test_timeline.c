#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/timeline.h"
#include "base/own.h"
#include "clr/exception_events.h"
#include "told_fixture.h"

#define MS UINT64_C(1000000)

enum { START_MS = 1000, LONG_MESSAGE = 3000, CLS_COMPLIANT = 0x10, TID = 9 };

static void begin(struct told_fixture *f)
{
    told_fixture_begin(f);
    told_asked(f, 1, 4, START_MS * MS, 0);
}

static void tell(struct told_fixture *f, uint32_t event_id, uint64_t at_ms)
{
    told_event(f, (START_MS + at_ms) * MS, TID, event_id, 1);
}

static void tell_words(struct told_fixture *f, uint32_t event_id, uint64_t at_ms, const uint32_t *words,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_u32le(&f->payload, words[i]);
    buffer_u16le(&f->payload, 0);
    tell(f, event_id, at_ms);
}

static void collect(struct told_fixture *f, uint32_t number, uint32_t generation, uint64_t at_ms)
{
    tell_words(f, 9, at_ms, (const uint32_t[]){ 1, number }, 2);
    tell_words(f, 8, at_ms, NULL, 0);
    tell_words(f, 1, at_ms + 1, (const uint32_t[]){ number, generation, 1, 0 }, 4);
    tell_words(f, 2, at_ms + 3, (const uint32_t[]){ number, generation }, 2);
    tell_words(f, 7, at_ms + 4, NULL, 0);
    tell_words(f, 3, at_ms + 4, NULL, 0);
}

static void throw_flagged(struct told_fixture *f, uint64_t at_ms, const char *type, const char *message,
                          uint16_t flags, size_t cut)
{
    told_text(f, type);
    told_text(f, message);
    buffer_u64le(&f->payload, 0);
    buffer_u32le(&f->payload, 0x80131500);
    buffer_u16le(&f->payload, flags);
    buffer_u16le(&f->payload, 0);
    if (cut < f->payload.size)
        f->payload.size = cut;
    tell(f, EXCEPTION_EVENT_THROWN, at_ms);
}

static void throw(struct told_fixture * f, uint64_t at_ms, const char *type, const char *message, size_t cut)
{
    throw_flagged(f, at_ms, type, message, CLS_COMPLIANT, cut);
}

static void test_marks_by_time(void **state)
{
    (void)state;
    struct told_fixture f;
    struct timeline told;
    begin(&f);
    collect(&f, 1, 0, 10);
    throw(&f, 5, "Shop.OutOfStock", "no shoes", SIZE_MAX);
    timeline_init(&told, &f.b.trace, NULL, START_MS * MS, START_MS * MS, 0);
    assert_int_equal(told.mark_count, 3);
    assert_int_equal(told.marks[0].kind, TIMELINE_EXCEPTION);
    assert_string_equal(told.marks[0].text, "Shop.OutOfStock: no shoes");
    assert_true(told.marks[0].from_ns == 5 * MS && told.marks[0].to_ns == 5 * MS);
    assert_int_equal(told.marks[0].tid, TID);
    assert_int_equal(told.marks[1].kind, TIMELINE_PAUSE);
    assert_true(told.marks[1].from_ns == 10 * MS && told.marks[1].to_ns == 14 * MS);
    assert_int_equal(told.marks[2].kind, TIMELINE_COLLECTION);
    assert_true(told.marks[2].from_ns == 11 * MS && told.marks[2].to_ns == 13 * MS);
    assert_string_equal(told.marks[2].text, "#1 gen 0: induced");
    assert_int_equal(told.marks[2].pid, TOLD_PID);
    timeline_done(&told);
    told_fixture_end(&f);
}

static void test_part_of_the_time(void **state)
{
    (void)state;
    struct told_fixture f;
    struct timeline told;
    begin(&f);
    for (uint32_t i = 0; i < 10; i++) {
        collect(&f, i + 1, 0, 10 * i);
        throw(&f, 10 * i, "T", "m", SIZE_MAX);
    }
    timeline_init(&told, &f.b.trace, NULL, START_MS * MS, (START_MS + 20) * MS, (START_MS + 50) * MS);
    assert_int_equal(told.mark_count, 9);
    for (size_t i = 0; i < told.mark_count; i++)
        assert_true(told.marks[i].from_ns >= 20 * MS && told.marks[i].from_ns < 50 * MS);
    timeline_done(&told);
    told_fixture_end(&f);
}

/* However long or short a message is: it is an exception. */
static void test_messages(void **state)
{
    (void)state;
    static char message[LONG_MESSAGE + 1];
    struct told_fixture f;
    struct timeline told;
    begin(&f);
    memset(message, 'm', LONG_MESSAGE);
    throw(&f, 1, "T", message, SIZE_MAX);
    for (size_t cut = 0; cut < 20; cut++)
        throw(&f, 2 + cut, "Type", "message", cut);
    timeline_init(&told, &f.b.trace, NULL, START_MS * MS, 0, 0);
    assert_int_equal(told.mark_count, 21);
    assert_true(strncmp(told.marks[0].text, "T: ", 3) == 0);
    assert_true(strlen(told.marks[0].text) < LONG_MESSAGE);
    assert_string_equal(told.marks[20].text, "Type: ");
    timeline_done(&told);
    told_fixture_end(&f);
}

static void test_thrown_again(void **state)
{
    (void)state;
    struct told_fixture f;
    struct timeline told;
    begin(&f);
    throw(&f, 1, "T", "m", SIZE_MAX);
    throw_flagged(&f, 2, "T", "m", CLS_COMPLIANT | EXCEPTION_FLAG_RETHROWN, SIZE_MAX);
    timeline_init(&told, &f.b.trace, NULL, START_MS * MS, 0, 0);
    assert_int_equal(told.mark_count, 2);
    assert_string_equal(told.marks[0].text, "T: m");
    assert_string_equal(told.marks[1].text, "thrown again: T: m");
    timeline_done(&told);
    told_fixture_end(&f);
}

/* An await throws what somebody made. */
static void test_passed_on(void **state)
{
    (void)state;
    static const char *const awaits[] = { "App.Program::Main()",
                                          "System.Runtime.ExceptionServices.ExceptionDispatchInfo::Throw()",
                                          NULL };
    struct told_fixture f;
    struct timeline told;
    begin(&f);
    f.stack = told_stack(&f, "System.Private.CoreLib", awaits);
    throw(&f, 1, "T", "made by nobody", SIZE_MAX);
    f.stack = 0;
    throw(&f, 2, "T", "m", SIZE_MAX);
    f.stack = told_stack(&f, "System.Private.CoreLib", awaits);
    throw(&f, 3, "T", "m", SIZE_MAX);
    timeline_init(&told, &f.b.trace, NULL, START_MS * MS, 0, 0);
    assert_int_equal(told.mark_count, 3);
    assert_string_equal(told.marks[0].text, "T: made by nobody");
    assert_string_equal(told.marks[1].text, "T: m");
    assert_string_equal(told.marks[2].text, "thrown again: T: m");
    timeline_done(&told);
    told_fixture_end(&f);
}

static void test_nothing_was_told(void **state)
{
    (void)state;
    struct told_fixture f;
    struct timeline told;
    told_fixture_begin(&f);
    timeline_init(&told, &f.b.trace, NULL, 0, 0, 0);
    assert_int_equal(told.mark_count + told.size_count, 0);
    timeline_done(&told);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_by_time),    cmocka_unit_test(test_part_of_the_time),
        cmocka_unit_test(test_messages),         cmocka_unit_test(test_thrown_again),
        cmocka_unit_test(test_nothing_was_told), cmocka_unit_test(test_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
