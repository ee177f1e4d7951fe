#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/utf16.h"
#include "clr/stopping_event.h"

static struct buffer runtime_name, other_name;

static void append_text(struct buffer *b, const char *text)
{
    utf16_append(b, text);
    buffer_u16le(b, 0);
}

/* GC/Start: Count, Depth, Reason, Type, instance, client's number. */
static struct span gc_start(struct buffer *b, uint32_t depth)
{
    buffer_init(b, 64);
    buffer_u32le(b, 7);
    buffer_u32le(b, depth);
    buffer_u32le(b, 1);
    buffer_u32le(b, 0);
    buffer_u16le(b, 0);
    buffer_u64le(b, 0);
    return buffer_span(b);
}

static void test_by_provider_name_and_fields(void **state)
{
    (void)state;
    static const struct {
        const char *event, *fields;
        uint32_t id, depth;
        bool other, stops;
    } cases[] = {
        { NULL, NULL, 1, 0, false, true },
        { NULL, NULL, 1, 0, true, false },
        { "GC/Start", NULL, 1, 0, false, true },
        { "GC/Stop", NULL, 1, 0, false, false },
        { "GC/Start", NULL, 2, 0, false, false },
        { "GC/Start", "Depth:2", 1, 2, false, true },
        { "GC/Start", "Depth:2", 1, 1, false, false },
        { "GC/Start", "Depth:2,Count:7", 1, 2, false, true },
        { "GC/Start", "Depth:2,Count:8", 1, 2, false, false },
        { "GC/Start", "Nonsense:2", 1, 2, false, false },
        { "GC/Start", "Depth:", 1, 2, false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stopping_event *s;
        struct buffer payload;
        struct nettrace_type type = {
            .provider = buffer_span(cases[i].other ? &other_name : &runtime_name),
            .event_id = cases[i].id,
            .version = cases[i].id == 1 ? 2 : 1,
        };
        assert_true(
            stopping_event_new("Microsoft-Windows-DotNETRuntime", cases[i].event, cases[i].fields, &s, NULL));
        struct span whole = gc_start(&payload, cases[i].depth);
        for (unsigned again = 0; again < 2; again++)
            if (stopping_event_is(s, &type, 8, whole) != cases[i].stops)
                fail_msg("case %zu", i);
        /* a payload that is cut has no such value */
        if (cases[i].fields)
            assert_false(stopping_event_is(s, &type, 8, span_part(whole, 0, 4)));
        stopping_event_free(s);
        buffer_done(&payload);
    }
}

/* What is said at the end of a recording that it did not end. */
static void test_missed(void **state)
{
    (void)state;
    static const struct {
        const char *event, *fields, *told;
        unsigned others, starts; /* events that came */
    } cases[] = {
        { "GC/Start", NULL, "Microsoft-Windows-DotNETRuntime told of no events", 3, 0 },
        { "GC/Stop", NULL, "Microsoft-Windows-DotNETRuntime told of 2 events, none of them 'GC/Stop'", 1, 2 },
        { "GC/Start", "Depth:9", "'GC/Start' came 2 times, never with these fields", 0, 2 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stopping_event *s;
        struct buffer payload, text;
        struct nettrace_type other = { .provider = buffer_span(&other_name), .event_id = 1, .version = 2 };
        struct nettrace_type start = { .provider = buffer_span(&runtime_name), .event_id = 1, .version = 2 };
        assert_true(
            stopping_event_new("Microsoft-Windows-DotNETRuntime", cases[i].event, cases[i].fields, &s, NULL));
        struct span whole = gc_start(&payload, 1);
        for (unsigned k = 0; k < cases[i].others; k++)
            assert_false(stopping_event_is(s, &other, 8, whole));
        for (unsigned k = 0; k < cases[i].starts; k++)
            assert_false(stopping_event_is(s, &start, 8, whole));
        buffer_init(&text, 256);
        stopping_event_append_missed(s, &text);
        buffer_u8(&text, 0);
        assert_string_equal(text.data, cases[i].told);
        buffer_done(&text);
        stopping_event_free(s);
        buffer_done(&payload);
    }
}

static void test_what_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *provider, *event, *fields;
    } cases[] = {
        { NULL, "E", NULL }, { "", NULL, NULL }, { "P", NULL, "a:1" },
        { "P", "E", "a" },   { "P", "E", ":1" }, { "P", "E", "a:1,,b:2" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stopping_event *s;
        struct error err = { 0 };
        assert_false(stopping_event_new(cases[i].provider, cases[i].event, cases[i].fields, &s, &err));
        assert_int_equal(err.kind, ERROR_USAGE);
    }
    stopping_event_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_provider_name_and_fields),
        cmocka_unit_test(test_missed),
        cmocka_unit_test(test_what_is_none),
    };
    buffer_init(&runtime_name, 256);
    buffer_init(&other_name, 256);
    append_text(&runtime_name, "Microsoft-Windows-DotNETRuntime");
    append_text(&other_name, "Other");
    runtime_name.size -= 2;
    other_name.size -= 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    buffer_done(&runtime_name);
    buffer_done(&other_name);
    return failed;
}
