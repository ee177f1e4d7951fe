#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "assembly_fixture.h"
#include "base/buffer.h"
#include "base/memory_pages.h"
#include "base/own.h"
#include "clr/method_desc.h"
#include "read/ecma_signature.h"
#include "symbolize/async_method.h"

enum { MARKED = 0x2000, TABLE_ROWS = 5, BLOB_BYTES = 16 };

/* Rows of TypeRef, and where their names are in #Strings. */
enum { TASK = 1, TASK_OF = 2, VALUE_TASK = 3, VALUE_TASK_OF = 4, LIST = 5 };
static const char strings[] = "\0Task\0Task`1\0ValueTask\0ValueTask`1\0List`1";
static const uint16_t names[TABLE_ROWS + 1] = { 0, 1, 6, 13, 23, 35 };
#define REF(row) ((row) << 2 | 1)

static const struct {
    const char *name;
    uint16_t impl_flags;
    uint8_t signature[BLOB_BYTES]; /* its length, then the bytes */
    bool thunk;
} methods[] = {
    { "Task M()", MARKED, { 4, 0, 0, ELEMENT_CLASS, REF(TASK) }, true },
    { "Task<int> M(int)", MARKED, { 7, 0, 1, ELEMENT_GENERICINST, ELEMENT_CLASS, REF(TASK_OF), 1, 8 }, true },
    { "ValueTask M<T>()", MARKED, { 5, 0x10, 1, 0, ELEMENT_VALUETYPE, REF(VALUE_TASK) }, true },
    { "ValueTask<int> M()",
      MARKED,
      { 6, 0, 0, ELEMENT_GENERICINST, ELEMENT_VALUETYPE, REF(VALUE_TASK_OF), 1 },
      true },
    { "with a modifier", MARKED, { 6, 0, 0, ELEMENT_CMOD_OPT, REF(LIST), ELEMENT_CLASS, REF(TASK) }, true },
    { "not marked", 0, { 4, 0, 0, ELEMENT_CLASS, REF(TASK) }, false },
    { "List<int> M()", MARKED, { 6, 0, 0, ELEMENT_GENERICINST, ELEMENT_CLASS, REF(LIST), 1 }, false },
    { "int M()", MARKED, { 3, 0, 0, 8 }, false },
    { "Task[] M()", MARKED, { 5, 0, 0, ELEMENT_SZARRAY, ELEMENT_CLASS, REF(TASK) }, false },
    { "cut off", MARKED, { 2, 0, 0 }, false },
    { "a row that is not there", MARKED, { 4, 0, 0, ELEMENT_CLASS, REF(63) }, false },
};

static void write_tables(struct buffer *out)
{
    buffer_u32le(out, 0);
    buffer_append(out, "\2\0\0\1", 4);
    buffer_u64le(out, UINT64_C(1) << 0x00 | UINT64_C(1) << 0x01 | UINT64_C(1) << 0x06);
    buffer_u64le(out, 0);
    buffer_u32le(out, 1);
    buffer_u32le(out, TABLE_ROWS);
    buffer_u32le(out, ARRAY_LEN(methods));
    buffer_append(out, "\0\0\1\0\0\0\0\0\0\0", 10);
    for (uint32_t row = 1; row <= TABLE_ROWS; row++) {
        buffer_u16le(out, 0);
        buffer_u16le(out, names[row]);
        buffer_u16le(out, 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        buffer_u32le(out, 0);
        buffer_u16le(out, methods[i].impl_flags);
        buffer_u16le(out, 0);
        buffer_u16le(out, 1);
        buffer_u16le(out, (uint16_t)(1 + BLOB_BYTES * i));
        buffer_u16le(out, 1);
    }
    buffer_append(out, "\0\0\0", 4 - out->size % 4);
}

static void write_metadata(struct buffer *out)
{
    struct buffer tables;
    uint8_t blob[1 + BLOB_BYTES * ARRAY_LEN(methods)] = { 0 };
    buffer_init(&tables, 1 << 16);
    write_tables(&tables);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        memcpy(blob + 1 + BLOB_BYTES * i, methods[i].signature, BLOB_BYTES);
    metadata_fixture_write(buffer_span(&tables), span_of(strings, sizeof strings), span_of(blob, sizeof blob),
                           out);
    buffer_done(&tables);
}

static void test_metadata(void **state)
{
    (void)state;
    struct buffer bytes;
    struct ecma_metadata md;
    struct error err = { 0 };
    buffer_init(&bytes, 1 << 16);
    write_metadata(&bytes);
    if (!ecma_metadata_open(buffer_span(&bytes), &md, &err))
        fail_msg("%s", err.what);
    for (uint32_t i = 0; i < ARRAY_LEN(methods); i++)
        if (async_method_is_thunk(&md, i + 1) != methods[i].thunk)
            fail_msg("%s", methods[i].name);
    assert_false(async_method_is_thunk(&md, 0));
    assert_false(async_method_is_thunk(&md, ARRAY_LEN(methods) + 1));
    buffer_done(&bytes);
}

/* What 11.0.0 had in the memory of a web service. */
static const struct {
    const char *name;
    uint8_t kind, flags; /* of the MethodDesc */
    uint8_t slots_bytes; /* between it and its AsyncMethodData */
    uint32_t bits;
    bool thunk;
} descs[] = {
    { "returns a Task, and was marked", METHOD_IL, 0x60, 8, 0x12, true },
    { "with all that can be between", METHOD_IL, 0x78, 32, 0x12, true },
    { "generic", METHOD_GENERIC, 0x68, 16, 0x12, true },
    { "its other form", METHOD_IL, 0x68, 16, 0x05, false },
    { "returns a Task, not marked", METHOD_IL, 0x60, 8, 0x02, false },
    { "its other form, made from what was written", METHOD_IL, 0x60, 8, 0x15, false },
    { "without such data", METHOD_IL, 0x20, 8, 0x12, false },
    { "of another kind", METHOD_ARRAY, 0x60, 8, 0x12, false },
};

enum { AT = 0x1000, DESC_BYTES = 16, GENERIC_BYTES = 40 };

static void read_page(void *user, struct memory_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_there = pieces[i].addr == AT && pieces[i].size == MEMORY_PAGE_BYTES;
        pieces[i].got = is_there ? MEMORY_PAGE_BYTES : 0;
        memcpy(pieces[i].into, user, pieces[i].got);
    }
}

static void test_memory(void **state)
{
    (void)state;
    struct memory_mapping mapping = {
        .start = AT, .end = AT + MEMORY_PAGE_BYTES, .readable = true, .path = ""
    };
    struct runtime_layout layout = { .method = { .size = DESC_BYTES, .flags = 6 },
                                     .generic = { .size = GENERIC_BYTES } };
    for (size_t i = 0; i < ARRAY_LEN(descs); i++) {
        uint8_t bytes[MEMORY_PAGE_BYTES] = { 0 };
        size_t off = (descs[i].kind == METHOD_GENERIC ? GENERIC_BYTES : DESC_BYTES) + descs[i].slots_bytes;
        bytes[6] = descs[i].flags | descs[i].kind;
        memcpy(bytes + off, &descs[i].bits, sizeof descs[i].bits);
        struct memory memory = { .read = read_page, .user = bytes, .mappings = &mapping, .mapping_count = 1 };
        struct memory_pages pages;
        struct method_desc desc = { .addr = AT, .kind = descs[i].kind, .has_async = descs[i].flags & 0x40 };
        memory_pages_init(&pages, &memory, 1 << 16);
        if (method_desc_is_async_thunk(&pages, &layout, &desc) != descs[i].thunk)
            fail_msg("%s", descs[i].name);
        memory_pages_done(&pages);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
