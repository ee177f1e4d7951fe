#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "trace/code_symbols.h"

static const struct {
    const char *name;
    struct code_symbol in[4];
    size_t in_count;
    struct code_symbol out[4];
    size_t out_count;
} cases[] = {
    { "nothing", { { 0 } }, 0, { { 0 } }, 0 },
    { "sorted", { { 0x20, 8, 2, 0 }, { 0x10, 8, 1, 0 } }, 2, { { 0x10, 8, 1, 0 }, { 0x20, 8, 2, 0 } }, 2 },
    { "the first ends where the second begins",
      { { 0x10, 0x40, 1, 0 }, { 0x20, 8, 2, 0 } },
      2,
      { { 0x10, 0x10, 1, 0 }, { 0x20, 8, 2, 0 } },
      2 },
    { "of two at one place the better stays",
      { { 0x10, 4, 1, 1 }, { 0x10, 8, 2, 0 } },
      2,
      { { 0x10, 8, 2, 0 } },
      1 },
    { "the same twice", { { 0x10, 4, 1, 0 }, { 0x10, 4, 1, 0 } }, 2, { { 0x10, 4, 1, 0 } }, 1 },
    { "empty, or past the end",
      { { 0x10, 0, 1, 0 }, { UINT64_MAX - 3, 8, 2, 0 }, { UINT64_MAX - 8, 8, 3, 0 } },
      3,
      { { UINT64_MAX - 8, 8, 3, 0 } },
      1 },
};

static void test_settle(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct code_symbols symbols = { 0 };
        for (size_t s = 0; s < cases[i].in_count; s++)
            code_symbols_add(&symbols, cases[i].in[s]);
        code_symbols_settle(&symbols);
        if (symbols.count != cases[i].out_count)
            fail_msg("%s: %zu symbols", cases[i].name, symbols.count);
        for (size_t s = 0; s < symbols.count; s++) {
            assert_int_equal(symbols.rows[s].addr, cases[i].out[s].addr);
            assert_int_equal(symbols.rows[s].size_bytes, cases[i].out[s].size_bytes);
            assert_int_equal(symbols.rows[s].name, cases[i].out[s].name);
        }
        code_symbols_done(&symbols);
    }
}

static void test_from(void **state)
{
    (void)state;
    struct code_symbols symbols = { 0 };
    assert_int_equal(code_symbols_from(&symbols, 1), 0);
    code_symbols_add(&symbols, (struct code_symbol){ 0x10, 4, 1, 0 });
    code_symbols_add(&symbols, (struct code_symbol){ 0x20, 4, 1, 0 });
    code_symbols_settle(&symbols);
    assert_int_equal(code_symbols_from(&symbols, 0), 0);
    assert_int_equal(code_symbols_from(&symbols, 0x10), 0);
    assert_int_equal(code_symbols_from(&symbols, 0x11), 1);
    assert_int_equal(code_symbols_from(&symbols, 0x21), 2);
    code_symbols_done(&symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
