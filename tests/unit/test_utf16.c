#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/own.h"
#include "base/utf16.h"

static const struct {
    const char *name;
    uint8_t bytes[12];
    size_t size;
    const char *utf8;
    size_t replaced;
} cases[] = {
    { "ascii", "a\0b\0", 4, "ab", 0 },
    { "two bytes", { 0xe9, 0x00 }, 2, "\xc3\xa9", 0 },
    { "three bytes", { 0x16, 0x4e }, 2, "\xe4\xb8\x96", 0 },
    { "a pair", { 0x3d, 0xd8, 0x00, 0xde }, 4, "\xf0\x9f\x98\x80", 0 },
    { "the last code point", { 0xff, 0xdb, 0xff, 0xdf }, 4, "\xf4\x8f\xbf\xbf", 0 },
    { "high alone", { 0x3d, 0xd8 }, 2, "\xef\xbf\xbd", 1 },
    { "high, then a letter",
      { 0x3d, 0xd8, 'a', 0 },
      4,
      "\xef\xbf\xbd"
      "a",
      1 },
    { "low alone",
      { 0x00, 0xde, 'a', 0 },
      4,
      "\xef\xbf\xbd"
      "a",
      1 },
    { "two highs and a low", { 0x3d, 0xd8, 0x3d, 0xd8, 0x00, 0xde }, 6, "\xef\xbf\xbd\xf0\x9f\x98\x80", 1 },
    { "a zero inside",
      { 'a', 0, 0, 0, 'b', 0 },
      6,
      "a\xef\xbf\xbd"
      "b",
      1 },
    { "an odd byte at the end", { 'a', 0, 'b' }, 3, "a", 0 },
    { "nothing", { 0 }, 0, "", 0 },
};

static void test_to_utf8(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        buffer_init(&b, 64);
        size_t replaced = utf16_append_utf8(&b, span_of(cases[i].bytes, cases[i].size));
        buffer_u8(&b, 0);
        if (replaced != cases[i].replaced || strcmp((const char *)b.data, cases[i].utf8) != 0)
            fail_msg("%s: '%s', %zu replaced", cases[i].name, (const char *)b.data, replaced);
        buffer_done(&b);
    }
}

static void test_there_and_back(void **state)
{
    (void)state;
    static const char text[] = "Ns.T\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80";
    struct buffer utf16, utf8;
    buffer_init(&utf16, 64);
    buffer_init(&utf8, 64);
    assert_int_equal(utf16_append(&utf16, text), 8);
    assert_int_equal(utf16_append_utf8(&utf8, buffer_span(&utf16)), 0);
    buffer_u8(&utf8, 0);
    assert_string_equal((const char *)utf8.data, text);
    buffer_done(&utf16);
    buffer_done(&utf8);
}

static void test_bytes_that_are_no_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\xff", "\x80", "\xc3", "\xe4\xb8", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buffer b;
        buffer_init(&b, 64);
        size_t units = utf16_append(&b, bad[i]);
        assert_int_equal(b.size, 2 * units);
        assert_int_equal(units, strlen(bad[i]));
        for (size_t u = 0; u < units; u++)
            assert_int_equal(load_u16le(b.data + 2 * u), 0xfffd);
        buffer_done(&b);
    }
}

static void test_zstring(void **state)
{
    (void)state;
    struct cursor c = cursor_over(span_of("a\0\0\0b\0\0", 7));
    struct span first = utf16_zstring(&c);
    assert_true(utf16_equals_ascii(first, "a"));
    assert_false(utf16_equals_ascii(first, "b"));
    assert_false(utf16_equals_ascii(first, "ab"));
    assert_int_equal(utf16_zstring(&c).size, 0);
    assert_false(cursor_ok(&c));
    /* a zero unit must start at an even offset */
    c = cursor_over(span_of("\x61\x4e\0\x4e\0\0", 6));
    assert_int_equal(utf16_zstring(&c).size, 4);
    assert_true(cursor_ok(&c));
}

/* What is no ASCII, at each place of a text that otherwise is. */
static void test_every_place(void **state)
{
    (void)state;
    static const struct {
        uint16_t unit;
        const char *text;
    } odd[] = { { 0, "\xef\xbf\xbd" },
                { 0x7f, "\x7f" },
                { 0x80, "\xc2\x80" },
                { 0xe9, "\xc3\xa9" },
                { 0x2603, "\xe2\x98\x83" } };
    for (size_t k = 0; k < ARRAY_LEN(odd); k++)
        for (size_t at = 0; at < 300; at++) {
            struct buffer units, expected, out;
            buffer_init(&units, 1000);
            buffer_init(&expected, 1000);
            buffer_init(&out, 1000);
            for (size_t i = 0; i < 300; i++) {
                buffer_u16le(&units, i == at ? odd[k].unit : (uint16_t)('a' + i % 26));
                if (i == at)
                    buffer_string(&expected, odd[k].text);
                else
                    buffer_u8(&expected, (uint8_t)('a' + i % 26));
            }
            assert_int_equal(utf16_append_utf8(&out, buffer_span(&units)), odd[k].unit == 0);
            assert_true(span_equals(buffer_span(&out), buffer_span(&expected)));
            buffer_done(&units);
            buffer_done(&expected);
            buffer_done(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_utf8),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_bytes_that_are_no_utf8),
        cmocka_unit_test(test_zstring),
        cmocka_unit_test(test_every_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
