#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "golden_file.h"
#include "read/ready_to_run.h"

enum { INDEX_BYTES_MAX = 1 << 16, HEAD_BYTES = 8, ROW_BYTES = 8 };

static struct ready_to_run *open_with(const struct buffer *dll, struct span index)
{
    struct source file = source_over_span(buffer_span(dll));
    struct pe pe;
    struct pe_cli cli;
    struct ready_to_run *r2r;
    assert_true(pe_read(&file, &pe, NULL));
    assert_true(pe_read_cli(&file, &pe, &cli, NULL));
    struct buffer copy;
    buffer_init(&copy, INDEX_BYTES_MAX);
    buffer_append(&copy, index.data, index.size);
    assert_true(ready_to_run_open(&file, &pe, cli.native_header, &copy, &r2r, NULL));
    buffer_done(&copy);
    return r2r;
}

static bool is_same_body(const struct r2r_body *a, const struct r2r_body *b)
{
    return a->kind == b->kind && a->component == b->component && a->method_row == b->method_row &&
           a->function == b->function && a->begin_rva == b->begin_rva && a->end_rva == b->end_rva &&
           span_equals(a->signature, b->signature);
}

/* How many functions two readers tell different things of. */
static uint32_t count_differences(const struct ready_to_run *a, const struct ready_to_run *b)
{
    uint32_t differ = 0, count = ready_to_run_function_count(a);
    assert_int_equal(ready_to_run_function_count(b), count);
    for (uint32_t f = 0; f < count; f++) {
        struct r2r_body x = { 0 }, y = { 0 };
        bool found = ready_to_run_body(a, f, &x);
        differ += found != ready_to_run_body(b, f, &y) || (found && !is_same_body(&x, &y));
    }
    return differ;
}

/* The same answers as the tables give, also from an index that is damaged: then the tables are asked. */
static void test_index(void **state)
{
    (void)state;
    struct buffer dll = golden_file_load("r2r/tiny/tiny.dll");
    struct ready_to_run *from_tables = open_with(&dll, (struct span){ 0 });
    uint32_t count = ready_to_run_function_count(from_tables);
    struct span index = ready_to_run_index(from_tables);
    assert_int_equal(index.size, HEAD_BYTES + ROW_BYTES * count);

    struct ready_to_run *from_index = open_with(&dll, index);
    assert_int_equal(count_differences(from_tables, from_index), 0);
    assert_int_equal(ready_to_run_component_count(from_index), 1);
    assert_true(span_equals(index, ready_to_run_index(from_index)));
    ready_to_run_close(from_index);

    for (size_t size = 0; size < index.size; size++) {
        from_index = open_with(&dll, span_of(index.data, size));
        assert_int_equal(count_differences(from_tables, from_index), 0);
        ready_to_run_close(from_index);
    }
    ready_to_run_close(from_tables);
    buffer_done(&dll);
}

/* One row of the index changed: it is taken as it stands, or not at all. */
static void test_rows(void **state)
{
    (void)state;
    static const struct {
        uint32_t value;
        uint16_t component, kind;
        bool taken;
    } rows[] = {
        { 1, 0, R2R_BODY_METHOD, true },          { 0, 0, R2R_BODY_INSTANCE, true },
        { 1, 1, R2R_BODY_METHOD, false },         /* an assembly that the image does not have */
        { 1 << 20, 0, R2R_BODY_INSTANCE, false }, /* behind the table's end */
        { 1, 0, R2R_BODY_INSTANCE + 1, false },   { 1, 0, 0x100 | R2R_BODY_METHOD, false },
        { 0, 0, R2R_BODY_NONE, false }, /* not the nearest body */
    };
    struct buffer dll = golden_file_load("r2r/tiny/tiny.dll"), index;
    struct ready_to_run *from_tables = open_with(&dll, (struct span){ 0 });
    buffer_init(&index, INDEX_BYTES_MAX);
    struct span told = ready_to_run_index(from_tables);
    buffer_append(&index, told.data, told.size);
    uint32_t last = ready_to_run_function_count(from_tables) - 1;
    uint8_t *row = index.data + HEAD_BYTES + (size_t)last * ROW_BYTES;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *at = row;
        for (unsigned byte = 0; byte < 4; byte++)
            *at++ = (uint8_t)(rows[i].value >> 8 * byte);
        *at++ = (uint8_t)rows[i].component;
        *at++ = (uint8_t)(rows[i].component >> 8);
        *at++ = (uint8_t)rows[i].kind;
        *at++ = (uint8_t)(rows[i].kind >> 8);
        struct ready_to_run *from_index = open_with(&dll, buffer_span(&index));
        assert_int_equal(count_differences(from_tables, from_index) > 0, rows[i].taken);
        ready_to_run_close(from_index);
    }
    buffer_done(&index);
    ready_to_run_close(from_tables);
    buffer_done(&dll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
