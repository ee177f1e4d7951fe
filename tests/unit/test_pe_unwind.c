#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden_file.h"
#include "read/ready_to_run.h"
#include "unwind/pe_unwind.h"

static int open_fixture(void **state, const char *name)
{
    static struct buffer dll;
    dll = golden_file_load(name);
    *state = &dll;
    return 0;
}

static int open_x64(void **state)
{
    return open_fixture(state, "r2r/tiny/tiny.dll");
}

static int open_arm64(void **state)
{
    return open_fixture(state, "r2r/tiny/tiny-arm64.dll");
}

static int close_fixture(void **state)
{
    buffer_done(*state);
    return 0;
}

/* Every function of the ReadyToRun table is found, with a rule that makes sense. */
static void test_functions(void **state)
{
    struct source file = source_over_span(buffer_span(*state));
    struct pe pe;
    struct pe_cli cli;
    struct ready_to_run *r2r;
    struct pe_unwind *image;
    assert_true(pe_read(&file, &pe, NULL));
    assert_true(pe_read_cli(&file, &pe, &cli, NULL));
    assert_true(ready_to_run_open(&file, &pe, cli.native_header, NULL, &r2r, NULL));
    assert_true(pe_unwind_open(&file, &image, NULL));
    uint32_t count = ready_to_run_function_count(r2r), framed = 0;
    assert_true(count > 10);
    for (uint32_t i = 0; i < count; i++) {
        struct r2r_body body;
        struct unwind_function function;
        struct frame_rule at_start, inside;
        if (!ready_to_run_body(r2r, i, &body) || body.kind == R2R_BODY_NONE)
            continue;
        assert_true(pe_unwind_find(image, body.begin_rva, &function));
        assert_int_equal(function.begin, body.begin_rva);
        assert_true(function.end <= body.end_rva);
        assert_true(pe_unwind_find(image, function.end - 1, &function));
        assert_true(function.format->rule(function.info, 0, &at_start));
        assert_true(function.format->rule(function.info, UINT32_MAX, &inside));
        bool arm64 = function.format == &unwind_format_arm64;
        assert_int_equal(at_start.cfa_off, arm64 ? 0 : 8);
        assert_int_equal(at_start.ra, arm64 ? FRAME_SAME : FRAME_AT_CFA);
        assert_true(inside.cfa_off >= 8 && inside.cfa_off % 8 == 0);
        assert_int_equal(inside.ra, FRAME_AT_CFA);
        framed += inside.fp == FRAME_AT_CFA;
    }
    assert_true(framed > 0);
    pe_unwind_close(image);
    ready_to_run_close(r2r);
}

/* .text is mapped with the page it begins in; a bundle can put the page's start before the image. */
static void test_bias(void **state)
{
    struct source file = source_over_span(buffer_span(*state));
    struct pe pe;
    struct pe_unwind *image;
    assert_true(pe_read(&file, &pe, NULL));
    assert_true(pe_unwind_open(&file, &image, NULL));
    const struct pe_section *text = NULL;
    for (uint32_t i = 0; i < pe.section_count && !text; i++)
        text = pe.sections[i].executable ? &pe.sections[i] : NULL;
    assert_non_null(text);
    uint64_t bias = 0, start = 0x7f0000000000;
    assert_true(pe_unwind_bias(image, start, text->file_off, &bias));
    assert_int_equal(bias, start - text->rva);
    assert_true(pe_unwind_bias(image, start - 0x100, text->file_off - 0x100, &bias));
    assert_int_equal(bias, start - text->rva);
    assert_true(pe_unwind_bias(image, start - 0x900, (uint64_t)text->file_off - 0x900, &bias));
    assert_int_equal(bias, start - text->rva);
    assert_false(pe_unwind_bias(image, start, UINT32_MAX, &bias));
    struct unwind_function function;
    assert_false(pe_unwind_find(image, 0, &function));
    assert_false(pe_unwind_find(image, UINT64_MAX, &function));
    pe_unwind_close(image);
}

static void test_cut(void **state)
{
    const struct buffer *dll = *state;
    for (size_t size = 0; size < dll->size; size += size < 1024 ? 1 : 97) {
        AUTO_FREE uint8_t *exact = malloc(size ? size : 1);
        memcpy(exact, dll->data, size);
        struct source file = source_over_span(span_of(exact, size));
        struct pe_unwind *image;
        struct unwind_function function;
        struct error err;
        if (!pe_unwind_open(&file, &image, &err))
            continue;
        for (uint64_t rva = 0x1000; rva < 0x4000; rva += 7)
            pe_unwind_find(image, rva, &function);
        pe_unwind_close(image);
    }
}

static void test_others(void **state)
{
    (void)state;
    struct source file = source_over_span(span_of("MZ", 2));
    struct pe_unwind *image;
    struct error err;
    assert_false(pe_unwind_open(&file, &image, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_functions), cmocka_unit_test(test_bias),
                                        cmocka_unit_test(test_cut), cmocka_unit_test(test_others) };
    return cmocka_run_group_tests(tests, open_x64, close_fixture) +
           cmocka_run_group_tests_name("arm64", tests, open_arm64, close_fixture);
}
