#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory_snapshot.h"
#include "base/own.h"
#include "base/source.h"
#include "clr/contract_descriptor.h"
#include "clr/runtime_layout.h"

enum { POINTERS = 24, JSON_AT = 0x1000, POINTERS_AT = 0x800 };
#define BASE UINT64_C(0x7f0000000000)

/* What 10.0.12 and 11.0.0 say of themselves, taken from their libcoreclr.so (MIT licence). */
static struct buffer json, json_11;

static bool load(const char *path, struct buffer *out)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct source file;
    buffer_init(out, 1 << 16);
    return fd >= 0 && source_over_fd(fd, 0, UINT64_MAX, &file, NULL) &&
           source_load(&file, 0, file.size, out, NULL);
}

static int load_json(void **state)
{
    (void)state;
    return load(GOLDEN_DIR "/clr/contract-10.0.12.json", &json) &&
                   load(GOLDEN_DIR "/clr/contract-11.0.0.json", &json_11)
               ? 0
               : -1;
}

static int free_json(void **state)
{
    (void)state;
    buffer_done(&json);
    buffer_done(&json_11);
    return 0;
}

static void append_run(struct buffer *out, uint64_t addr, struct span bytes)
{
    buffer_u64le(out, addr);
    buffer_u32le(out, (uint32_t)bytes.size);
    buffer_append(out, bytes.data, bytes.size);
}

/* A descriptor at BASE with that text. */
static void write_snapshot(struct buffer *out, struct span text, uint32_t told_size, uint32_t flags)
{
    struct buffer head, pointers;
    buffer_init(&head, 64);
    buffer_init(&pointers, 8 * POINTERS);
    buffer_append(&head, "DNCCDAC", 8);
    buffer_u32le(&head, flags);
    buffer_u32le(&head, told_size);
    buffer_u64le(&head, BASE + JSON_AT);
    buffer_u32le(&head, POINTERS);
    buffer_u32le(&head, 0);
    buffer_u64le(&head, BASE + POINTERS_AT);
    for (uint64_t i = 0; i < POINTERS; i++)
        buffer_u64le(&pointers, 0x1000 + i);
    buffer_append(out, "CLRPMEM1", 8);
    buffer_u32le(out, 1);
    buffer_u32le(out, 3);
    buffer_u64le(out, BASE);
    buffer_u64le(out, BASE + 0x10000);
    buffer_u64le(out, 0);
    buffer_u64le(out, 0);
    buffer_u8(out, 1);
    buffer_u16le(out, 0);
    append_run(out, BASE, buffer_span(&head));
    append_run(out, BASE + POINTERS_AT, buffer_span(&pointers));
    append_run(out, BASE + JSON_AT, text);
    buffer_done(&head);
    buffer_done(&pointers);
}

/* NULL when it is refused. */
static struct contract_descriptor *open_text(struct span text, uint32_t told_size, uint32_t flags)
{
    struct contract_descriptor *descriptor = NULL;
    struct memory_snapshot snapshot;
    struct memory_pages pages;
    struct buffer bytes;
    struct error err;
    buffer_init(&bytes, 1 << 18);
    write_snapshot(&bytes, text, told_size, flags);
    if (!memory_snapshot_open(buffer_span(&bytes), &snapshot, &err))
        fail_msg("%s", err.what);
    memory_pages_init(&pages, &snapshot.memory, 1 << 20);
    if (!contract_descriptor_open(&pages, BASE, &descriptor, &err))
        descriptor = NULL;
    memory_pages_done(&pages);
    memory_snapshot_done(&snapshot);
    buffer_done(&bytes);
    return descriptor;
}

static struct contract_descriptor *open_string(const char *text)
{
    return open_text(span_of(text, strlen(text)), (uint32_t)strlen(text), 1);
}

static void test_what_10_says(void **state)
{
    (void)state;
    struct contract_descriptor *d = open_text(buffer_span(&json), (uint32_t)json.size, 1);
    uint16_t offset = 0;
    uint64_t number = 0;
    assert_non_null(d);
    assert_true(contract_descriptor_field(d, "Module", "PEAssembly", &offset));
    assert_int_equal(offset, 0xd8);
    assert_false(contract_descriptor_field(d, "Module", "Nothing", &offset));
    assert_false(contract_descriptor_field(d, "Nothing", "PEAssembly", &offset));
    assert_true(contract_descriptor_number(d, "MethodDescTokenRemainderBitCount", &number));
    assert_int_equal(number, 12);
    assert_false(contract_descriptor_number(d, "RID", &number)); /* a text */
    assert_true(contract_descriptor_addr(d, "ExecutionManagerCodeRangeMapAddress", &number));
    assert_int_equal(number, 0x1000 + 20);
    assert_false(contract_descriptor_addr(d, "Nothing", &number));
    assert_int_equal(contract_descriptor_version(d, "ExecutionManager"), 2);
    assert_int_equal(contract_descriptor_version(d, "Nothing"), 0);
    contract_descriptor_close(d);
}

/* What was measured on 10 and what 10 says are the same. */
static void test_layout_of_10(void **state)
{
    (void)state;
    struct contract_descriptor *d = open_text(buffer_span(&json), (uint32_t)json.size, 1);
    struct runtime_layout layout = runtime_layouts[0];
    assert_non_null(d);
    assert_int_equal(layout.major, 10);
    assert_true(runtime_layout_describe(&layout, d));
    assert_memory_equal(&layout, &runtime_layouts[0], sizeof layout);
    contract_descriptor_close(d);
}

/* Contracts count anew there, and image layouts have moved. */
static void test_what_11_says(void **state)
{
    (void)state;
    struct contract_descriptor *d = open_text(buffer_span(&json_11), (uint32_t)json_11.size, 1);
    struct runtime_layout layout = runtime_layouts[0];
    assert_non_null(d);
    assert_int_equal(contract_descriptor_version(d, "ExecutionManager"), CONTRACTS_ANEW + 1);
    assert_int_equal(contract_descriptor_version(d, "StressLog"), CONTRACTS_ANEW + 2);
    assert_string_equal(contract_descriptor_text(d, "RuntimeProductVersionString"), "11.0.0");
    assert_null(contract_descriptor_text(d, "ThreadStore")); /* a pointer */
    assert_null(contract_descriptor_text(d, "Nothing"));
    layout.constant = false;
    assert_true(runtime_layout_describe(&layout, d));
    assert_true(layout.constant);
    assert_int_equal(layout.image.base, 0x10);
    assert_int_equal(layout.image.flat, 0x78);
    assert_int_equal(layout.module.file, 0xd8);
    contract_descriptor_close(d);
}

static void test_says_too_little(void **state)
{
    (void)state;
    struct runtime_layout layout = runtime_layouts[0];
    struct contract_descriptor *d =
        open_string("{\"types\":{\"RangeSection\":{\"RangeBegin\":64}},\"globals\":{}}");
    assert_non_null(d);
    assert_false(runtime_layout_describe(&layout, d));
    assert_memory_equal(&layout, &runtime_layouts[0], sizeof layout);
    contract_descriptor_close(d);
}

static void test_odd_values(void **state)
{
    (void)state;
    uint16_t offset;
    uint64_t number;
    struct contract_descriptor *d =
        open_string("{\"types\":{\"A\":{\"a\":-1,\"b\":65535,\"c\":\"1\",\"d\":[7,\"t\"],\"e\":[]},\"B\":3},"
                    "\"globals\":{\"a\":[[24],\"pointer\"],\"b\":[[-1],\"pointer\"],\"c\":[\"0x1z\",\"u8\"],"
                    "\"d\":5},\"contracts\":{\"a\":-2,\"b\":\"c0\",\"c\":\"x1\",\"d\":\"c\"}}");
    assert_non_null(d);
    for (const char *field = "abce"; *field; field++)
        assert_false(contract_descriptor_field(d, "A", (char[]){ *field, 0 }, &offset));
    assert_true(contract_descriptor_field(d, "A", "d", &offset));
    assert_int_equal(offset, 7);
    assert_false(contract_descriptor_field(d, "B", "a", &offset));
    assert_false(contract_descriptor_addr(d, "a", &number)); /* behind the pointers */
    assert_false(contract_descriptor_addr(d, "b", &number));
    assert_false(contract_descriptor_number(d, "c", &number));
    assert_true(contract_descriptor_number(d, "d", &number));
    assert_int_equal(number, 5);
    for (const char *contract = "abcd"; *contract; contract++)
        assert_int_equal(contract_descriptor_version(d, (char[]){ *contract, 0 }), 0);
    contract_descriptor_close(d);
}

static void test_damaged(void **state)
{
    (void)state;
    assert_null(open_text(buffer_span(&json), UINT32_MAX, 1));
    assert_null(open_text(buffer_span(&json), 0, 1));
    assert_null(open_text(buffer_span(&json), (uint32_t)json.size, 3)); /* of a 32-bit process */
    assert_null(open_string("[]{"));
    for (size_t size = 1; size < json.size; size += 97)
        assert_null(open_text(span_part(buffer_span(&json), 0, size), (uint32_t)size, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_10_says), cmocka_unit_test(test_layout_of_10),
        cmocka_unit_test(test_what_11_says), cmocka_unit_test(test_says_too_little),
        cmocka_unit_test(test_odd_values),   cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, load_json, free_json);
}
