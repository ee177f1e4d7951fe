#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../nettrace_sample.h"
#include "base/own.h"
#include "clr/runtime_events.h"

static enum runtime_event_kind kind_of(const char *provider, uint32_t id)
{
    struct buffer b;
    buffer_init(&b, 256);
    utf16_append(&b, provider);
    enum runtime_event_kind kind = runtime_event_kind(buffer_span(&b), id);
    buffer_done(&b);
    return kind;
}

static void test_kinds(void **state)
{
    (void)state;
    assert_int_equal(kind_of(RUNTIME_PROVIDER, 143), RUNTIME_EVENT_METHOD_LOAD);
    assert_int_equal(kind_of(RUNTIME_PROVIDER, 144), RUNTIME_EVENT_METHOD_UNLOAD);
    assert_int_equal(kind_of(RUNTIME_RUNDOWN_PROVIDER, 144), RUNTIME_EVENT_METHOD_EXISTS);
    assert_int_equal(kind_of(RUNTIME_RUNDOWN_PROVIDER, 154), RUNTIME_EVENT_MODULE_EXISTS);
    assert_int_equal(kind_of(RUNTIME_RUNDOWN_PROVIDER, 146), RUNTIME_EVENT_RUNDOWN_DONE);
    assert_int_equal(kind_of(RUNTIME_PROVIDER, 146), RUNTIME_EVENT_OTHER); /* JitMemoryAllocated */
    assert_int_equal(kind_of(RUNTIME_PROVIDER, 154), RUNTIME_EVENT_OTHER); /* AssemblyLoad */
    assert_int_equal(kind_of("My-Source", 143), RUNTIME_EVENT_OTHER);
    assert_int_equal(kind_of(RUNTIME_PROVIDER, 1), RUNTIME_EVENT_GC_START);
    assert_int_equal(runtime_event_kind_named(RUNTIME_PROVIDER, 9), RUNTIME_EVENT_SUSPEND_BEGIN);
    assert_int_equal(runtime_event_kind_named(RUNTIME_RUNDOWN_PROVIDER, 9), RUNTIME_EVENT_OTHER);
    assert_int_equal(runtime_event_kind_named("My-Source", 1), RUNTIME_EVENT_OTHER);
}

static const struct {
    const char *type, *name, *signature, *expected;
} names[] = {
    { "Ns.Type`1+Nested[System.__Canon]", "Run", "instance void  (class System.String,int32)",
      "Ns.Type`1+Nested[System.__Canon]::Run(class System.String,int32)" },
    { "dynamicClass", "IL_STUB_PInvoke", "int32  ()", "dynamicClass::IL_STUB_PInvoke()" },
    { "", "JIT_Helper", "", "JIT_Helper" },
    { "Program", "<Main>$", "no parenthesis", "Program::<Main>$" },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct buffer b, text;
        buffer_init(&b, 4096);
        buffer_init(&text, 4096);
        sample_method(&b, 0x7f0000001000, 0x40, RUNTIME_METHOD_JITTED | 4u << 7, names[i].type, names[i].name,
                      names[i].signature);
        struct runtime_method_event m;
        struct error err;
        assert_true(runtime_method_event_read(buffer_span(&b), 1, true, &m, &err));
        assert_int_equal(m.addr, 0x7f0000001000);
        assert_int_equal(m.size_bytes, 0x40);
        assert_int_equal(runtime_method_tier(&m), RUNTIME_TIER_1);
        assert_false(runtime_method_is_cold(&m));
        assert_int_equal(runtime_method_append_name(&text, &m), 0);
        buffer_u8(&text, 0);
        assert_string_equal((const char *)text.data, names[i].expected);
        buffer_done(&b);
        buffer_done(&text);
    }
}

static void test_lone_surrogates_are_counted(void **state)
{
    (void)state;
    struct buffer b, text;
    buffer_init(&b, 4096);
    buffer_init(&text, 4096);
    sample_method(&b, 1, 1, 0, "T", "xy", "()");
    b.data[36 + 4 + 1] = 0xdc; /* the name's first unit, behind "T" and its terminator */
    struct runtime_method_event m;
    struct error err;
    assert_true(runtime_method_event_read(buffer_span(&b), 1, true, &m, &err));
    assert_int_equal(runtime_method_append_name(&text, &m), 1);
    buffer_done(&b);
    buffer_done(&text);
}

static void test_version_2_and_cold(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 4096);
    sample_method(&b, 1, 1, RUNTIME_METHOD_JITTED | 1u << 28, "T", "M", "()");
    buffer_u64le(&b, 77);
    buffer_u32le(&b, 99); /* what later versions append */
    struct runtime_method_event m;
    struct error err;
    assert_true(runtime_method_event_read(buffer_span(&b), 2, true, &m, &err));
    assert_int_equal(m.rejit_id, 77);
    assert_true(runtime_method_is_cold(&m));
    buffer_done(&b);
}

static void test_cut_methods(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 4096);
    sample_method(&b, 1, 1, 0, "Ns.Type", "Name", "void  ()");
    for (size_t size = 0; size <= b.size; size++) {
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, b.data, size);
        struct runtime_method_event m;
        struct error err;
        bool ok = runtime_method_event_read(span_of(exact, size), 2, true, &m, &err);
        assert_int_equal(ok, size >= 36); /* texts may be missing */
        free(exact);
    }
    buffer_done(&b);
}

/* As .NET 8 to 10 send them; each also cut at every byte. */
static void test_collections(void **state)
{
    (void)state;
    struct buffer b;
    struct error err;
    struct runtime_gc_start_event start;
    struct runtime_gc_end_event end;
    uint32_t reason;
    buffer_init(&b, 64);
    buffer_u32le(&b, 17); /* number */
    buffer_u32le(&b, 2);
    buffer_u32le(&b, 6);
    buffer_u32le(&b, RUNTIME_GC_BACKGROUND);
    buffer_u16le(&b, 0); /* runtime instance */
    buffer_u64le(&b, 0); /* who asked */
    for (size_t size = 0; size <= b.size; size++) {
        AUTO_FREE uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, b.data, size);
        assert_int_equal(runtime_gc_start_read(span_of(exact, size), &start, &err), size >= 16);
        assert_int_equal(runtime_gc_end_read(span_of(exact, size), &end, &err), size >= 8);
        assert_int_equal(runtime_suspend_begin_read(span_of(exact, size), &reason, &err), size >= 4);
    }
    assert_int_equal(start.number, 17);
    assert_int_equal(start.generation, 2);
    assert_int_equal(start.reason, 6);
    assert_int_equal(start.type, RUNTIME_GC_BACKGROUND);
    assert_int_equal(end.number, 17);
    assert_int_equal(end.generation, 2);
    assert_int_equal(reason, 17);
    buffer_done(&b);
}

static void test_modules(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 4096);
    buffer_u64le(&b, 0x7000);
    buffer_u64le(&b, 0x8000);
    buffer_u32le(&b, 8);
    buffer_u32le(&b, 0);
    sample_utf16z(&b, "/app/app.dll");
    sample_utf16z(&b, "");
    buffer_u16le(&b, 0);
    buffer_append(&b, "0123456789abcdef", 16);
    buffer_u32le(&b, 1);
    struct runtime_module_event m;
    struct error err;
    for (size_t size = 0; size < b.size; size++)
        assert_int_equal(runtime_module_event_read(span_of(b.data, size), 2, &m, &err), size >= 24);
    assert_true(runtime_module_event_read(buffer_span(&b), 2, &m, &err));
    assert_int_equal(m.module_id, 0x7000);
    assert_true(utf16_equals_ascii(m.il_path, "/app/app.dll"));
    assert_memory_equal(m.pdb_guid, "0123456789abcdef", 16);
    assert_int_equal(m.pdb_age, 1);
    assert_true(runtime_module_event_read(buffer_span(&b), 1, &m, &err));
    assert_int_equal(m.pdb_age, 0);
    buffer_done(&b);
}

/* Each cut at every byte. */
static void test_whose(void **state)
{
    (void)state;
    enum { COMMAND = 2 * 6, OS = 2 * 6, ARCH = 2 * 4, VERSION = 12 + 6 };
    struct buffer info, version;
    struct error err;
    buffer_init(&info, 64);
    buffer_init(&version, 64);
    sample_utf16z(&info, "a b c");
    sample_utf16z(&info, "Linux");
    sample_utf16z(&info, "x64");
    buffer_append(&version, (const uint8_t[12]){ 0 }, 12);
    buffer_u16le(&version, 10);
    buffer_u16le(&version, 0);
    buffer_u16le(&version, 1226);
    for (size_t size = 0; size <= info.size; size++) {
        AUTO_FREE uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, info.data, size);
        struct runtime_process_info told = { 0 };
        assert_int_equal(runtime_process_info_read(span_of(exact, size), &told, &err), size >= COMMAND);
        assert_int_equal(utf16_equals_ascii(told.command_line, "a b c"), size >= COMMAND);
        assert_int_equal(utf16_equals_ascii(told.arch, "x64"), size == COMMAND + OS + ARCH);
        assert_int_equal(told.arch.size > 0, size == COMMAND + OS + ARCH);
    }
    for (size_t size = 0; size <= version.size; size++) {
        AUTO_FREE uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, version.data, size);
        struct runtime_information_event told = { 0 };
        assert_int_equal(runtime_information_read(span_of(exact, size), &told, &err), size == VERSION);
        assert_int_equal(told.build, size == VERSION ? 1226 : 0);
    }
    buffer_done(&info);
    buffer_done(&version);
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        uint64_t addr;
        uint32_t size;
        bool ok;
    } cases[] = { { 0x1000, 16, true }, { 0x1000, 0, false }, { UINT64_MAX - 15, 16, false } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        struct runtime_method_range range;
        buffer_init(&b, 64);
        buffer_append(&b, (const uint8_t[16]){ 0 }, 16);
        buffer_u64le(&b, cases[i].addr);
        buffer_u32le(&b, cases[i].size);
        assert_int_equal(runtime_method_range_read(buffer_span(&b), &range), cases[i].ok);
        assert_false(runtime_method_range_read(span_of(b.data, b.size - 1), &range));
        if (cases[i].ok)
            assert_true(range.addr == cases[i].addr && range.end == cases[i].addr + cases[i].size);
        buffer_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_lone_surrogates_are_counted),
        cmocka_unit_test(test_version_2_and_cold),
        cmocka_unit_test(test_cut_methods),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_collections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
