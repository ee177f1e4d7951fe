#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/told_events.h"
#include "base/own.h"
#include "trace/builder.h"

static void test_was_asked(void **state)
{
    (void)state;
    static const struct {
        const char *provider;
        uint64_t keywords;
        uint8_t level;
        bool wanted;
    } cases[] = {
        { "Runtime", 0x10, 5, true },     { "Runtime", 0x11, 4, true }, { "Runtime", 1, 4, false },
        { "Runtime", 0x10, 6, false },    { "Runtime", 0, 5, true },    { "Http", 0, 4, true },
        { "Http", UINT64_MAX, 4, false }, { "Other", 0, 0, false },
    };
    struct trace_builder b;
    trace_builder_init(&b, 16);
    uint32_t runtime = trace_push(&b.trace.subscriptions), http = trace_push(&b.trace.subscriptions);
    b.trace.subscriptions.rows[runtime] = (struct trace_subscription){
        .provider = trace_add_string(&b.trace, "Runtime"), .keywords = 0x10, .level = 5
    };
    b.trace.subscriptions.rows[http] =
        (struct trace_subscription){ .provider = trace_add_string(&b.trace, "Http"), .level = 4 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(told_was_asked(&b.trace, cases[i].provider, cases[i].keywords, cases[i].level),
                         cases[i].wanted);
    trace_builder_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
