#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_writer.h"
#include "base/own.h"

static void write_sample(struct json_writer *w)
{
    json_begin_object(w);
    json_key(w, "schema");
    json_quoted(w, "clrperf.test/1");
    json_key(w, "rows");
    json_begin_array(w);
    json_begin_object(w);
    json_end_object(w);
    json_u64(w, UINT64_MAX);
    json_i64(w, INT64_MIN);
    json_double(w, 0.1);
    json_double(w, NAN);
    json_hex(w, 0x7f00);
    json_begin_array(w);
    json_end_array(w);
    json_end_array(w);
    json_key(w, "ok");
    json_bool(w, true);
    json_key(w, "none");
    json_quoted(w, NULL);
    json_end_object(w);
}

static const char sample_text[] =
    "{\"schema\":\"clrperf.test/"
    "1\",\"rows\":[{},18446744073709551615,-9223372036854775808,0.1,null,\"0x7f00\",[]],"
    "\"ok\":true,\"none\":null}\n";

static void test_document(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 4096);
    struct json_writer w;
    json_init(&w, &out);
    write_sample(&w);
    assert_true(json_finish(&w, NULL));
    assert_int_equal(out.size, strlen(sample_text));
    assert_memory_equal(out.data, sample_text, out.size);
    buffer_done(&out);
}

static void test_strings(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 4096);
    struct json_writer w;
    json_init(&w, &out);
    json_begin_array(&w);
    json_span(&w, span_of("a\"b\\c\n\t\x1b\0\x7f", 10));
    json_quoted(&w, "\xc3\xab \xf0\x9f\x98\x80 \xff");
    json_quoted(&w, "\xe2\x80\xa8");
    json_end_array(&w);
    assert_true(json_finish(&w, NULL));
    const char *wanted =
        "[\"a\\\"b\\\\c\\n\\t\\u001b\\u0000\\u007f\",\"\xc3\xab \xf0\x9f\x98\x80 \xef\xbf\xbd\","
        "\"\\u2028\"]\n";
    assert_int_equal(out.size, strlen(wanted));
    assert_memory_equal(out.data, wanted, out.size);
    buffer_done(&out);
}

static void test_ceiling(void **state)
{
    (void)state;
    for (size_t ceiling = 0; ceiling < strlen(sample_text); ceiling++) {
        struct buffer out;
        buffer_init(&out, ceiling);
        struct json_writer w;
        struct error err;
        json_init(&w, &out);
        write_sample(&w);
        assert_false(json_finish(&w, &err));
        assert_int_equal(err.kind, ERROR_LIMIT);
        buffer_done(&out);
    }
}

static bool count_bytes(void *user, struct span bytes)
{
    *(size_t *)user += bytes.size;
    return true;
}

static bool refuse_bytes(void *user, struct span bytes)
{
    (void)user;
    (void)bytes;
    errno = ENOSPC;
    return false;
}

static void test_stream(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, JSON_FLUSH_BYTES * 2);
    size_t total = 0;
    struct json_writer w;
    json_init_stream(&w, &out, count_bytes, &total);
    json_begin_array(&w);
    for (size_t i = 0; i < 100000; i++)
        json_quoted(&w, "twelve bytes");
    json_end_array(&w);
    assert_true(json_finish(&w, NULL));
    assert_int_equal(total, 100000 * 15 - 1 + 3);
    json_init_stream(&w, &out, refuse_bytes, NULL);
    json_begin_array(&w);
    for (size_t i = 0; i < JSON_FLUSH_BYTES; i++)
        json_u64(&w, i);
    json_end_array(&w);
    errno = 0; /* whatever happens between the failure and the end */
    struct error err;
    assert_false(json_finish(&w, &err));
    assert_int_equal(err.os_error, ENOSPC);
    buffer_done(&out);
}

/* What has to be escaped is, wherever it stands. */
static void test_every_place(void **state)
{
    (void)state;
    static const struct {
        char byte;
        const char *escaped;
    } odd[] = { { '"', "\\\"" },     { '\\', "\\\\" },    { '\n', "\\n" },
                { 0x1f, "\\u001f" }, { 0x7f, "\\u007f" }, { '~', "~" } };
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        for (size_t at = 0; at < 20; at++) {
            char text[21], expected[64];
            memset(text, '!', sizeof text); /* the character before the quotation mark's */
            text[20] = 0;
            text[at] = odd[k].byte;
            snprintf(expected, sizeof expected, "\"%.*s%s%s\"\n", (int)at, text, odd[k].escaped,
                     text + at + 1);
            struct buffer out;
            struct json_writer w;
            buffer_init(&out, 100);
            json_init(&w, &out);
            json_quoted(&w, text);
            json_next(&w);
            assert_true(span_equals(buffer_span(&out), span_of(expected, strlen(expected))));
            buffer_done(&out);
        }
}

/* Documents a line each. */
static void test_lines(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } times[] = {
        { 0, "0\n" },
        { 1, "0.000000001\n" },
        { 1500000000, "1.5\n" },
        { -2000000010, "-2.00000001\n" },
        { 7000000000, "7\n" },
    };
    struct buffer out;
    struct json_writer w;
    struct error err;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        buffer_init(&out, 100);
        json_init(&w, &out);
        json_ns_as_s(&w, times[i].ns);
        json_next(&w);
        assert_true(json_end_lines(&w, &err));
        assert_true(span_equals(buffer_span(&out), span_of(times[i].text, strlen(times[i].text))));
        buffer_done(&out);
    }
    static const char lines[] = "[18446744073709551615,-9223372036854775808,1.1,{\"a\":1}]\nnull\n";
    buffer_init(&out, 100);
    json_init(&w, &out);
    json_begin_array(&w);
    json_u64(&w, UINT64_MAX);
    json_i64(&w, INT64_MIN);
    json_float(&w, 1.1f);
    json_raw(&w, span_of("{\"a\":1}", 7));
    json_end_array(&w);
    json_next(&w);
    json_float(&w, INFINITY);
    json_next(&w);
    assert_true(json_end_lines(&w, &err));
    assert_true(span_equals(buffer_span(&out), span_of(lines, sizeof lines - 1)));
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document), cmocka_unit_test(test_strings), cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_stream),   cmocka_unit_test(test_lines),   cmocka_unit_test(test_every_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
