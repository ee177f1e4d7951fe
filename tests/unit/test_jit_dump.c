#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/source.h"
#include "read/jitdump.h"
#include "render/jit_dump.h"

enum { PID = 4711 };

static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3 };
static const struct jit_dump_line lines[] = { { 0x7f0000001000, "/src/a.cs", 10 },
                                              { 0x7f0000001003, "/src/a.cs", 12 } };
static const struct jit_dump_method methods[] = {
    { 0x7f0000001000, { code, sizeof code }, "App.Program.Main", lines, ARRAY_LEN(lines) },
    { 0x7f0000002000, { code, 1 }, "two\nlines", NULL, 0 },
    { 0x7f0000003000, { NULL, 0 }, "nothing", lines, 1 }, /* no code: left out, its lines too */
};

static struct buffer write_all(void)
{
    struct buffer out;
    struct output output;
    struct jit_dump dump;
    struct error err;
    buffer_init(&out, 1 << 16);
    output_over_buffer(&output, &out);
    jit_dump_begin(&dump, PID, 1, &output);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        jit_dump_add(&dump, &methods[i]);
    assert_true(output_close(&output, &err));
    assert_int_equal(dump.written, 2);
    return out;
}

struct found {
    struct jitdump_code codes[4];
    char names[4][32];
    size_t count;
};

static bool take(void *user, const struct jitdump_code *found)
{
    struct found *all = user;
    assert_true(all->count < ARRAY_LEN(all->codes) && found->name.size < sizeof all->names[0]);
    memcpy(all->names[all->count], found->name.data, found->name.size);
    all->codes[all->count++] = *found;
    return true;
}

static void test_our_reader(void **state)
{
    (void)state;
    struct buffer out = write_all();
    struct source file = source_over_span(buffer_span(&out));
    struct found found = { 0 };
    struct jitdump_counts counts;
    assert_true(jitdump_is(&file));
    assert_true(jitdump_read(&file, take, &found, &counts, NULL));
    assert_int_equal(found.count, 2);
    assert_int_equal(counts.malformed, 0);
    assert_false(counts.cut);
    assert_string_equal(found.names[0], "App.Program.Main");
    assert_string_equal(found.names[1], "twolines");
    for (size_t i = 0; i < found.count; i++) {
        assert_int_equal(found.codes[i].start, methods[i].addr);
        assert_int_equal(found.codes[i].size_bytes, methods[i].code.size);
        assert_int_equal(found.codes[i].time_ns, 1);
    }
    buffer_done(&out);
}

/* What the specification says of the lines; they come before the code that they are of. */
static void test_lines(void **state)
{
    (void)state;
    struct buffer out = write_all();
    struct cursor c = cursor_over(buffer_span(&out));
    cursor_skip(&c, 20);
    assert_int_equal(cursor_u32le(&c), PID);
    cursor_seek(&c, 40);
    assert_int_equal(cursor_u32le(&c), 2);
    uint32_t size = cursor_u32le(&c);
    cursor_skip(&c, 8);
    assert_int_equal(cursor_u64le(&c), 0x7f0000001000);
    assert_int_equal(cursor_u64le(&c), ARRAY_LEN(lines));
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(cursor_u64le(&c), lines[i].addr);
        assert_int_equal(cursor_u32le(&c), lines[i].line);
        assert_int_equal(cursor_u32le(&c), 0);
        struct span file = cursor_zstring(&c);
        assert_true(span_equals(file, span_of(lines[i].file, strlen(lines[i].file))));
    }
    assert_true(cursor_ok(&c));
    assert_int_equal(c.pos, 40 + size);
    assert_int_equal(cursor_u32le(&c), 0);
    size = cursor_u32le(&c);
    assert_memory_equal(out.data + c.pos - 8 + size - sizeof code, code, sizeof code);
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_our_reader), cmocka_unit_test(test_lines) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
