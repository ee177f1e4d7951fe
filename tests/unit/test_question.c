#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/question.h"
#include "clr/runtime_events.h"
#include "trace/builder.h"

static void ask(struct trace_builder *b, const char *provider, uint64_t keywords, uint8_t level)
{
    uint32_t id = trace_push(&b->trace.subscriptions);
    b->trace.subscriptions.rows[id] =
        (struct trace_subscription){ .process = trace_builder_process(b, 10),
                                     .provider = trace_add_string(&b->trace, provider),
                                     .keywords = keywords,
                                     .level = level };
}

/* A runtime that was asked and had nothing to tell is an answer, too. */
static void test_answered(void **state)
{
    (void)state;
    static const struct {
        uint64_t keywords;
        uint8_t level;
        const char *answered;
    } cases[] = {
        { RUNTIME_KEYWORD_GC, 4, "gc" },
        { RUNTIME_KEYWORD_GC, 5, "gc, alloc" },
        { RUNTIME_KEYWORD_ALLOCATION_SAMPLING, 4, "alloc" },
        { RUNTIME_KEYWORD_ALLOCATION_SAMPLING, 3, "" },
        { 0x8000, 2, "exceptions" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace_builder b;
        struct buffer names;
        trace_builder_init(&b, 64);
        buffer_init(&names, 256);
        ask(&b, RUNTIME_PROVIDER, cases[i].keywords, cases[i].level);
        question_answered(&b.trace, &names);
        buffer_u8(&names, 0);
        assert_string_equal((const char *)names.data, cases[i].answered);
        buffer_done(&names);
        trace_builder_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_answered) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
