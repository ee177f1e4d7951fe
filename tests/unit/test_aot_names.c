#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "elf_fixture.h"
#include "read/aot_definitions.h"
#include "read/aot_image.h"
#include "symbolize/aot_names.h"
#include "symbolize/native_image.h"

static const char *const fixtures[] = { "aot.so", "aot8.so" };

/* By address, 16 bytes each; what is between put_handler and sum is none of the compiler's methods. */
static const char *const names[] = {
    "Shop!Orders.Basket`1::Put",
    "Shop!Orders.Basket`1::Put",
    NULL,
    "Shop!Orders.Basket`1::Sum",
    "Shop!Orders.Basket`1+Line::Put",
    "Core!System.Lists.List`1+Each::MoveNext",
    NULL /* has no name */,
    "Shop!Orders.Basket`1::Main",
    "Shop!Orders.Basket`1+Line::.ctor",
    "Shop!Orders.Basket`1+Line::.ctor",
};

struct found {
    struct elf e;
    struct symbol_table table;
    struct buffer strings;
};

static void find(struct found *f, struct span bytes)
{
    struct source file = source_over_span(bytes);
    assert_true(elf_open(&file, &f->e, NULL));
    symbol_table_init(&f->table, elf_base_addr(&f->e), false);
    buffer_init(&f->strings, 1 << 20);
    aot_names_find(&f->e, &f->table, &f->strings);
    symbol_table_sort(&f->table);
}

static void done(struct found *f)
{
    buffer_done(&f->strings);
    symbol_table_done(&f->table);
    elf_done(&f->e);
}

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
        struct buffer bytes = elf_fixture_load(fixtures[i]), name;
        struct found f;
        find(&f, buffer_span(&bytes));
        buffer_init(&name, 1024);
        struct source strings = source_over_span(buffer_span(&f.strings));
        uint64_t start = elf_section_named(&f.e, "__managedcode")->addr;
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            struct symbol_match match;
            bool known = symbol_table_find(&f.table, start + 16 * k + 2, &strings, false, &name, &match);
            assert_int_equal(known, names[k] != NULL);
            if (!known)
                continue;
            assert_string_equal((char *)name.data, names[k]);
            assert_int_equal(match.start, start + 16 * k);
            assert_int_equal(match.size_bytes, 3);
        }
        buffer_done(&name);
        done(&f);
        buffer_done(&bytes);
    }
}

/* As everybody sees them. */
static void test_image(void **state)
{
    (void)state;
    AUTO_FD int fd = elf_fixture_open("aot.so");
    struct source file;
    struct native_image *image;
    struct code_name name;
    uint64_t start;
    assert_true(source_over_fd(fd, 0, UINT64_MAX, &file, NULL));
    assert_true(native_image_open(&file, "/srv/shop", NULL, &image, NULL));
    struct elf e;
    assert_true(elf_open(&file, &e, NULL));
    uint64_t code = elf_section_named(&e, "__managedcode")->addr;
    elf_done(&e);
    assert_true(native_image_find_addr(image, code + 16 * 7 + 1, &name, &start));
    assert_string_equal(name.name, "Orders.Basket`1::Main");
    assert_string_equal(name.module, "Shop");
    assert_int_equal(name.kind, CODE_R2R);
    assert_int_equal(name.resolver, RESOLVER_AOT);
    assert_int_equal(start, code + 16 * 7);
    assert_true(native_image_find_addr(image, code + 16 * 2 + 1, &name, &start));
    assert_int_equal(name.kind, CODE_NATIVE);
    assert_int_equal(name.resolver, RESOLVER_EH_FRAME);
    assert_string_equal(name.module, "shop");
    native_image_close(image);
}

/* The metadata, the list and the table as they are in the file. */
static struct span told_bytes(const struct found *f, struct buffer *bytes)
{
    const struct elf_section *rodata = elf_section_named(&f->e, ".rodata");
    return span_of(bytes->data + rodata->file_off, rodata->size_bytes);
}

/* Whatever a byte says, nothing is read that is not there, and what is found has a whole name. */
static void test_every_byte_changed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
        struct buffer bytes = elf_fixture_load(fixtures[i]);
        struct found f;
        find(&f, buffer_span(&bytes));
        struct span told = told_bytes(&f, &bytes);
        done(&f);
        for (size_t k = 0; k < told.size; k++) {
            uint8_t *byte = bytes.data + (told.data - bytes.data) + k, was = *byte;
            static const uint8_t others[] = { 0, 0x7f, 0xff };
            for (size_t o = 0; o < ARRAY_LEN(others); o++) {
                *byte = others[o];
                find(&f, buffer_span(&bytes));
                for (size_t row = 0; row < f.table.count; row++)
                    assert_non_null(strchr((char *)f.strings.data + f.table.rows[row].name, '!'));
                done(&f);
            }
            *byte = was;
        }
        buffer_done(&bytes);
    }
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    struct buffer bytes = elf_fixture_load("aot.so");
    struct found f;
    find(&f, buffer_span(&bytes));
    struct aot_image image;
    struct error err = { 0 };
    assert_true(aot_image_read(&f.e, &image, NULL));
    struct span metadata = image.metadata.bytes;
    for (size_t size = 0; size < metadata.size; size++) {
        AUTO_FREE uint8_t *copy = mem_alloc(size, 1); /* of that size alone, so that reading beyond is seen */
        struct aot_metadata md;
        struct aot_definitions definitions;
        struct buffer text;
        memcpy(copy, metadata.data, size);
        if (!aot_metadata_over(span_of(copy, size), AOT_KIND_BITS, &md, &err)) {
            assert_true(size < 4);
            continue;
        }
        buffer_init(&text, 4096);
        for (size_t m = 0; m < image.count; m++) {
            aot_metadata_append_type(&md, image.methods[m].owner, &text);
            aot_metadata_append_assembly(&md, image.methods[m].owner, &text);
        }
        if (aot_definitions_read(&md, &definitions, &err))
            aot_definitions_done(&definitions);
        buffer_done(&text);
    }
    aot_image_done(&image);
    done(&f);
    buffer_done(&bytes);
}

static void test_no_such_program(void **state)
{
    (void)state;
    struct buffer bytes = elf_fixture_load("sample.so");
    struct source file = source_over_span(buffer_span(&bytes));
    struct elf e;
    struct aot_image image;
    struct error err = { 0 };
    assert_true(elf_open(&file, &e, NULL));
    assert_false(aot_image_read(&e, &image, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    elf_done(&e);
    buffer_done(&bytes);
}

/* A type that is nested in itself; a namespace in itself. */
static void test_circles(void **state)
{
    (void)state;
    static const uint8_t type[] = { 0xfd, 0xdf, 0xad, 0xde, 0xf5, 8, 0 };
    static const uint8_t space[] = { 0xfd, 0xdf, 0xad, 0xde, 0xc1, 0x10, 0, 0, 0xc1, 0x10, 0 };
    const struct span circles[] = { span_of(type, sizeof type), span_of(space, sizeof space) };
    for (size_t i = 0; i < ARRAY_LEN(circles); i++) {
        struct aot_metadata md;
        struct buffer text;
        buffer_init(&text, 4096);
        assert_true(aot_metadata_over(circles[i], AOT_KIND_BITS, &md, NULL));
        assert_true(aot_metadata_is_type(&md, 0x3du << 25 | 4));
        assert_false(aot_metadata_append_type(&md, 0x3du << 25 | 4, &text));
        assert_false(aot_metadata_append_assembly(&md, 0x3du << 25 | 4, &text));
        buffer_done(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_image),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_no_such_program),
        cmocka_unit_test(test_circles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
