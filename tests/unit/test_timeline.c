#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/timeline.h"
#include "base/own.h"
#include "clr/exception_events.h"
#include "trace/builder.h"

#define RUNTIME "Microsoft-Windows-DotNETRuntime"
#define MS      UINT64_C(1000000)

enum { START_MS = 1000, LONG_MESSAGE = 3000, CLS_COMPLIANT = 0x10 };

struct source {
    struct trace_builder b;
    uint32_t process, thread;
};

static void begin(struct source *s)
{
    trace_builder_init(&s->b, 64);
    s->process = trace_builder_process_start(&s->b, 7, 1);
    s->thread = trace_builder_thread(&s->b, 7, 9, 1);
    struct trace *t = &s->b.trace;
    uint32_t provider = trace_add_string(t, RUNTIME), id = trace_push(&t->subscriptions);
    t->subscriptions.rows[id] = (struct trace_subscription){
        .process = s->process, .provider = provider, .keywords = 1, .level = 4, .from_ns = START_MS * MS
    };
}

static void tell(struct source *s, uint32_t event_id, uint64_t at_ms, const struct buffer *payload)
{
    struct trace *t = &s->b.trace;
    const struct trace_event_type type = { .provider = trace_add_string(t, RUNTIME),
                                           .event_id = event_id,
                                           .version = 1,
                                           .pointer_size = 8,
                                           .description = EVENT_DESCRIBED_V5 };
    struct trace_event row = { .time_ns = (START_MS + at_ms) * MS,
                               .type = trace_builder_event_type(&s->b, &type),
                               .process = s->process,
                               .thread = s->thread };
    assert_true(trace_push_event(t, &row, buffer_span(payload)));
}

static void tell_words(struct source *s, uint32_t event_id, uint64_t at_ms, const uint32_t *words,
                       size_t count)
{
    struct buffer payload;
    buffer_init(&payload, 64);
    for (size_t i = 0; i < count; i++)
        buffer_u32le(&payload, words[i]);
    buffer_u16le(&payload, 0);
    tell(s, event_id, at_ms, &payload);
    buffer_done(&payload);
}

static void collect(struct source *s, uint32_t number, uint32_t generation, uint64_t at_ms)
{
    tell_words(s, 9, at_ms, (const uint32_t[]){ 1, number }, 2);
    tell_words(s, 8, at_ms, NULL, 0);
    tell_words(s, 1, at_ms + 1, (const uint32_t[]){ number, generation, 1, 0 }, 4);
    tell_words(s, 2, at_ms + 3, (const uint32_t[]){ number, generation }, 2);
    tell_words(s, 7, at_ms + 4, NULL, 0);
    tell_words(s, 3, at_ms + 4, NULL, 0);
}

static void put_text16(struct buffer *out, const char *ascii)
{
    do
        buffer_u16le(out, (uint8_t)*ascii);
    while (*ascii++);
}

static void throw_flagged(struct source *s, uint64_t at_ms, const char *type, const char *message,
                          uint16_t flags, size_t cut)
{
    struct buffer payload;
    buffer_init(&payload, 1 << 16);
    put_text16(&payload, type);
    put_text16(&payload, message);
    buffer_u64le(&payload, 0);
    buffer_u32le(&payload, 0x80131500);
    buffer_u16le(&payload, flags);
    buffer_u16le(&payload, 0);
    if (cut < payload.size)
        payload.size = cut;
    tell(s, EXCEPTION_EVENT_THROWN, at_ms, &payload);
    buffer_done(&payload);
}

static void throw(struct source * s, uint64_t at_ms, const char *type, const char *message, size_t cut)
{
    throw_flagged(s, at_ms, type, message, CLS_COMPLIANT, cut);
}

static void test_marks_by_time(void **state)
{
    (void)state;
    struct source s;
    struct timeline told;
    begin(&s);
    collect(&s, 1, 0, 10);
    throw(&s, 5, "Shop.OutOfStock", "no shoes", SIZE_MAX);
    timeline_init(&told, &s.b.trace, START_MS * MS, START_MS * MS, 0);
    assert_int_equal(told.mark_count, 3);
    assert_int_equal(told.marks[0].kind, TIMELINE_EXCEPTION);
    assert_string_equal(told.marks[0].text, "Shop.OutOfStock: no shoes");
    assert_true(told.marks[0].from_ns == 5 * MS && told.marks[0].to_ns == 5 * MS);
    assert_int_equal(told.marks[0].tid, 9);
    assert_int_equal(told.marks[1].kind, TIMELINE_PAUSE);
    assert_true(told.marks[1].from_ns == 10 * MS && told.marks[1].to_ns == 14 * MS);
    assert_int_equal(told.marks[2].kind, TIMELINE_COLLECTION);
    assert_true(told.marks[2].from_ns == 11 * MS && told.marks[2].to_ns == 13 * MS);
    assert_string_equal(told.marks[2].text, "#1 gen 0: induced");
    assert_int_equal(told.marks[2].pid, 7);
    timeline_done(&told);
    trace_builder_done(&s.b);
}

static void test_part_of_the_time(void **state)
{
    (void)state;
    struct source s;
    struct timeline told;
    begin(&s);
    for (uint32_t i = 0; i < 10; i++) {
        collect(&s, i + 1, 0, 10 * i);
        throw(&s, 10 * i, "T", "m", SIZE_MAX);
    }
    timeline_init(&told, &s.b.trace, START_MS * MS, (START_MS + 20) * MS, (START_MS + 50) * MS);
    assert_int_equal(told.mark_count, 9);
    for (size_t i = 0; i < told.mark_count; i++)
        assert_true(told.marks[i].from_ns >= 20 * MS && told.marks[i].from_ns < 50 * MS);
    timeline_done(&told);
    trace_builder_done(&s.b);
}

/* However long or short a message is: it is an exception. */
static void test_messages(void **state)
{
    (void)state;
    static char message[LONG_MESSAGE + 1];
    struct source s;
    struct timeline told;
    begin(&s);
    memset(message, 'm', LONG_MESSAGE);
    throw(&s, 1, "T", message, SIZE_MAX);
    for (size_t cut = 0; cut < 20; cut++)
        throw(&s, 2 + cut, "Type", "message", cut);
    timeline_init(&told, &s.b.trace, START_MS * MS, 0, 0);
    assert_int_equal(told.mark_count, 21);
    assert_true(strncmp(told.marks[0].text, "T: ", 3) == 0);
    assert_true(strlen(told.marks[0].text) < LONG_MESSAGE);
    assert_string_equal(told.marks[20].text, "Type: ");
    timeline_done(&told);
    trace_builder_done(&s.b);
}

static void test_thrown_again(void **state)
{
    (void)state;
    struct source s;
    struct timeline told;
    begin(&s);
    throw(&s, 1, "T", "m", SIZE_MAX);
    throw_flagged(&s, 2, "T", "m", CLS_COMPLIANT | EXCEPTION_FLAG_RETHROWN, SIZE_MAX);
    timeline_init(&told, &s.b.trace, START_MS * MS, 0, 0);
    assert_int_equal(told.mark_count, 2);
    assert_string_equal(told.marks[0].text, "T: m");
    assert_string_equal(told.marks[1].text, "thrown again: T: m");
    timeline_done(&told);
    trace_builder_done(&s.b);
}

static void test_nothing_was_told(void **state)
{
    (void)state;
    struct source s;
    struct timeline told;
    trace_builder_init(&s.b, 64);
    timeline_init(&told, &s.b.trace, 0, 0, 0);
    assert_int_equal(told.mark_count + told.size_count, 0);
    timeline_done(&told);
    trace_builder_done(&s.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_by_time),    cmocka_unit_test(test_part_of_the_time),
        cmocka_unit_test(test_messages),         cmocka_unit_test(test_thrown_again),
        cmocka_unit_test(test_nothing_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
