#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/event_value.h"

/* A `char` may be any unit: who shows text takes a zero for its end, who writes it out whole does not. */
static void test_control_characters(void **state)
{
    (void)state;
    static const struct {
        enum event_value_kind kind;
        uint8_t bytes[6];
        size_t size;
        const char *shown;
        const char *whole;
        size_t whole_size;
    } cases[] = {
        { EVENT_VALUE_TEXT16, { 0, 0 }, 2, "\\x00", "\0", 1 },
        { EVENT_VALUE_TEXT16, { 'a', 0, 0, 0, 'b', 0 }, 6, "a\\x00b", "a\0b", 3 },
        { EVENT_VALUE_TEXT16, { 7, 0, 0x1b, 0 }, 4, "\x07\x1b", "\x07\x1b", 2 },
        { EVENT_VALUE_TEXT8, { 'a', 0, 'b' }, 3, "a\\x00b", "a\0b", 3 },
        { EVENT_VALUE_TEXT16, { 0x3d, 0xd8 }, 2, "\xef\xbf\xbd", "\xef\xbf\xbd", 3 },
        { EVENT_VALUE_TEXT16, { 0 }, 0, "", "", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct event_value v = { .kind = cases[i].kind, .bytes = span_of(cases[i].bytes, cases[i].size) };
        struct buffer shown, whole;
        buffer_init(&shown, 64);
        buffer_init(&whole, 64);
        event_value_append(&shown, &v);
        event_value_append_whole(&whole, &v);
        if (shown.size != strlen(cases[i].shown) ||
            (shown.size && memcmp(shown.data, cases[i].shown, shown.size) != 0) ||
            whole.size != cases[i].whole_size ||
            (whole.size && memcmp(whole.data, cases[i].whole, whole.size) != 0))
            fail_msg("%zu: '%.*s'", i, (int)shown.size, (const char *)shown.data);
        buffer_done(&shown);
        buffer_done(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
