#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "render/perf_map_text.h"

static void write_to(struct buffer *out, const char *const *names, size_t count)
{
    struct trace t;
    struct code_symbols symbols = { 0 };
    struct output output;
    struct error err;
    trace_init(&t);
    for (size_t i = 0; i < count; i++)
        code_symbols_add(&symbols, (struct code_symbol){ 0x7f0000001000 + 0x100 * i, 0x2a,
                                                         trace_add_string(&t, names[i]), 0 });
    code_symbols_settle(&symbols);
    buffer_init(out, 1 << 16);
    output_over_buffer(&output, out);
    perf_map_text_write(&t, &symbols, &output);
    assert_true(output_close(&output, &err));
    buffer_u8(out, 0);
    code_symbols_done(&symbols);
    trace_done(&t);
}

static void test_lines(void **state)
{
    (void)state;
    static const char *const names[] = {
        "App.Program.Main lambda #2", "two\nlines\r\nand a tab\t", "", "not utf-8 \xff",
        "line\xe2\x80\xa8separator",
    };
    struct buffer out;
    write_to(&out, names, ARRAY_LEN(names));
    assert_string_equal((const char *)out.data, "0 1 [clrperf map]\n"
                                                "7f0000001000 2a App.Program.Main lambda #2\n"
                                                "7f0000001100 2a twolinesand a tab\n"
                                                "7f0000001300 2a not utf-8 \xef\xbf\xbd\n"
                                                "7f0000001400 2a lineseparator\n");
    buffer_done(&out);
}

static void test_nothing(void **state)
{
    (void)state;
    struct buffer out;
    write_to(&out, NULL, 0);
    assert_string_equal((const char *)out.data, "0 1 [clrperf map]\n");
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
