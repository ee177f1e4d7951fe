#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/own.h"

static const struct {
    const char *name;
    uint8_t bytes[10];
    size_t size;
    bool ok;
    uint32_t value;
} varuint32_cases[] = {
    { "one byte", { 0x7f }, 1, true, 127 },
    { "two bytes", { 0x80, 0x01 }, 2, true, 128 },
    { "largest", { 0xff, 0xff, 0xff, 0xff, 0x0f }, 5, true, UINT32_MAX },
    { "ends in the middle", { 0x80 }, 1, false, 0 },
    { "nothing", { 0 }, 0, false, 0 },
    { "wider than 32 bits", { 0xff, 0xff, 0xff, 0xff, 0x1f }, 5, false, 0 },
    { "longer than 5 bytes", { 0x80, 0x80, 0x80, 0x80, 0x80, 0x00 }, 6, false, 0 },
};

static void test_varuint32(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(varuint32_cases); i++) {
        struct cursor c = cursor_over(span_of(varuint32_cases[i].bytes, varuint32_cases[i].size));
        uint32_t value = cursor_varuint32(&c);
        if (cursor_ok(&c) != varuint32_cases[i].ok || value != varuint32_cases[i].value)
            fail_msg("%s: %u", varuint32_cases[i].name, value);
    }
}

static void test_failure_sticks(void **state)
{
    (void)state;
    uint8_t bytes[] = { 1, 2, 3 };
    struct cursor c = cursor_over(span_of(bytes, sizeof bytes));
    assert_int_equal(cursor_u16le(&c), 0x0201);
    assert_int_equal(cursor_u32le(&c), 0);
    assert_false(cursor_ok(&c));
    assert_int_equal(cursor_u8(&c), 0);
    assert_int_equal(cursor_left(&c), 0);
    struct error err;
    assert_false(cursor_finish(&c, &err, "the block"));
    assert_string_equal(err.what, "the block ends too early (at byte 2 of 3)");
}

static void test_counts_that_wrap(void **state)
{
    (void)state;
    uint8_t bytes[4] = { 0 };
    struct cursor c = cursor_over(span_of(bytes, sizeof bytes));
    cursor_skip(&c, 1);
    assert_int_equal(cursor_bytes(&c, UINT64_MAX).size, 0);
    assert_false(cursor_ok(&c));
    assert_int_equal(span_part(span_of(bytes, 4), 2, UINT64_MAX - 1).size, 0);
    assert_int_equal(span_part(span_of(bytes, 4), 5, 0).size, 0);
}

static void test_zstring(void **state)
{
    (void)state;
    struct cursor c = cursor_over(span_of("ab\0cd", 5));
    assert_int_equal(cursor_zstring(&c).size, 2);
    assert_int_equal(cursor_zstring(&c).size, 0);
    assert_false(cursor_ok(&c));
}

static void test_written_numbers_read_back(void **state)
{
    (void)state;
    static const int64_t values[] = { 0, -1, 1, 63, 64, -64, -65, INT64_MAX, INT64_MIN, 1234567890123 };
    struct buffer b;
    buffer_init(&b, 1024);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        buffer_zigzag64(&b, values[i]);
        buffer_varuint(&b, (uint64_t)values[i]);
        buffer_u64le(&b, (uint64_t)values[i]);
    }
    struct cursor c = cursor_over(buffer_span(&b));
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        assert_int_equal(cursor_zigzag64(&c), values[i]);
        assert_int_equal(cursor_varuint64(&c), values[i]);
        assert_int_equal(cursor_u64le(&c), values[i]);
    }
    assert_true(cursor_ok(&c));
    assert_int_equal(cursor_left(&c), 0);
    buffer_done(&b);
}

static void test_hex(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        unsigned digits_min;
        const char *text;
    } cases[] = {
        { 0, 1, "0" },
        { 0, 0, "0" },
        { 0xa, 2, "0a" },
        { 0x100, 2, "100" },
        { 0x7f, 8, "0000007f" },
        { UINT64_MAX, 1, "ffffffffffffffff" },
        { 1, 16, "0000000000000001" },
        { 1, 99, "0000000000000001" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        buffer_init(&b, 64);
        buffer_hex(&b, cases[i].value, cases[i].digits_min);
        buffer_u8(&b, 0);
        assert_string_equal((const char *)b.data, cases[i].text);
        buffer_done(&b);
    }
}

static void test_buffer_decimal(void **state)
{
    (void)state;
    static const struct {
        uint64_t value;
        const char *text;
    } cases[] = { { 0, "0" }, { 9, "9" }, { 10, "10" }, { UINT64_MAX, "18446744073709551615" } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        buffer_init(&b, 64);
        buffer_decimal(&b, cases[i].value);
        buffer_u8(&b, 0);
        assert_string_equal((const char *)b.data, cases[i].text);
        buffer_done(&b);
    }
}

static void test_buffer_ceiling(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 4);
    buffer_string(&b, "abcd");
    assert_false(b.failed);
    buffer_u8(&b, 'e');
    assert_true(b.failed);
    assert_int_equal(b.size, 4);
    buffer_done(&b);
}

static void test_sleb64(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[11];
        size_t size;
        bool ok;
        int64_t value;
    } cases[] = {
        { { 0x02 }, 1, true, 2 },
        { { 0x7e }, 1, true, -2 },
        { { 0xff, 0x00 }, 2, true, 127 },
        { { 0x80, 0x7f }, 2, true, -128 },
        { { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f }, 10, true, INT64_MIN },
        { { 0xff }, 1, false, 0 },
        { { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00 }, 11, false, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cursor c = cursor_over(span_of(cases[i].bytes, cases[i].size));
        int64_t value = cursor_sleb64(&c);
        assert_int_equal(cursor_ok(&c), cases[i].ok);
        if (cases[i].ok)
            assert_true(value == cases[i].value && cursor_left(&c) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varuint32),
        cmocka_unit_test(test_sleb64),
        cmocka_unit_test(test_failure_sticks),
        cmocka_unit_test(test_counts_that_wrap),
        cmocka_unit_test(test_zstring),
        cmocka_unit_test(test_written_numbers_read_back),
        cmocka_unit_test(test_buffer_decimal),
        cmocka_unit_test(test_buffer_ceiling),
        cmocka_unit_test(test_hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
