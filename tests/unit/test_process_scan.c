#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collect/process_scan.h"

static void test_identity(void **state)
{
    (void)state;
    const uint64_t second_ns = 1000000000;
    uint64_t now_ns = clock_monotonic_ns();
    struct target t;
    assert_true(target_open(getpid(), &t, NULL));
    uint64_t tick_ns = second_ns / (uint64_t)sysconf(_SC_CLK_TCK);
    const struct {
        const char *name;
        uint64_t from_ns, known_ticks, ticks;
        bool ok;
    } cases[] = {
        { "it was there before", 0, 0, t.start_ticks, true },
        { "heard of now", now_ns, 0, t.start_ticks, true },
        { "known and the same", now_ns, t.start_ticks, t.start_ticks, true },
        { "known and another", now_ns, t.start_ticks - 1, t.start_ticks, false },
        { "started after its number was heard of", now_ns, 0, t.start_ticks + 10 * second_ns / tick_ns,
          false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trace_builder b;
        trace_builder_init(&b, 16);
        uint32_t process = trace_builder_process_start(&b, (uint32_t)getpid(), cases[i].from_ns);
        b.trace.processes.rows[process].start_ticks = cases[i].known_ticks;
        struct target seen = t;
        seen.start_ticks = cases[i].ticks;
        if (process_scan_identity(&b, process, &seen) != cases[i].ok)
            fail_msg("%s", cases[i].name);
        const struct trace_process *row = &b.trace.processes.rows[process];
        assert_int_equal(strstr(trace_string(&b.trace, row->name), "test_process_scan") != NULL, cases[i].ok);
        trace_builder_done(&b);
    }
    target_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_identity) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
