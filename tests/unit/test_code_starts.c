#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "read/code_starts.h"

enum { EXECUTABLE = 4, MIB = 1 << 20 };

static bool is_worth_it(uint64_t code_bytes, uint32_t told_bytes)
{
    struct elf_section sections[] = {
        { .type = 0 },
        { .type = ELF_SECTION_PROGBITS, .flags = EXECUTABLE, .addr = 0x1000, .size_bytes = code_bytes },
        { .type = ELF_SECTION_PROGBITS, .addr = 0x10000000, .size_bytes = 64 * MIB }, /* data */
    };
    struct elf e = { .machine = ELF_X86_64, .sections = sections, .section_count = 3 };
    struct eh_range row = { .start = 0x1000, .size_bytes = told_bytes };
    struct eh_ranges functions = { .rows = &row, .count = 1 };
    return code_starts_are_worth_it(&e, &functions);
}

/* A compiler's code is not read for what lies between its functions; a library without tables is. */
static void test_worth_it(void **state)
{
    (void)state;
    assert_false(is_worth_it(20 * MIB, 20 * MIB));
    assert_false(is_worth_it(20 * MIB, 20 * MIB - MIB / 8));
    assert_true(is_worth_it(20 * MIB, 19 * MIB));
    assert_true(is_worth_it(20 * MIB, 0));
    assert_true(is_worth_it(2 * MIB, 2 * MIB));
    assert_false(is_worth_it(300 * (uint64_t)MIB, 0)); /* more than is ever read */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_worth_it) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
