#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "unwind/arm64_code.h"

static const struct {
    const char *name;
    uint8_t before[8];
    size_t size;
    bool is_call, is_syscall;
} cases[] = {
    { "bl forth", { 0x34, 0x12, 0x00, 0x94 }, 4, true, false },
    { "bl back", { 0xff, 0xff, 0xff, 0x97 }, 4, true, false },
    { "blr x8", { 0x00, 0x01, 0x3f, 0xd6 }, 4, true, false },
    { "blraaz x8", { 0x1f, 0x09, 0x3f, 0xd6 }, 4, true, false },
    { "blraa x8, sp", { 0x1f, 0x09, 0x3f, 0xd7 }, 4, true, false },
    { "nop; bl", { 0x1f, 0x20, 0x03, 0xd5, 0, 0, 0, 0x94 }, 8, true, false },
    { "b", { 0x34, 0x12, 0x00, 0x14 }, 4, false, false },
    { "br x8", { 0x00, 0x01, 0x1f, 0xd6 }, 4, false, false },
    { "ret", { 0xc0, 0x03, 0x5f, 0xd6 }, 4, false, false },
    { "svc #0", { 0x01, 0x00, 0x00, 0xd4 }, 4, false, true },
    { "bl; nop", { 0, 0, 0, 0x94, 0x1f, 0x20, 0x03, 0xd5 }, 8, false, false },
    { "nothing", { 0 }, 0, false, false },
    { "half of one", { 0x00, 0x00, 0x94 }, 3, false, false },
};

static void test_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE uint8_t *exact = malloc(cases[i].size ? cases[i].size : 1);
        memcpy(exact, cases[i].before, cases[i].size);
        struct span before = span_of(exact, cases[i].size);
        if (arm64_is_after_call(before) != cases[i].is_call ||
            arm64_is_after_syscall(before) != cases[i].is_syscall)
            fail_msg("%s", cases[i].name);
    }
    uint64_t target;
    assert_true(arm64_is_direct_call(span_of("\xff\xff\xff\x97", 4), 0x1004, &target)); /* bl .-4 */
    assert_int_equal(target, 0xffc);
    assert_false(arm64_is_direct_call(span_of("\xff\xff\xff", 3), 0x1004, &target));
    assert_false(arm64_is_direct_call(span_of("\x00\x01\x3f\xd6", 4), 0x1004, &target)); /* blr x8 */
}

static void test_plt(void **state)
{
    (void)state;
    /* stp x16, x30, [sp, #-16]!; adrp; ldr; add; br x17; nop; nop; nop; the first entry */
    static const uint32_t table[] = { 0xa9bf7bf0, 0xb0000090, 0xf947fe11, 0x913fe210, 0xd61f0220,
                                      0xd503201f, 0xd503201f, 0xd503201f, 0xb0000090, 0xf9400211 };
    struct span bytes = span_of(table, sizeof table);
    assert_int_equal(arm64_bare_depth(span_part(bytes, 0, 0), bytes), 0);
    for (size_t at = 4; at <= 16; at += 4)
        assert_int_equal(arm64_bare_depth(span_part(bytes, 0, at), span_part(bytes, at, 16)), 16);
    assert_int_equal(arm64_bare_depth(span_part(bytes, 16, 16), span_part(bytes, 32, 8)), 0);
}

static void test_signal_return(void **state)
{
    (void)state;
    static const uint32_t code[] = { 0xd2801168, 0xd4000001 };
    struct span bytes = span_of(code, sizeof code);
    assert_true(arm64_is_signal_return(bytes));
    assert_false(arm64_is_signal_return(span_part(bytes, 0, 7)));
    assert_false(arm64_is_signal_return(span_of("\x68\x11\x80\xd2\x1f\x20\x03\xd5", 8)));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_calls), cmocka_unit_test(test_plt),
                                        cmocka_unit_test(test_signal_return) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
