#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/event_counts.h"
#include "base/own.h"
#include "told_fixture.h"

enum { MS = 1000000, GC_START = 1, TICK = 10, EXCEPTION = 80 };

static void told_gc(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t number, uint32_t reason)
{
    buffer_u32le(&f->payload, number);
    buffer_u32le(&f->payload, 2);
    buffer_u32le(&f->payload, reason);
    buffer_u32le(&f->payload, 0);
    buffer_u16le(&f->payload, 0);
    buffer_u64le(&f->payload, 0);
    told_event(f, time_ns, tid, GC_START, 2);
}

static void told_tick(struct told_fixture *f, uint64_t time_ns, uint32_t tid, const char *type,
                      uint64_t bytes)
{
    buffer_u32le(&f->payload, (uint32_t)bytes);
    buffer_u32le(&f->payload, 1);
    buffer_u16le(&f->payload, 0);
    buffer_u64le(&f->payload, bytes);
    buffer_u64le(&f->payload, 0x7f0000001000);
    told_text(f, type);
    buffer_u32le(&f->payload, 0);
    told_event(f, time_ns, tid, TICK, 2);
}

static int setup(void **state)
{
    static struct told_fixture f;
    told_fixture_begin(&f);
    told_gc(&f, 30 * MS, 11, 3, 1);
    told_gc(&f, 40 * MS, 11, 4, 7);
    told_tick(&f, 10 * MS, 12, "System.String", 100000); /* of another thread: told later, and earlier */
    told_tick(&f, 35 * MS, 12, "System.Byte[]", 5000000000);
    told_text(&f, "System.Exception");
    told_text(&f, "It Broke");
    told_event(&f, 35 * MS, 12, EXCEPTION, 1); /* its payload is cut short */
    f.provider = "My-Source";
    told_event(&f, 50 * MS, 0, 5, 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    told_fixture_end(*state);
    return 0;
}

/* The ids of what is found, in its order: "10@12 1@11 ". */
static const char *found(const struct trace *t, const struct event_wish *wish)
{
    static char text[256];
    struct event_query q;
    struct buffer out;
    buffer_init(&out, sizeof text);
    event_query_init(&q, t, wish, true);
    for (uint32_t event = event_query_next(&q); event; event = event_query_next(&q))
        buffer_format(&out, "%u@%u ", t->event_types.rows[t->events.rows[event].type].event_id,
                      t->threads.rows[t->events.rows[event].thread].tid);
    event_query_done(&q);
    buffer_u8(&out, 0);
    assert_false(out.failed);
    memcpy(text, out.data, out.size);
    buffer_done(&out);
    return text;
}

static void test_in_order_of_time(void **state)
{
    const struct told_fixture *f = *state;
    assert_string_equal(found(&f->b.trace, &(struct event_wish){ 0 }), "10@12 1@11 10@12 80@12 1@11 5@0 ");
}

static void test_filters(void **state)
{
    const struct told_fixture *f = *state;
    static const struct {
        struct event_wish wish;
        const char *found;
    } cases[] = {
        { { .provider = "my-*" }, "5@0 " },
        { { .provider = "*runtime", .event = "gc/s*" }, "1@11 1@11 " },
        { { .event = "80" }, "80@12 " },
        { { .event = "GC" }, "" },
        { { .who.thread = "12" }, "10@12 10@12 80@12 " },
        { { .who.thread = "1" }, "" },
        { { .who.process = "no-such" }, "" },
        { { .from_ns = 30 * MS, .to_ns = 40 * MS }, "1@11 10@12 80@12 " },
        { { .text = "it broke" }, "80@12 " },
        { { .text = "induced" }, "1@11 1@11 " },
        { { .text = "EVENTID(5)" }, "5@0 " },
        { { .text = "nowhere" }, "" },
        { { .text = "!gc" }, "80@12 5@0 " },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(found(&f->b.trace, &cases[i].wish), cases[i].found);
}

static void test_conditions(void **state)
{
    const struct told_fixture *f = *state;
    static const struct {
        struct event_condition condition;
        const char *found;
    } cases[] = {
        { { "Reason", EVENT_IS, "Induced" }, "1@11 " },
        { { "Reason", EVENT_IS, "induced*" }, "1@11 1@11 " },
        { { "Reason", EVENT_IS, "7" }, "1@11 " },
        { { "Reason", EVENT_IS_NOT, "InducedNotForced" }, "1@11 " },
        { { "Count", EVENT_MORE, "3" }, "1@11 " },
        { { "Count", EVENT_AT_LEAST, "3" }, "1@11 1@11 " },
        { { "Count", EVENT_LESS, "3.5" }, "1@11 " },
        { { "Count", EVENT_AT_MOST, "-1" }, "" },
        { { "Count", EVENT_IS, "0x4" }, "1@11 " },
        { { "Count", EVENT_IS, "four" }, "" },
        { { "AllocationAmount64", EVENT_IS, "5000000000" }, "10@12 " },
        { { "TypeName", EVENT_IS, "*byte\\[\\]" }, "10@12 " },
        { { "TypeName", EVENT_IS_NOT, "System.String" }, "10@12 " },
        { { "TypeID", EVENT_IS, "0x7f0000001000" }, "10@12 10@12 " },
        { { "ExceptionHRESULT", EVENT_IS, "0" }, "" }, /* cut off: not there */
        { { "NoSuchField", EVENT_IS_NOT, "1" }, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct event_wish wish = { .conditions = &cases[i].condition, .condition_count = 1 };
        assert_string_equal(found(&f->b.trace, &wish), cases[i].found);
    }
    static const struct event_condition both[] = { { "Reason", EVENT_IS, "induced*" },
                                                   { "Count", EVENT_IS, "4" } };
    assert_string_equal(
        found(&f->b.trace, &(struct event_wish){ .conditions = both, .condition_count = ARRAY_LEN(both) }),
        "1@11 ");
}

/* An event with a float, a double and a double in an object of the same value, described as event sources do.
 */
static void told_floats(struct told_fixture *f, uint32_t id, double value)
{
    struct buffer fields;
    buffer_init(&fields, 200);
    buffer_u32le(&fields, 3);
    buffer_u32le(&fields, 13);
    utf16_append(&fields, "small");
    buffer_u16le(&fields, 0);
    buffer_u32le(&fields, 14);
    utf16_append(&fields, "large");
    buffer_u16le(&fields, 0);
    buffer_u32le(&fields, 1); /* an object of one */
    buffer_u32le(&fields, 1);
    buffer_u32le(&fields, 14);
    utf16_append(&fields, "large");
    buffer_u16le(&fields, 0);
    utf16_append(&fields, "Inner");
    buffer_u16le(&fields, 0);
    struct trace_event_type type = { .provider = trace_add_string(&f->b.trace, "Floats"),
                                     .event_id = id,
                                     .fields = trace_add_span(&f->b.trace, buffer_span(&fields)) };
    float small = (float)value;
    buffer_append(&f->payload, &small, sizeof small);
    buffer_append(&f->payload, &value, sizeof value);
    buffer_append(&f->payload, &value, sizeof value);
    const struct trace_event row = { .time_ns = id * MS, .type = trace_builder_event_type(&f->b, &type) };
    trace_push_event(&f->b.trace, &row, buffer_span(&f->payload));
    buffer_clear(&f->payload);
    buffer_done(&fields);
}

static void test_floats(void **state)
{
    (void)state;
    static const struct {
        struct event_condition condition;
        const char *found;
    } cases[] = {
        { { "small", EVENT_IS, "0.1" }, "1@0 " },       { { "large", EVENT_IS, "0.1" }, "1@0 " },
        { { "small", EVENT_MORE, "0.1" }, "2@0 " },     { { "small", EVENT_AT_MOST, "0.1" }, "1@0 " },
        { { "small", EVENT_IS, "nan" }, "3@0 " },       { { "large", EVENT_IS_NOT, "NaN" }, "1@0 2@0 " },
        { { "large", EVENT_AT_LEAST, "NaN" }, "" },     { { "large", EVENT_IS_NOT, "0.1" }, "2@0 3@0 " },
        { { "Inner.large", EVENT_IS, "0.2" }, "2@0 " }, { { "Inner.small", EVENT_IS_NOT, "0.1" }, "" },
    };
    struct told_fixture f;
    told_fixture_begin(&f);
    told_floats(&f, 1, 0.1);
    told_floats(&f, 2, 0.2);
    told_floats(&f, 3, NAN);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct event_wish wish = { .conditions = &cases[i].condition, .condition_count = 1 };
        assert_string_equal(found(&f.b.trace, &wish), cases[i].found);
    }
    struct event_query q;
    event_query_init(&q, &f.b.trace, &(struct event_wish){ 0 }, false);
    assert_true(event_query_has_field(&q, "Inner.large"));
    assert_false(event_query_has_field(&q, "Inner.small"));
    event_query_done(&q);
    told_fixture_end(&f);
}

/* Slices become longer as events come; none is lost, and each is where it was, to a slice. */
static void test_course(void **state)
{
    (void)state;
    enum { EVENTS = 1000 };
    struct event_course c = { 0 };
    for (uint64_t i = 0; i < EVENTS; i++)
        event_course_add(&c, (uint32_t)(i % 3), 5 * MS + i * 10 * MS, 1);
    event_course_add(&c, 2, 0, 1); /* older than the first */
    assert_int_equal(c.count, 3);
    assert_true(c.slice_ns * EVENT_COURSE_SLICES >= (uint64_t)EVENTS * 10 * MS &&
                c.slice_ns * EVENT_COURSE_SLICES < (uint64_t)EVENTS * 20 * MS);
    uint64_t seen = 0;
    for (size_t slice = 0; slice < EVENT_COURSE_SLICES; slice++) {
        for (size_t type = 0; type < c.count; type++)
            seen += c.rows[type][slice];
        uint64_t until =
            (c.slice_ns * (slice + 1) + 10 * MS - 1) / (10 * MS); /* events that began before its end */
        assert_int_equal(seen, 1 + (until < EVENTS ? until : EVENTS));
        uint64_t last_ns = c.from_ns + c.slice_ns * (slice + 1) - 1;
        assert_int_equal(event_course_same_until(&c, c.from_ns + c.slice_ns * slice), last_ns);
        assert_int_equal(event_course_same_until(&c, last_ns), last_ns);
    }
    assert_int_equal(event_course_same_until(&c, 0), c.from_ns + c.slice_ns - 1);
    assert_int_equal(event_course_same_until(&c, UINT64_MAX), UINT64_MAX);
    event_course_add(&c, 1, UINT64_MAX, 1); /* nonsense makes it coarse, and no more than that */
    assert_int_equal(c.rows[0][0] + c.rows[1][0] + c.rows[2][0], EVENTS + 1);
    event_course_done(&c);
}

static void test_counts(void **state)
{
    const struct told_fixture *f = *state;
    struct event_query q;
    struct event_count *rows;
    event_query_init(&q, &f->b.trace, &(struct event_wish){ 0 }, false);
    size_t count = event_counts_take(&q, 10 * MS, 40 * MS, &rows);
    assert_int_equal(count, 4);
    assert_string_equal(rows[0].event, "Exception/Start");
    assert_string_equal(rows[1].event, "GC/AllocationTick");
    assert_int_equal(rows[1].count, 2);
    assert_true(rows[1].when[0] == 1 && rows[1].when[62] == 1);
    assert_true(rows[2].when[50] == 1 && rows[2].when[75] == 1 && rows[3].when[99] == 1);
    assert_int_equal(rows[2].payload_bytes, 2 * 26);
    assert_int_equal(rows[2].with_stack, 0);
    assert_string_equal(rows[3].provider, "My-Source");
    free(rows);
    event_query_done(&q);
}

static void test_fields(void **state)
{
    const struct told_fixture *f = *state;
    static const struct {
        const char *event, *field;
        bool is_known;
    } cases[] = { { NULL, "Reason", true },  { NULL, "Reasons", false }, { "GC/*", "Reason", true },
                  { "80", "Reason", false }, { NULL, "TypeName", true }, { NULL, "reason", false } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *names[64];
        struct event_query q;
        const struct event_wish wish = { .event = cases[i].event };
        event_query_init(&q, &f->b.trace, &wish, false);
        assert_int_equal(event_query_has_field(&q, cases[i].field), cases[i].is_known);
        size_t listed = 0, count = event_query_fields(&q, names, ARRAY_LEN(names));
        for (size_t k = 0; k < count; k++)
            listed += strcmp(names[k], cases[i].field) == 0;
        assert_int_equal(listed, cases[i].is_known);
        assert_int_equal(event_query_fields(&q, names, 2), 2);
        event_query_done(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order_of_time), cmocka_unit_test(test_filters),
        cmocka_unit_test(test_fields),           cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_floats),           cmocka_unit_test(test_counts),
        cmocka_unit_test(test_course),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
