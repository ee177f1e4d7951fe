#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/ecma_metadata.h"
#include "read/ecma_signature.h"
#include "read/pe.h"

enum { METADATA_BYTES_MAX = 1 << 20 };

/* The metadata of tests/golden/r2r/tiny/tiny.dll. */
static int open_fixture(void **state)
{
    static struct buffer bytes;
    AUTO_FD int fd = open(GOLDEN_DIR "/r2r/tiny/tiny.dll", O_RDONLY | O_CLOEXEC);
    struct source file;
    struct pe pe;
    struct pe_cli cli;
    buffer_init(&bytes, METADATA_BYTES_MAX);
    if (fd < 0 || !source_over_fd(fd, 0, UINT64_MAX, &file, NULL) || !pe_read(&file, &pe, NULL) ||
        !pe_read_cli(&file, &pe, &cli, NULL) || !pe_load(&file, &pe, cli.metadata, &bytes, NULL))
        return -1;
    *state = &bytes;
    return 0;
}

static int close_fixture(void **state)
{
    buffer_done(*state);
    return 0;
}

static struct ecma_metadata open_metadata(void **state)
{
    struct ecma_metadata md;
    struct error err;
    if (!ecma_metadata_open(buffer_span(*state), &md, &err))
        fail_msg("%s", err.what);
    return md;
}

static bool is_text(struct span text, const char *wanted)
{
    return span_equals(text, span_of(wanted, strlen(wanted)));
}

static uint32_t type_row(const struct ecma_metadata *md, const char *name)
{
    for (uint32_t row = 1; row <= ecma_rows(md, ECMA_TYPE_DEF); row++)
        if (is_text(ecma_cell_string(md, ECMA_TYPE_DEF, row, ECMA_TYPE_DEF_NAME), name))
            return row;
    fail_msg("no type %s", name);
    return 0;
}

static void test_tables(void **state)
{
    struct ecma_metadata md = open_metadata(state);
    assert_true(is_text(ecma_cell_string(&md, ECMA_ASSEMBLY, 1, ECMA_ASSEMBLY_NAME), "tiny"));
    assert_true(is_text(ecma_cell_string(&md, ECMA_MODULE, 1, ECMA_MODULE_NAME), "tiny.dll"));
    assert_int_equal(ecma_mvid(&md).size, 16);
    uint32_t outer = type_row(&md, "Outer`1"), inner = type_row(&md, "Inner`1"), first;
    assert_int_equal(ecma_enclosing_type(&md, inner), outer);
    assert_int_equal(ecma_enclosing_type(&md, outer), 0);
    assert_int_equal(ecma_generic_params(&md, ECMA_OWNER_IS_TYPE, inner, &first), 2);
    assert_true(is_text(ecma_cell_string(&md, ECMA_GENERIC_PARAM, first + 1, ECMA_GENERIC_PARAM_NAME), "U"));
    assert_int_equal(ecma_interfaces(&md, type_row(&md, "Square"), &first), 2);
    for (uint32_t type = 1; type <= ecma_rows(&md, ECMA_TYPE_DEF); type++) {
        uint32_t end;
        ecma_type_methods(&md, type, &first, &end);
        for (uint32_t method = first; method < end; method++)
            assert_int_equal(ecma_method_owner(&md, method), type);
        for (uint32_t method = 0; method <= ecma_rows(&md, ECMA_METHOD_DEF) + 1; method++)
            assert_int_equal(ecma_is_method_of(&md, method, type), ecma_method_owner(&md, method) == type);
    }
    assert_false(ecma_is_method_of(&md, 1, 0));
}

static void test_what_is_not_there(void **state)
{
    struct ecma_metadata md = open_metadata(state);
    assert_int_equal(ecma_cell(&md, ECMA_TYPE_DEF, 0, 0), 0);
    assert_int_equal(ecma_cell(&md, ECMA_TYPE_DEF, UINT32_MAX, 0), 0);
    assert_int_equal(ecma_cell(&md, ECMA_TYPE_DEF, 1, 99), 0);
    assert_int_equal(ecma_cell(&md, ECMA_DOCUMENT, 1, 0), 0);
    assert_int_equal(ecma_string(&md, UINT32_MAX).size, 0);
    assert_int_equal(ecma_blob(&md, UINT32_MAX).size, 0);
    assert_int_equal(ecma_method_owner(&md, 0), 0);
    assert_int_equal(ecma_method_owner(&md, UINT32_MAX), 0);
}

static void test_cut_anywhere(void **state)
{
    const struct buffer *bytes = *state;
    for (size_t size = 0; size < bytes->size; size++) {
        AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
        memcpy(cut, bytes->data, size);
        struct ecma_metadata md;
        if (!ecma_metadata_open(span_of(cut, size), &md, NULL))
            continue;
        for (uint32_t method = 1; method <= ecma_rows(&md, ECMA_METHOD_DEF); method++)
            ecma_blob(&md, ecma_cell(&md, ECMA_METHOD_DEF, method, ECMA_METHOD_DEF_SIGNATURE));
    }
}

/*
 * Metadata of many pieces: a TypeDef row for each name, of which the one at LONG_ROW is long, and whose
 * Extends column is the offset of its blob.
 */
enum { LARGE_ROWS = 9000, LONG_ROW = 4321, LONG_NAME_BYTES = 15 << 10, BLOB_BYTES = 40 };

static void begin_stream(struct buffer *directory, const char *name, uint32_t offset, uint32_t size)
{
    static const uint8_t zeros[4];
    buffer_u32le(directory, offset);
    buffer_u32le(directory, size);
    buffer_string(directory, name);
    buffer_append(directory, zeros, 4 - strlen(name) % 4);
}

static void write_row(struct buffer *rows, struct buffer *strings, struct buffer *blobs, uint32_t row)
{
    buffer_u32le(rows, row);
    buffer_u32le(rows, (uint32_t)strings->size);
    buffer_u32le(rows, 0);
    buffer_u16le(rows, (uint16_t)(row * 4));
    buffer_u16le(rows, 1);
    buffer_u16le(rows, 1);
    buffer_decimal(strings, row);
    for (size_t i = 0; row == LONG_ROW && i < LONG_NAME_BYTES; i++)
        buffer_u8(strings, 'x');
    buffer_u8(strings, 0);
    buffer_u8(blobs, BLOB_BYTES);
    for (size_t i = 0; i < BLOB_BYTES; i++)
        buffer_u8(blobs, (uint8_t)(row + i));
}

static void write_large(struct buffer *out)
{
    struct buffer tables, strings, blobs;
    buffer_init(&tables, METADATA_BYTES_MAX);
    buffer_init(&strings, METADATA_BYTES_MAX);
    buffer_init(&blobs, METADATA_BYTES_MAX);
    buffer_u8(&strings, 0);
    buffer_u32le(&tables, 0);
    buffer_u32le(&tables, 2 | 0 << 8 | 5 << 16); /* version 2.0; wide strings and blobs */
    buffer_u64le(&tables, 1 << ECMA_TYPE_DEF);
    buffer_u64le(&tables, 0);
    buffer_u32le(&tables, LARGE_ROWS);
    for (uint32_t row = 1; row <= LARGE_ROWS; row++)
        write_row(&tables, &strings, &blobs, row);
    buffer_append(out, "BSJB\1\0\1\0\0\0\0\0\4\0\0\0v4\0\0\0\0\3\0", 24);
    uint32_t at = (uint32_t)out->size + 3 * 8 + 4 + 12 + 8;
    begin_stream(out, "#~", at, (uint32_t)tables.size);
    begin_stream(out, "#Strings", at + (uint32_t)tables.size, (uint32_t)strings.size);
    begin_stream(out, "#Blob", at + (uint32_t)(tables.size + strings.size), (uint32_t)blobs.size);
    assert_int_equal(out->size, at);
    buffer_append(out, tables.data, tables.size);
    buffer_append(out, strings.data, strings.size);
    buffer_append(out, blobs.data, blobs.size);
    buffer_done(&tables);
    buffer_done(&strings);
    buffer_done(&blobs);
}

static void check_row(const struct ecma_metadata *all, const struct ecma_metadata *lazy, uint32_t row)
{
    char number[16];
    snprintf(number, sizeof number, "%u", row);
    struct span name = ecma_cell_string(lazy, ECMA_TYPE_DEF, row, ECMA_TYPE_DEF_NAME);
    assert_int_equal(name.size, strlen(number) + (row == LONG_ROW ? LONG_NAME_BYTES : 0));
    assert_memory_equal(name.data, number, strlen(number));
    assert_true(span_equals(name, ecma_cell_string(all, ECMA_TYPE_DEF, row, ECMA_TYPE_DEF_NAME)));
    struct span blob = ecma_blob(lazy, (row - 1) * (BLOB_BYTES + 1));
    assert_int_equal(blob.size, BLOB_BYTES);
    assert_int_equal(blob.data[0], row & 0xff);
    assert_true(span_equals(blob, ecma_blob(all, (row - 1) * (BLOB_BYTES + 1))));
    assert_int_equal(ecma_cell(lazy, ECMA_TYPE_DEF, row, ECMA_TYPE_DEF_FLAGS), row);
}

static unsigned pieces_read(const struct lazy_bytes *lazy)
{
    unsigned count = 0;
    for (size_t i = 0; i < lazy->size / LAZY_PIECE_BYTES + 1; i++)
        count += lazy->is_read[i / 64] >> i % 64 & 1;
    return count;
}

/* What is read as it is needed is what all of it says. */
static void test_lazy(void **state)
{
    (void)state;
    struct buffer bytes;
    buffer_init(&bytes, METADATA_BYTES_MAX);
    write_large(&bytes);
    AUTO_FD int fd = memfd_create("metadata", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes.data, bytes.size), bytes.size);
    struct source file;
    struct error err;
    struct ecma_metadata all, md;
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, &err));
    struct lazy_bytes *lazy = lazy_bytes_open(&file, 0, file.size, METADATA_BYTES_MAX, &err);
    assert_non_null(lazy);
    assert_true(ecma_metadata_open(buffer_span(&bytes), &all, &err));
    assert_true(ecma_metadata_open_lazy(lazy, &md, &err));
    assert_int_equal(pieces_read(lazy), 1);
    check_row(&all, &md, LONG_ROW);
    assert_in_range(pieces_read(lazy), 4, 10); /* of the tables, the strings and the blobs */
    for (uint32_t i = 0; i < LARGE_ROWS; i++)
        check_row(&all, &md, i * 7919 % LARGE_ROWS + 1);
    assert_int_equal(ecma_string(&md, UINT32_MAX).size, 0);
    assert_int_equal(ecma_blob(&md, UINT32_MAX).size, 0);
    assert_int_equal(ecma_blob(&md, LARGE_ROWS * (BLOB_BYTES + 1) - 1).size,
                     0); /* the last byte, as a size */
    lazy_bytes_close(lazy);
    buffer_done(&bytes);
}

static void test_coded_integers(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[4];
        size_t size;
        bool ok;
        uint32_t value;
    } integers[] = {
        { { 0x03 }, 1, true, 3 },
        { { 0x7f }, 1, true, 0x7f },
        { { 0x80, 0x80 }, 2, true, 0x80 },
        { { 0xbf, 0xff }, 2, true, 0x3fff },
        { { 0xc0, 0x00, 0x40, 0x00 }, 4, true, 0x4000 },
        { { 0xdf, 0xff, 0xff, 0xff }, 4, true, 0x1fffffff },
        { { 0x80 }, 1, false, 0 },
        { { 0xc0, 0x00, 0x40 }, 3, false, 0 },
        { { 0xff }, 1, false, 0 },
        { { 0 }, 0, false, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(integers); i++) {
        struct cursor c = cursor_over(span_of(integers[i].bytes, integers[i].size));
        assert_int_equal(cursor_ecma_uint(&c), integers[i].value);
        assert_int_equal(cursor_ok(&c), integers[i].ok);
    }
}

/* Signatures that need no tables; [0] is the number of bytes. */
static const struct {
    const char *wanted; /* NULL: damaged */
    uint8_t size, bytes[24];
} signatures[] = {
    { "void  ()", 3, { 0x00, 0x00, 0x01 } },
    { "instance void  (int32)", 4, { 0x20, 0x01, 0x01, 0x08 } },
    { "class System.String  (class System.Object,bool,wchar,unsigned int8)",
      7,
      { 0x00, 0x04, 0x0e, 0x1c, 0x02, 0x03, 0x05 } },
    { "!!0  (!1&,!!0[])", 10, { 0x10, 0x01, 0x02, 0x1e, 0x00, 0x10, 0x13, 0x01, 0x1d, 0x1e } },
    { "int  (unsigned int,refany,void*)", 7, { 0x00, 0x03, 0x18, 0x19, 0x16, 0x0f, 0x01 } },
    { "void  (int64[,])", 8, { 0x00, 0x01, 0x01, 0x14, 0x0a, 0x02, 0x00, 0x00 } },
    { "void  (fnptr void(int32))", 8, { 0x00, 0x01, 0x01, 0x1b, 0x00, 0x01, 0x01, 0x08 } },
    { "void  (int32&)", 15, { 0x00, 0x01, 0x01, 0x22, 0x01, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0x08 } },
    { NULL, 12, { 0x00, 0x01, 0x01, 0x22, 0x01, 1, 2, 3, 4, 5, 6, 7 } },
    { NULL, 2, { 0x00, 0x01 } },
    { NULL, 4, { 0x00, 0x02, 0x01, 0x08 } },
    { NULL, 3, { 0x00, 0x00, 0x7e } },
    { NULL, 0, { 0 } },
};

static void test_signatures(void **state)
{
    struct ecma_metadata md = open_metadata(state);
    struct buffer out;
    buffer_init(&out, 4096);
    for (size_t i = 0; i < ARRAY_LEN(signatures); i++) {
        uint8_t bytes[32];
        uint8_t size = signatures[i].size;
        memcpy(bytes, signatures[i].bytes, sizeof signatures[i].bytes);
        if (i == 3)
            bytes[size++] = 0x00; /* the last type's number */
        buffer_clear(&out);
        bool ok = ecma_spell_method_signature(&md, span_of(bytes, size), &out);
        if (ok != (signatures[i].wanted != NULL) || (ok && !is_text(buffer_span(&out), signatures[i].wanted)))
            fail_msg("signature %zu: %.*s", i, (int)out.size, (const char *)out.data);
    }
    buffer_done(&out);
}

/* A type nested in itself without end must stop. */
static void test_endless_nesting(void **state)
{
    struct ecma_metadata md = open_metadata(state);
    uint8_t bytes[256];
    struct buffer out;
    buffer_init(&out, 1 << 16);
    memset(bytes, ELEMENT_SZARRAY, sizeof bytes);
    struct cursor c = cursor_over(span_of(bytes, sizeof bytes));
    struct ecma_scope scope = { .md = &md };
    ecma_spell_type(&c, &scope, &out);
    assert_false(cursor_ok(&c));
    buffer_done(&out);
}

/* An array of two dimensions may list two sizes; a list of thousands would spell nothing. */
static void test_array_shape(void **state)
{
    struct ecma_metadata md = open_metadata(state);
    uint8_t bytes[256] = { ELEMENT_ARRAY, 0x08, 2 };
    struct buffer out;
    struct ecma_scope scope = { .md = &md };
    buffer_init(&out, 4096);
    for (uint8_t sizes = 0; sizes < 100; sizes++) {
        struct cursor c = cursor_over(span_of(bytes, sizeof bytes));
        bytes[3] = sizes;
        buffer_clear(&out);
        ecma_spell_type(&c, &scope, &out);
        assert_int_equal(cursor_ok(&c), sizes <= 32);
        assert_true(sizes > 32 || is_text(buffer_span(&out), "System.Int32[,]"));
    }
    buffer_done(&out);
}

/* One look-up sees a bounded part of a table that is not sorted, and of a string that does not end. */
static void test_look_ups_are_bounded(void **state)
{
    (void)state;
    enum { ROWS = 50000, KEY = 40000, CLOSE_KEY = 5, STRING_BYTES = 1 << 16 };
    AUTO_FREE uint8_t *rows = malloc(ROWS * 4);
    AUTO_FREE uint8_t *text = malloc(STRING_BYTES);
    for (uint32_t i = 0; i < ROWS; i++)
        memcpy(rows + 4 * i, (uint8_t[]){ (i + 1) & 0xff, (i + 1) >> 8, 7, 0 }, 4);
    memset(text, 'x', STRING_BYTES);
    text[STRING_BYTES - 1] = 0;
    struct ecma_metadata md = { .strings = { text, STRING_BYTES }, .sorted = 1ull << ECMA_NESTED_CLASS };
    md.tables[ECMA_NESTED_CLASS] = (struct ecma_table){ rows, ROWS, 4, 2, { 0, 2 }, { 2, 2 } };
    assert_int_equal(ecma_enclosing_type(&md, KEY), 7);
    md.sorted = 0;
    assert_int_equal(ecma_enclosing_type(&md, CLOSE_KEY), 7);
    assert_int_equal(ecma_enclosing_type(&md, KEY), 0);
    assert_int_equal(ecma_string(&md, 0).size, 0);
    assert_int_equal(ecma_string(&md, STRING_BYTES - 11).size, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_lazy),
        cmocka_unit_test(test_coded_integers),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_endless_nesting),
        cmocka_unit_test(test_array_shape),
        cmocka_unit_test(test_look_ups_are_bounded),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
