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

/* sh may be a link to dash: whether there was time to look must not decide what it is called. */
static void test_name_of_one_that_began(void **state)
{
    (void)state;
    struct target t;
    assert_true(target_open(getpid(), &t, NULL));
    const struct {
        const char *started_as;
        enum runtime_kind runtime;
        bool keeps;
    } cases[] = {
        { "link", RUNTIME_NONE, true },
        { "link", RUNTIME_NATIVEAOT, false },
        { "test_process_sc", RUNTIME_NONE, false }, /* as the kernel cuts it */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trace_builder b;
        trace_builder_init(&b, 16);
        uint32_t pid = (uint32_t)getpid();
        const char *name = cases[i].started_as;
        trace_builder_process_exec(&b, pid, span_of(name, strlen(name)), clock_monotonic_ns());
        uint32_t process = trace_builder_process(&b, pid);
        t.runtime = cases[i].runtime;
        assert_true(process_scan_identity(&b, process, &t));
        assert_string_equal(trace_string(&b.trace, b.trace.processes.rows[process].name),
                            cases[i].keeps ? name : target_label(&t));
        trace_builder_done(&b);
    }
    target_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_identity),
                                        cmocka_unit_test(test_name_of_one_that_began) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
