#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/text_table.h"

static const struct text_column columns[] = { { "PID", TEXT_RIGHT },
                                              { "NAME", TEXT_LEFT },
                                              { "COMMAND", TEXT_LEFT } };

static void print(size_t width, const char *wanted)
{
    struct text_table table;
    text_table_init(&table, columns, ARRAY_LEN(columns));
    static const char *const cells[] = { "1", "Zo\xc3\xab", "a long command line", "4711", "x\x1b[0m", NULL };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        text_table_add(&table, cells[i]);
    struct buffer out;
    buffer_init(&out, 4096);
    text_table_print(&table, width, &out);
    if (!span_equals(buffer_span(&out), span_of(wanted, strlen(wanted))))
        fail_msg("width %zu:\n%.*s", width, (int)out.size, (const char *)out.data);
    buffer_done(&out);
    text_table_done(&table);
}

static void test_alignment(void **state)
{
    (void)state;
    print(0, " PID  NAME      COMMAND\n"
             "   1  Zo\xc3\xab       a long command line\n"
             "4711  x\\x1b[0m  -\n");
    print(28, " PID  NAME      COMMAND\n"
              "   1  Zo\xc3\xab       a long comm…\n"
              "4711  x\\x1b[0m  -\n");
    print(12, " PID  NAME      COMMAND\n"
              "   1  Zo\xc3\xab       a long co…\n"
              "4711  x\\x1b[0m  -\n");
}

static void test_words_give_way(void **state)
{
    (void)state;
    static const struct text_column wide[] = { { "KIND", TEXT_LEFT },
                                               { "N", TEXT_RIGHT },
                                               { "TEXT", TEXT_LEFT } };
    struct text_table table;
    struct buffer out;
    text_table_init(&table, wide, ARRAY_LEN(wide));
    static const char *const cells[] = { "twelve chars", "123456789", "more than is there" };
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        text_table_add(&table, cells[i]);
    buffer_init(&out, 4096);
    text_table_print(&table, 33, &out);
    buffer_u8(&out, 0);
    assert_string_equal((const char *)out.data, "KIND              N  TEXT\n"
                                                "twelve …  123456789  more than i…\n");
    buffer_done(&out);
    text_table_done(&table);
}

/* Spare columns are left out before words get too short to be read; the one with the highest number first. */
static void test_spare_columns(void **state)
{
    (void)state;
    static const struct text_column some[] = {
        { "N", TEXT_RIGHT }, { "MEAN", TEXT_RIGHT, 1 }, { "TEXT", TEXT_LEFT }, { "PIN", TEXT_RIGHT, 2 }
    };
    static const char *const cells[] = { "1", "2", "twelve chars", "3" };
    static const struct {
        size_t width;
        const char *wanted;
    } cases[] = {
        { 27, "N  MEAN  TEXT          PIN\n1     2  twelve chars    3\n" },
        { 21, "N  MEAN  TEXT\n1     2  twelve chars\nno room for: PIN; a\n" },
        { 20, "N  TEXT\n1  twelve chars\nno room for: MEAN,\n  PIN; a wider\n" },
        { 12, "N  TEXT\n1  twelve c…\n" },
    };
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        struct text_table table;
        struct buffer out;
        text_table_init(&table, some, ARRAY_LEN(some));
        for (size_t i = 0; i < ARRAY_LEN(cells); i++)
            text_table_add(&table, cells[i]);
        buffer_init(&out, 4096);
        text_table_print(&table, cases[k].width, &out);
        buffer_u8(&out, 0);
        if (strncmp((const char *)out.data, cases[k].wanted, strlen(cases[k].wanted)) != 0)
            fail_msg("width %zu:\n%s", cases[k].width, (const char *)out.data);
        buffer_done(&out);
        text_table_done(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_alignment),
                                        cmocka_unit_test(test_words_give_way),
                                        cmocka_unit_test(test_spare_columns) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
