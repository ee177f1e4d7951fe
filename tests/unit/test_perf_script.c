#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/byte_stream.h"
#include "read/folded.h"
#include "read/perf_script.h"

static struct span text_of(const char *text)
{
    return span_of(text, strlen(text));
}

static const struct {
    const char *line;
    enum perf_script_line kind;
    const char *comm, *event;
    uint32_t pid, tid, cpu;
    uint64_t time_ns, period;
} events[] = {
    { "w 14634  1734.152189:    1001001 cpu-clock: ", PERF_SCRIPT_EVENT, "w", "cpu-clock", 14634, 14634, 0,
      1734152189000, 1001001 },
    { ".NET TP Worker 4096/4101 [001] 1000.123456:   10101010 cpu-clock: ", PERF_SCRIPT_EVENT,
      ".NET TP Worker", "cpu-clock", 4096, 4101, 1, 1000123456000, 10101010 },
    { "swapper     0/0     [000]  2631.035237123:     200040 cpu-clock:HG: ", PERF_SCRIPT_EVENT, "swapper",
      "cpu-clock:HG", 0, 0, 0, 2631035237123, 200040 },
    { "Thread 12 7 [003] 1.5: sched:sched_switch: prev_comm=a ==> next_comm=b", PERF_SCRIPT_EVENT,
      "Thread 12", "sched:sched_switch", 7, 7, 3, 1500000000, 0 },
    { "w 25529/25529 ", PERF_SCRIPT_EVENT, "w", "", 25529, 25529, 0, 0, 0 },
    { "w 25529 [001] cycles:u: ", PERF_SCRIPT_EVENT, "w", "cycles:u", 25529, 25529, 1, 0, 0 },
    { "  1234  10.000001: cycles: ", PERF_SCRIPT_EVENT, "", "cycles", 1234, 1234, 0, 10000001000, 0 },
    { "dead -1 [000] 10.0: cycles: ", PERF_SCRIPT_EVENT, "dead", "cycles", 0, 0, 0, 10000000000, 0 },
    { ":-1    -1/-1    [001] 10.0:     250000 cpu-clock: ", PERF_SCRIPT_EVENT, ":-1", "cpu-clock", 0, 0, 1,
      10000000000, 250000 },
    { "", PERF_SCRIPT_BLANK, NULL, NULL, 0, 0, 0, 0, 0 },
    { "  \t ", PERF_SCRIPT_BLANK, NULL, NULL, 0, 0, 0, 0, 0 },
    { "# hostname : vm", PERF_SCRIPT_COMMENT, NULL, NULL, 0, 0, 0, 0, 0 },
    { "odd     0     0.000000: PERF_RECORD_COMM: odd:3038/3038", PERF_SCRIPT_RECORD, NULL, NULL, 0, 0, 0, 0,
      0 },
    { ".NET TP Worker 12/13 [001] 1.5: PERF_RECORD_MMAP2 12/12: [0x563eed94f000(0xc000) @ 0x6000 fe:00 1 0]: "
      "r-xp "
      "/tmp/odd",
      PERF_SCRIPT_RECORD, NULL, NULL, 0, 0, 0, 0, 0 },
    { "w 1 1.5: PERF_RECORD_LOST lost 7", PERF_SCRIPT_RECORD, NULL, NULL, 0, 0, 0, 0, 0 },
    { "w 1 1.5: PERF_RECORD_LOST_SAMPLES lost 7", PERF_SCRIPT_RECORD, NULL, NULL, 0, 0, 0, 0, 0 },
    { "w 1 1.5: PERF_RECORD_LOST lost many", PERF_SCRIPT_RECORD, NULL, NULL, 0, 0, 0, 0, 0 },
    { "w 1 1.5: PERF_RECORD_MMAP2 lost 8", PERF_SCRIPT_RECORD, NULL, NULL, 0, 0, 0, 0, 0 },
    { "<html>", PERF_SCRIPT_OTHER, NULL, NULL, 0, 0, 0, 0, 0 },
    { "w 99999999999 1.5: cycles:", PERF_SCRIPT_OTHER, NULL, NULL, 0, 0, 0, 0, 0 },
};

static void check_text(const char *line, struct span got, const char *wanted)
{
    if (!span_equals(got, text_of(wanted)))
        fail_msg("'%s': got '%.*s', wanted '%s'", line, (int)got.size, got.data ? (const char *)got.data : "",
                 wanted);
}

static void test_event_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct perf_script_event e = { 0 };
        struct perf_script_frame f;
        const char *line = events[i].line;
        enum perf_script_line kind = perf_script_read_line(text_of(line), &e, &f);
        if (kind != events[i].kind)
            fail_msg("'%s' is %d, not %d", line, kind, events[i].kind);
        assert_int_equal(e.lost, strstr(line, "lost 7") ? 7 : 0);
        if (kind != PERF_SCRIPT_EVENT)
            continue;
        check_text(line, e.comm, events[i].comm);
        check_text(line, e.event, events[i].event);
        if (e.pid != events[i].pid || e.tid != events[i].tid || e.cpu != events[i].cpu ||
            e.time_ns != events[i].time_ns || e.period != events[i].period || e.has_frame)
            fail_msg("'%s': pid %u tid %u cpu %u time %llu period %llu", line, e.pid, e.tid, e.cpu,
                     (unsigned long long)e.time_ns, (unsigned long long)e.period);
    }
}

static const struct {
    const char *line;
    uint64_t addr;
    const char *name, *dso;
} frames[] = {
    { "\t            11b2 f3+0x39 (/tmp/w)", 0x11b2, "f3", "/tmp/w" },
    { "\tffffffff81001234 do_syscall_64+0x5b ([kernel.kallsyms])", 0xffffffff81001234, "do_syscall_64",
      "[kernel.kallsyms]" },
    { "\t    7f0012345678 void [App] Ns.Type::Method(class System.String, int32)[Tier0]+0x1c "
      "(/tmp/perf-4096.map)",
      0x7f0012345678, "void [App] Ns.Type::Method(class System.String, int32)[Tier0]", "/tmp/perf-4096.map" },
    { "\t    7f0012345678 [unknown] (/memfd:doublemapper (deleted))", 0x7f0012345678, "",
      "/memfd:doublemapper (deleted)" },
    { "\t    7f0012345678 operator+(int, int) (/a b/c.so)", 0x7f0012345678, "operator+(int, int)",
      "/a b/c.so" },
    { "\t    7f0012345678 std::f(int)", 0x7f0012345678, "std::f(int)", "" },
    { "\t    7f0012345678 Program+<>c.<Main>b__0+0x10 (x.dll)", 0x7f0012345678, "Program+<>c.<Main>b__0",
      "x.dll" },
    { "\t           27304 __libc_start_main_impl+0x84 (inlined)", 0x27304, "__libc_start_main_impl",
      "inlined" },
    { "\t    7f0012345678 (/lib/x.so)", 0x7f0012345678, "", "/lib/x.so" },
    { "\t    7f0012345678", 0x7f0012345678, "", "" },
    { "        7f0012345678 f (/x)", 0x7f0012345678, "f", "/x" },
    { "\tmain (/x)", 0, "main", "/x" },
    { "\t    7f0012345678 )) ()", 0x7f0012345678, "))", "" },
};

static void test_frame_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        struct perf_script_event e;
        struct perf_script_frame f = { 0 };
        const char *line = frames[i].line;
        enum perf_script_line kind = perf_script_read_line(text_of(line), &e, &f);
        if (kind != PERF_SCRIPT_FRAME || f.addr != frames[i].addr)
            fail_msg("'%s': kind %d, address %llx", line, kind, (unsigned long long)f.addr);
        check_text(line, f.name, frames[i].name);
        check_text(line, f.dso, frames[i].dso);
    }
}

static void test_frame_on_the_event_line(void **state)
{
    (void)state;
    struct perf_script_event e = { 0 };
    struct perf_script_frame f;
    const char *line =
        "               w 29683  2795.225161:   10101010 cpu-clock:      55733913219b f3+0x22 (/tmp/w)";
    assert_int_equal(perf_script_read_line(text_of(line), &e, &f), PERF_SCRIPT_EVENT);
    assert_true(e.has_frame);
    assert_int_equal(e.frame.addr, 0x55733913219b);
    check_text(line, e.frame.name, "f3");
    check_text(line, e.comm, "w");
}

/* No line, wherever it ends, makes the reader look behind it. */
static void test_lines_cut_everywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events) + ARRAY_LEN(frames); i++) {
        const char *line = i < ARRAY_LEN(events) ? events[i].line : frames[i - ARRAY_LEN(events)].line;
        for (size_t size = 0; size < strlen(line); size++) {
            AUTO_FREE char *cut = malloc(size ? size : 1);
            struct perf_script_event e;
            struct perf_script_frame f;
            struct folded_line folded;
            memcpy(cut, line, size);
            perf_script_read_line(span_of(cut, size), &e, &f);
            perf_script_recognises(span_of(cut, size));
            folded_read_line(span_of(cut, size), &folded);
            folded_recognises(span_of(cut, size));
        }
    }
}

static void test_recognises(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_script, is_folded;
    } cases[] = {
        { "# ========\n# hostname : vm\n#\nw 1 1.5: 1 cycles: \n\t 12 f (x)\n\n", true, false },
        { "w 1/1 \n\t 1234 f (x)\n", true, false },
        { "swapper 0 0.0: PERF_RECORD_MMAP -1/0: [0xff81000000(0x12) @ 0]: x [kernel.kallsyms]_text\n", true,
          false },
        { "main;f 12\nmain 3\n", false, true },
        { "main 3\nmain;g 4\n", false, true },
        { "# a comment\nmain;f 12.5\n", false, true },
        { "Warning: lost some\nmain;f 12\n", false, true },
        { "main;f 12\n\r\nmain;f\n", false, true },
        { "main;f 12\nnonsense\nmore of it\n", false, false },
        { "took 12\nnonsense\n", false, false },
        { "main;f 1", false, true },
        { "main;f", false, false },
        { "{\"schema\": 12}\n", false, false },
        { "<html>\n", false, false },
        { "hello world\n", false, false },
        { "", false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (perf_script_recognises(text_of(cases[i].text)) != cases[i].is_script ||
            folded_recognises(text_of(cases[i].text)) != cases[i].is_folded)
            fail_msg("'%s'", cases[i].text);
    assert_false(perf_script_recognises(span_of("w 1 1.5: cycles: \n\0", 19)));
}

static void test_folded(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool ok;
        uint64_t count;
        const char *frames[4];
        const char *kinds;
    } cases[] = {
        { "a;b c;d 12", true, 12, { "a", "b c", "d" }, "..." },
        { "a_[k];b_[j];c_[i] 7", true, 7, { "a", "b", "c" }, "kji" },
        { "x_[n];y_[z];_[k] 1.75", true, 2, { "x", "y_[z]", "_[k]" }, "n.." },
        { "a;;b 1", true, 1, { "a", "", "b" }, "..." },
        { "a 18446744073709551615", true, UINT64_MAX, { "a" }, "." },
        { "a 18446744073709551616", true, UINT64_MAX, { "a" }, "." },
        { "a", false, 0, { 0 }, "" },
        { "12", false, 0, { 0 }, "" },
        { "a b", false, 0, { 0 }, "" },
        { "a 1x", false, 0, { 0 }, "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct folded_line line = { 0 };
        bool ok = folded_read_line(text_of(cases[i].line), &line);
        if (ok != cases[i].ok || line.count != cases[i].count)
            fail_msg("'%s': %d", cases[i].line, ok);
        struct span name;
        char kind;
        size_t n = 0;
        for (; folded_next_frame(&line.stack, &name, &kind); n++) {
            check_text(cases[i].line, name, cases[i].frames[n]);
            assert_int_equal(kind ? kind : '.', cases[i].kinds[n]);
        }
        assert_int_equal(n, strlen(cases[i].kinds));
    }
}

static void test_stream_lines(void **state)
{
    (void)state;
    static const char *const wanted[] = { "one", "", "a line that is lon", "last" };
    struct byte_stream s;
    struct span line;
    bool any;
    byte_stream_over(&s, text_of("one\r\n\na line that is longer than the window\nlast"), 18);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_true(byte_stream_line(&s, &line, &any, NULL));
        assert_true(any);
        check_text(wanted[i], line, wanted[i]);
    }
    assert_true(byte_stream_line(&s, &line, &any, NULL));
    assert_false(any);
    byte_stream_close(&s);
}

static void test_stream_skips(void **state)
{
    (void)state;
    struct byte_stream s;
    struct span there;
    uint64_t skipped;
    static uint8_t bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    byte_stream_over(&s, span_of(bytes, sizeof bytes), 64);
    assert_true(byte_stream_peek(&s, 10, &there, NULL));
    byte_stream_take(&s, 3);
    assert_true(byte_stream_skip(&s, 500, &skipped, NULL));
    assert_int_equal(skipped, 500);
    assert_true(byte_stream_peek(&s, 1, &there, NULL));
    assert_int_equal(there.data[0], 503 & 0xff);
    assert_int_equal(s.pos, 503);
    assert_true(byte_stream_skip(&s, UINT64_MAX, &skipped, NULL));
    assert_int_equal(skipped, 497);
    assert_true(byte_stream_peek(&s, 1, &there, NULL));
    assert_int_equal(there.size, 0);
    byte_stream_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_lines),
        cmocka_unit_test(test_frame_lines),
        cmocka_unit_test(test_frame_on_the_event_line),
        cmocka_unit_test(test_lines_cut_everywhere),
        cmocka_unit_test(test_recognises),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_stream_lines),
        cmocka_unit_test(test_stream_skips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
