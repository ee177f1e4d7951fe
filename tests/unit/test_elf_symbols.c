#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/elf.h"
#include "render/elf_symbols.h"

static const struct elf_symbols_row rows[] = { { 0x1000, 0x20, 1 }, { 0x2345, 0x1, 7 } };
static const char names[] = "\0first\0second";

static void write_to(struct buffer *out, const char *build_id, size_t count)
{
    struct buffer strings;
    struct output output;
    struct error err;
    buffer_init(&strings, 64);
    buffer_append(&strings, names, sizeof names);
    buffer_init(out, 1 << 16);
    output_over_buffer(&output, out);
    elf_symbols_write(rows, count, &strings, build_id, &output);
    assert_true(output_close(&output, &err));
    buffer_done(&strings);
}

struct expected {
    const struct elf *e;
    size_t seen;
};

static bool check_symbol(void *user, const struct elf_symbol *symbol)
{
    struct expected *expected = user;
    const struct elf_symbols_row *row = &rows[expected->seen++];
    assert_int_equal(symbol->addr, row->file_off);
    assert_int_equal(symbol->size_bytes, row->size_bytes);
    assert_int_equal(symbol->type, ELF_SYMBOL_FUNCTION);
    assert_string_equal(names + symbol->name, names + row->name);
    assert_string_equal(elf_section_name(expected->e, &expected->e->sections[symbol->section]), ".text");
    /* an address is an offset in the other file */
    assert_int_equal(expected->e->segments[0].file_off, expected->e->segments[0].addr);
    assert_true(symbol->addr + symbol->size_bytes <= expected->e->segments[0].memory_bytes);
    return true;
}

/* What is written is what our own reader, which knows the specification, reads. */
static void test_read_back(void **state)
{
    (void)state;
    struct buffer bytes;
    struct elf e;
    struct error err;
    write_to(&bytes, "", ARRAY_LEN(rows));
    struct source file = source_over_span(buffer_span(&bytes)), table;
    assert_true(elf_open(&file, &e, &err));
    const struct elf_section *section = elf_section_of_type(&e, ELF_SECTION_SYMTAB);
    assert_non_null(section);
    assert_string_equal(elf_section_name(&e, section), ".symtab");
    assert_true(elf_section_source(&e, section, NULL, &table, &err));
    struct expected expected = { &e, 0 };
    assert_true(elf_symbols(&table, check_symbol, &expected, &err));
    assert_int_equal(expected.seen, ARRAY_LEN(rows));
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t size;
    assert_false(elf_build_id(&e, id, &size));
    elf_done(&e);
    buffer_done(&bytes);
}

static void test_build_id(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size; /* 0: none is written */
    } cases[] = {
        { "00ff7e", 3 }, { "79945f51fb2612f13b7667a10a8fd29122664791", 20 }, { "xy", 0 }, { "", 0 }
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer bytes;
        struct elf e;
        struct error err;
        uint8_t id[ELF_BUILD_ID_MAX];
        size_t size = 0;
        write_to(&bytes, cases[i].text, ARRAY_LEN(rows));
        struct source file = source_over_span(buffer_span(&bytes));
        assert_true(elf_open(&file, &e, &err));
        assert_int_equal(elf_build_id(&e, id, &size), cases[i].size > 0);
        if (cases[i].size) {
            assert_int_equal(size, cases[i].size);
            assert_int_equal(id[size - 1], cases[i].text[0] == '0' ? 0x7e : 0x91);
        }
        elf_done(&e);
        buffer_done(&bytes);
    }
}

static void test_no_symbols(void **state)
{
    (void)state;
    struct buffer bytes;
    struct elf e;
    struct error err;
    write_to(&bytes, "", 0);
    struct source file = source_over_span(buffer_span(&bytes));
    assert_true(elf_open(&file, &e, &err));
    assert_non_null(elf_section_of_type(&e, ELF_SECTION_SYMTAB));
    elf_done(&e);
    buffer_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_build_id),
        cmocka_unit_test(test_no_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
