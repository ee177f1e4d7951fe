#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "read/universal_events.h"

static void put_text(struct buffer *out, const char *text)
{
    buffer_u16le(out, (uint16_t)strlen(text));
    buffer_string(out, text);
}

static void put_mapping(struct buffer *out)
{
    buffer_varuint(out, 300);
    buffer_varuint(out, 0x7f0000001000);
    buffer_varuint(out, 0x7f0000002000);
    buffer_varuint(out, 0x1000);
    put_text(out, "/lib/libc.so.6");
    buffer_varuint(out, 7);
}

static void test_mapping(void **state)
{
    (void)state;
    struct universal_mapping m;
    struct error err;
    struct buffer b;
    buffer_init(&b, 256);
    put_mapping(&b);
    assert_true(universal_mapping_read(buffer_span(&b), &m, &err));
    assert_int_equal(m.id, 300);
    assert_int_equal(m.start, 0x7f0000001000);
    assert_int_equal(m.end, 0x7f0000002000);
    assert_int_equal(m.file_off, 0x1000);
    assert_true(span_equals(m.path, span_of("/lib/libc.so.6", 14)));
    assert_int_equal(m.metadata_id, 7);
    for (size_t size = 0; size < b.size; size++) {
        assert_false(universal_mapping_read(span_of(b.data, size), &m, &err));
        assert_int_equal(err.kind, ERROR_INPUT);
    }
    buffer_u8(&b, 1); /* a field of a later version */
    assert_true(universal_mapping_read(buffer_span(&b), &m, &err));
    buffer_done(&b);
}

static void test_symbol_and_process(void **state)
{
    (void)state;
    struct universal_symbol s;
    struct universal_process p;
    struct buffer b;
    buffer_init(&b, 256);
    buffer_varuint(&b, 1);
    buffer_varuint(&b, 300);
    buffer_varuint(&b, 0x1000);
    buffer_varuint(&b, 0x10ff);
    put_text(&b, "main");
    assert_true(universal_symbol_read(buffer_span(&b), &s, NULL));
    assert_int_equal(s.mapping_id, 300);
    assert_int_equal(s.start, 0x1000);
    assert_int_equal(s.end, 0x10ff);
    assert_true(span_equals(s.name, span_of("main", 4)));
    for (size_t size = 0; size < b.size; size++)
        assert_false(universal_symbol_read(span_of(b.data, size), &s, NULL));
    buffer_clear(&b);
    buffer_varuint(&b, 12);
    put_text(&b, "app");
    put_text(&b, "Unknown");
    assert_true(universal_process_read(buffer_span(&b), &p, NULL));
    assert_int_equal(p.ns_pid, 12);
    assert_true(span_equals(p.name, span_of("app", 3)));
    buffer_done(&b);
}

static void test_build_id(void **state)
{
    (void)state;
    static const struct {
        const char *json, *id;
    } cases[] = {
        { "{\"type\": \"ELF\",\"debug_link\": \"x\",\"build_id\": \"b1edf383\"}", "b1edf383" },
        { "{\"type\": \"ELF\",\"build_id\": \"\"}", NULL },
        { "{\"type\": \"ELF\",\"build_id\": \"../x\"}", NULL },
        { "{\"type\": \"PE\",\"name\": \"a.pdb\"}", NULL },
        { "{\"build_id\": 12}", NULL },
        { "{", NULL },
        { "", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[UNIVERSAL_BUILD_ID_MAX + 1] = "";
        bool there = universal_build_id(span_of(cases[i].json, strlen(cases[i].json)), id);
        assert_int_equal(there, cases[i].id != NULL);
        assert_string_equal(id, cases[i].id ? cases[i].id : "");
    }
}

static void test_names(void **state)
{
    (void)state;
    uint64_t value;
    assert_int_equal(universal_event_named("Universal.Events", "cpu"), UNIVERSAL_CPU);
    assert_int_equal(universal_event_named("Universal.System", "ProcessCreate"), UNIVERSAL_PROCESS);
    assert_int_equal(universal_event_named("Universal.System", "cpu"), UNIVERSAL_NONE);
    assert_int_equal(universal_event_named("Mine", "cpu"), UNIVERSAL_NONE);
    assert_true(universal_value_read(span_of("\xe8\x07", 2), &value, NULL));
    assert_int_equal(value, 1000);
    assert_false(universal_value_read(span_of("\xe8", 1), &value, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapping),
        cmocka_unit_test(test_symbol_and_process),
        cmocka_unit_test(test_build_id),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
