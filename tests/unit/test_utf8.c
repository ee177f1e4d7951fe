#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/utf8.h"

static const struct {
    const char *name;
    const char *text;
    const char *escaped;
} cases[] = {
    { "plain", "Orders.Export", "Orders.Export" },
    { "accents", "Zo\xc3\xab \xe2\x82\xac \xf0\x9f\x98\x80", "Zo\xc3\xab \xe2\x82\xac \xf0\x9f\x98\x80" },
    { "terminal escape", "\x1b[31mred\x07", "\\x1b[31mred\\x07" },
    { "newline and tab", "a\nb\tc\r", "a\\nb\\tc\\r" },
    { "DEL and C1", "\x7f\xc2\x9b", "\\x7f\\x9b" },
    { "right-to-left override",
      "\xe2\x80\xae"
      "exe",
      "\\u{202e}exe" },
    { "lone continuation", "\x80x", "\xef\xbf\xbdx" },
    { "over-long slash", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
    { "surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "above the last", "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "cut in the middle", "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" },
};

static void test_escape(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer out;
        buffer_init(&out, 1024);
        utf8_escape(&out, span_of(cases[i].text, strlen(cases[i].text)));
        if (!span_equals(buffer_span(&out), span_of(cases[i].escaped, strlen(cases[i].escaped))))
            fail_msg("%s: '%.*s'", cases[i].name, (int)out.size, (char *)out.data);
        buffer_done(&out);
    }
}

static void test_every_code_point_survives(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 16);
    for (uint32_t value = 0; value <= 0x10ffff; value++) {
        if (value >= 0xd800 && value <= 0xdfff)
            continue;
        buffer_clear(&out);
        utf8_append(&out, value);
        struct cursor c = cursor_over(buffer_span(&out));
        assert_int_equal(utf8_next(&c), value);
        assert_int_equal(cursor_left(&c), 0);
    }
    buffer_done(&out);
}

static void test_width(void **state)
{
    (void)state;
    assert_int_equal(utf8_width(span_of("Zo\xc3\xab", 4)), 3);
    assert_int_equal(utf8_width(span_of("\x1b[0m", 4)), 7);
    assert_int_equal(utf8_width(span_of("a\n", 2)), 3);
}

static void test_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t whole;
    } cuts[] = {
        { "", 0 },
        { "worker", 6 },
        { "Zo\xc3\xab", 4 },
        { "Zo\xc3", 2 },
        { "\xe6\x95\xb0", 3 },
        { "a\xe6\x95", 1 },
        { "a\xe6", 1 },
        { "\xf0\x9f\x98\x80", 4 },
        { "\xf0\x9f\x98\x80\xf0\x9f\x98", 4 },
        { "\xf0\x9f", 0 },
        { "\x80\x80\x80\x80\x80", 5 }, /* no character: it is not known what was cut */
    };
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        struct span text = span_of(cuts[i].text, strlen(cuts[i].text));
        assert_int_equal(utf8_whole(text).size, cuts[i].whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_every_code_point_survives),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
