#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/text_fit.h"

static void expect_wrapped(const char *text, size_t from, size_t indent, size_t width, const char *expected)
{
    struct buffer b;
    buffer_init(&b, 4096);
    buffer_string(&b, text);
    text_wrap(&b, from, indent, width);
    buffer_u8(&b, 0);
    assert_string_equal((const char *)b.data, expected);
    buffer_done(&b);
}

static void test_wraps_at_spaces(void **state)
{
    (void)state;
    const char *text = "names    one two three four\nshort\n\nfive six seven eight nine ten";
    expect_wrapped(text, 0, 9, 0, text);
    expect_wrapped(text, 0, 9, 80, text);
    expect_wrapped(text, 0, 2, 20,
                   "names    one two\n  three four\nshort\n\nfive six seven eight\n  nine ten");
    expect_wrapped(text, 28, 2, 20, "names    one two three four\nshort\n\nfive six seven eight\n  nine ten");
    expect_wrapped("", 0, 2, 20, "");
    expect_wrapped("a b", 9, 2, 1, "a b");
}

static void test_long_words_stay_whole(void **state)
{
    (void)state;
    expect_wrapped("an averyverylongwordthatdoesnotfit x\n", 0, 0, 10,
                   "an\naveryverylongwordthatdoesnotfit\nx\n");
    expect_wrapped("        averyverylongword", 0, 4, 10, "        averyverylongword");
    expect_wrapped("ääää ää\n", 0, 0, 7, "ääää ää\n");
    expect_wrapped("ääää äää\n", 0, 0, 7, "ääää\näää\n");
}

static void test_cuts_with_a_mark(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 4096);
    text_cut(&b, span_of("abcdef", 6), 4, true);
    text_cut(&b, span_of("|", 1), 3, true);
    text_cut(&b, span_of("gh", 2), 0, true);
    text_cut(&b, span_of("ä|", 3), 2, false);
    buffer_u8(&b, 0);
    assert_string_equal((const char *)b.data, "abc…|  ä|");
    buffer_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wraps_at_spaces),
        cmocka_unit_test(test_long_words_stay_whole),
        cmocka_unit_test(test_cuts_with_a_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
