#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/source.h"
#include "elf_fixture.h"
#include "symbolize/runtime_names.h"

enum { BYTES_MAX = 1 << 16, NAME_BYTES_MAX = 256 };

/* An image, what its tables tell, and the bytes in which that is kept. */
struct fixture {
    struct buffer file, kept;
    struct elf elf;
    struct eh_ranges functions;
    struct runtime_names names;
};

static void open_fixture(const char *name, struct fixture *f)
{
    f->file = elf_fixture_load(name);
    struct source source = source_over_span(buffer_span(&f->file));
    assert_true(elf_open(&source, &f->elf, NULL));
    assert_true(eh_ranges_read(&f->elf, &f->functions, NULL));
    runtime_names_find(&f->elf, &f->functions, &f->names);
    buffer_init(&f->kept, BYTES_MAX);
    eh_ranges_append(&f->functions, &f->kept);
    runtime_names_write(&f->names, &f->kept);
    assert_false(f->kept.failed);
}

static void close_fixture(struct fixture *f)
{
    runtime_names_done(&f->names);
    eh_ranges_done(&f->functions);
    elf_done(&f->elf);
    buffer_done(&f->file);
    buffer_done(&f->kept);
}

/* "" when the table has no name for the address. */
static void find_name(const struct fixture *f, const struct runtime_names *names, enum runtime_table table,
                      uint64_t addr, char out[NAME_BYTES_MAX])
{
    struct source strings =
        table == RUNTIME_QCALLS ? f->elf.file : source_over_span(buffer_span(&names->strings[table]));
    struct buffer name;
    struct symbol_match match;
    buffer_init(&name, NAME_BYTES_MAX);
    bool found = symbol_table_find(&names->tables[table], addr, &strings, false, &name, &match);
    snprintf(out, NAME_BYTES_MAX, "%s", found ? (const char *)name.data : "");
    buffer_done(&name);
}

static void check_same(const struct fixture *f, const struct eh_ranges *functions,
                       const struct runtime_names *names)
{
    for (uint64_t addr = 0; addr < f->file.size; addr++) {
        uint64_t starts[2] = { 0 }, sizes[2] = { 0 };
        assert_int_equal(eh_ranges_find(&f->functions, addr, &starts[0], &sizes[0]),
                         eh_ranges_find(functions, addr, &starts[1], &sizes[1]));
        assert_true(starts[0] == starts[1] && sizes[0] == sizes[1]);
        for (int table = 0; table < RUNTIME_TABLES; table++) {
            char found[NAME_BYTES_MAX], read[NAME_BYTES_MAX];
            find_name(f, &f->names, table, addr, found);
            find_name(f, names, table, addr, read);
            assert_string_equal(found, read);
        }
    }
}

/* What was kept answers as what was found, and a part of it is not taken. */
static void check_kept(const char *name, enum runtime_table table, uint64_t addr, const char *expected)
{
    struct fixture f;
    char text[NAME_BYTES_MAX];
    open_fixture(name, &f);
    find_name(&f, &f.names, table, addr, text);
    assert_string_equal(text, expected);
    for (size_t size = 0; size <= f.kept.size; size++) {
        struct cursor c = cursor_over(span_of(f.kept.data, size));
        struct eh_ranges functions;
        struct runtime_names names;
        bool whole = eh_ranges_take(&c, &f.elf, &functions) && runtime_names_read(&c, &f.elf, &names);
        assert_int_equal(whole, size == f.kept.size);
        if (!whole) {
            eh_ranges_done(&functions);
            continue;
        }
        check_same(&f, &functions, &names);
        runtime_names_done(&names);
        eh_ranges_done(&functions);
    }
    close_fixture(&f);
}

static void test_kept(void **state)
{
    (void)state;
    check_kept("runtime.so", RUNTIME_QCALLS, 0x2f1, "Thing_GetSecond");
    check_kept("fcalls.so", RUNTIME_FCALLS, 0x441, "System.Threading.Monitor.Enter");
}

/* Functions that do not ascend are of no image. */
static void test_order(void **state)
{
    (void)state;
    static const uint8_t rows[] = { 2, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0 };
    struct fixture f;
    struct eh_ranges functions;
    open_fixture("runtime.so", &f);
    struct cursor c = cursor_over(span_of(rows, sizeof rows));
    assert_false(eh_ranges_take(&c, &f.elf, &functions));
    assert_int_equal(functions.count, 0);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
