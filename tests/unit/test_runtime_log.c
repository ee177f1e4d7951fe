#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "clr/event_profiles.h"
#include "clr/runtime_events.h"
#include "collect/runtime_log.h"

enum { PROCESS = 1, GC = RUNTIME_KEYWORD_GC, JIT = 0x1000000010, CONTENTION = 0x4000 };

/* Asked for by ids, a keyword is told up to what its topic needs, whatever level another topic needs. */
static void test_levels_of_topics(void **state)
{
    (void)state;
    static const struct {
        const char *topics[3];
        size_t count;
        struct {
            uint64_t keywords;
            uint8_t level;
        } rows[2];
    } cases[] = {
        { { "gc" }, 1, { { GC, 4 } } },
        { { "jit" }, 1, { { JIT, 5 } } },
        { { "alloc" }, 1, { { GC, 5 } } },
        { { "gc", "jit" }, 2, { { GC, 4 }, { JIT, 5 } } },
        { { "gc", "alloc" }, 1, { { GC, 5 } } },
        { { "gc", "locks", "jit" }, 2, { { GC | CONTENTION, 4 }, { JIT, 5 } } },
        { { "locks", "alloc" }, 2, { { CONTENTION, 4 }, { GC, 5 } } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trace_builder b;
        struct event_providers told = { 0 };
        trace_builder_init(&b, 16);
        for (size_t k = 0; k < 3 && cases[i].topics[k]; k++)
            assert_true(event_topics_add(&told, cases[i].topics[k], strlen(cases[i].topics[k])));
        struct runtime_log log = runtime_log_begin(&b, PROCESS, &told);
        assert_int_equal(log.count, cases[i].count);
        for (uint32_t k = 0; k < log.count; k++) {
            const struct trace_subscription *row = &b.trace.subscriptions.rows[log.first + k];
            assert_int_equal(row->keywords, cases[i].rows[k].keywords);
            assert_int_equal(row->level, cases[i].rows[k].level);
            assert_int_equal(row->to_ns, 0);
        }
        runtime_log_end(&b, &log);
        for (uint32_t k = 0; k < log.count; k++)
            assert_true(b.trace.subscriptions.rows[log.first + k].to_ns != 0);
        event_providers_done(&told);
        trace_builder_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_of_topics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
