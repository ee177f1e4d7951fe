#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/shell_word.h"

static const struct {
    const char *text, *word;
} cases[] = {
    { "busy.clrperf", "busy.clrperf" },
    { "/srv/a-b_c/x+1.clrperf", "/srv/a-b_c/x+1.clrperf" },
    { "caf\xc3\xa9.clrperf", "caf\xc3\xa9.clrperf" },
    { "my file.clrperf", "'my file.clrperf'" },
    { "it's", "'it'\\''s'" },
    { "$HOME;ls", "'$HOME;ls'" },
    { "", "''" },
};

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *word = shell_word_new(cases[i].text);
        assert_string_equal(word, cases[i].word);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
