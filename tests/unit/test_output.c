#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/own.h"
#include "render/json_text.h"
#include "render/output.h"

static void test_numbers(void **state)
{
    (void)state;
    struct buffer memory;
    struct output out;
    buffer_init(&memory, 4096);
    output_over_buffer(&out, &memory);
    output_u64(&out, 0);
    output_char(&out, ' ');
    output_u64(&out, UINT64_MAX);
    output_char(&out, ' ');
    output_u64_padded(&out, 7, 3);
    output_char(&out, ' ');
    output_u64_padded(&out, 12345, 3);
    output_char(&out, ' ');
    output_hex(&out, 0xffffffff81001234);
    output_hex(&out, 0);
    output_char(&out, ' ');
    output_fixed(&out, 1500, 3);
    output_char(&out, ' ');
    output_fixed(&out, 42, 6);
    output_char(&out, ' ');
    output_fixed(&out, 42, 0);
    assert_true(output_close(&out, NULL));
    buffer_u8(&memory, 0);
    assert_string_equal(memory.data, "0 18446744073709551615 007 12345 ffffffff810012340 1.500 0.000042 42");
    buffer_done(&memory);
}

static const struct {
    const char *name, *text, *json;
} json_cases[] = {
    { "plain", "Orders.Export", "\"Orders.Export\"" },
    { "empty", "", "\"\"" },
    { "quotes", "a\"b\\c", "\"a\\\"b\\\\c\"" },
    { "controls", "a\n\t\r\b\f\x01\x1f\x7f", "\"a\\n\\t\\r\\b\\f\\u0001\\u001f\\u007f\"" },
    { "markup", "</script><!--", "\"\\u003c/script>\\u003c!--\"" },
    { "override", "x\xe2\x80\xaey", "\"x\\u202ey\"" },
    { "isolate", "\xe2\x81\xa6", "\"\\u2066\"" },
    { "line separators", "\xe2\x80\xa8\xe2\x80\xa9", "\"\\u2028\\u2029\"" },
    { "neighbours stay", "\xe2\x80\xa7\xe2\x80\xaf\xe2\x82\xac", "\"\xe2\x80\xa7\xe2\x80\xaf\xe2\x82\xac\"" },
    { "ends in the middle of a character", "\xe2\x80", "\"\xe2\x80\"" },
};

static void test_json_strings(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(json_cases); i++) {
        struct buffer memory;
        struct output out;
        buffer_init(&memory, 4096);
        output_over_buffer(&out, &memory);
        json_text_string(&out, json_cases[i].text);
        assert_true(output_close(&out, NULL));
        buffer_u8(&memory, 0);
        if (strcmp((char *)memory.data, json_cases[i].json) != 0)
            fail_msg("%s: %s", json_cases[i].name, (char *)memory.data);
        buffer_done(&memory);
    }
}

/* `size` bytes of a pattern, in pieces of many sizes. */
static uint8_t *write_pattern(struct output *out, size_t size)
{
    uint8_t *pattern = mem_alloc(size, 1);
    for (size_t i = 0; i < size; i++)
        pattern[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t at = 0, piece = 1; at < size; at += piece, piece = piece * 3 + 1) {
        if (piece > size - at)
            piece = size - at;
        output_write(out, pattern + at, piece);
    }
    return pattern;
}

static void test_large_writes(void **state)
{
    (void)state;
    const size_t size = 3000000;
    struct buffer memory;
    struct output out;
    buffer_init(&memory, SIZE_MAX);
    output_over_buffer(&out, &memory);
    AUTO_FREE uint8_t *pattern = write_pattern(&out, size);
    assert_true(output_close(&out, NULL));
    assert_int_equal(memory.size, size);
    assert_memory_equal(memory.data, pattern, size);
    buffer_done(&memory);
}

static void test_gzip(void **state)
{
    (void)state;
    const size_t size = 1000000;
    struct buffer memory;
    struct output out;
    buffer_init(&memory, SIZE_MAX);
    output_over_buffer(&out, &memory);
    output_gzip_begin(&out);
    AUTO_FREE uint8_t *pattern = write_pattern(&out, size);
    output_gzip_end(&out);
    assert_true(output_close(&out, NULL));
    /* no time in the header, so that equal profiles are equal files */
    assert_memory_equal(memory.data, "\x1f\x8b\x08\0\0\0\0\0", 8);

    AUTO_FREE uint8_t *plain = mem_alloc(size + 1, 1);
    z_stream stream = {
        .next_in = memory.data, .avail_in = (uInt)memory.size, .next_out = plain, .avail_out = (uInt)size + 1
    };
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, size);
    assert_memory_equal(plain, pattern, size);
    inflateEnd(&stream);
    buffer_done(&memory);
}

static void test_close_ends_a_compressed_stream(void **state)
{
    (void)state;
    struct buffer memory;
    struct output out;
    buffer_init(&memory, SIZE_MAX);
    output_over_buffer(&out, &memory);
    output_gzip_begin(&out);
    assert_true(output_close(&out, NULL));
    assert_true(output_close(&out, NULL));
    assert_int_equal(memory.size, 20); /* an empty gzip file */
    buffer_done(&memory);
}

static void test_ceiling(void **state)
{
    (void)state;
    for (int gzip = 0; gzip < 2; gzip++) {
        struct buffer memory;
        struct output out;
        struct error err = { 0 };
        buffer_init(&memory, 1000);
        output_over_buffer(&out, &memory);
        if (gzip)
            output_gzip_begin(&out);
        free(write_pattern(&out, 2000000));
        assert_false(output_close(&out, &err));
        assert_int_equal(err.kind, ERROR_LIMIT);
        assert_true(memory.size <= 1000);
        buffer_done(&memory);
    }
}

static void test_full_device(void **state)
{
    (void)state;
    AUTO_FD int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        skip();
    for (int gzip = 0; gzip < 2; gzip++) {
        struct output out;
        struct error err = { 0 };
        output_over_fd(&out, fd);
        if (gzip)
            output_gzip_begin(&out);
        free(write_pattern(&out, 2000000));
        assert_false(output_ok(&out, NULL));
        assert_false(output_close(&out, &err));
        assert_int_equal(err.os_error, ENOSPC);
    }
}

static void test_reader_gone(void **state)
{
    (void)state;
    int ends[2];
    struct output out;
    struct error err = { 0 };
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    output_over_fd(&out, ends[1]);
    output_text(&out, "hello");
    assert_false(output_close(&out, &err));
    assert_int_equal(err.os_error, EPIPE);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_json_strings),
        cmocka_unit_test(test_large_writes),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_close_ends_a_compressed_stream),
        cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_full_device),
        cmocka_unit_test(test_reader_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
