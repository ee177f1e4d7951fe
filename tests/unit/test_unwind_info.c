#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "frame_rule_check.h"
#include "read/unwind_info.h"

/* push rbp; push r15; sub rsp, 0x28; lea rbp, [rsp+0x30]: as the JIT writes it, without a frame register */
#define FRAMED 0x19, 7, 3, 0, 7, 0x42, 3, 0xf0, 1, 0x50
/* push rbp; sub rsp, 0x1000; lea rbp, [rsp+0x20]: with localloc */
#define LOCALLOC 0x19, 13, 4, 0x25, 13, 0x03, 8, 0x01, 0x00, 0x02, 1, 0x50
/* a method replaced on the stack: the frame of the first one, with rbp's place in it, then its own */
#define REPLACED 0x19, 5, 4, 0, 5, 0x02, 0, 0x54, 5, 0, 0, 0x62

static const struct frame_rule_case cases[] = {
    { "no frame",
      { 0x19, 0, 0, 0 },
      4,
      5,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 8, 0, -8 } },
    { "framed",
      { FRAMED },
      10,
      100,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 64, -16, -8 } },
    { "at entry",
      { FRAMED },
      10,
      0,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 8, 0, -8 } },
    { "rbp pushed",
      { FRAMED },
      10,
      1,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 16, -16, -8 } },
    { "r15 pushed",
      { FRAMED },
      10,
      3,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 24, -16, -8 } },
    { "not yet allocated",
      { FRAMED },
      10,
      6,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 24, -16, -8 } },
    { "localloc",
      { LOCALLOC },
      12,
      50,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_FP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 0x1000 + 16 - 0x20,
        -16, -8 } },
    { "localloc, before its frame register",
      { LOCALLOC },
      12,
      8,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 0x1010, -16, -8 } },
    { "a frame register far away",
      { 0x19, 9, 5, 5, 9, 0x0b, 4, 0, 0, 0, 4, 0x02, 1, 0x50 },
      14,
      9,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_FP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 24 - 64, -16, -8 } },
    { "a large frame",
      { 0x19, 8, 4, 0, 8, 0x11, 0, 0, 2, 0, 1, 0x50 },
      12,
      8,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 0x20010, -16, -8 } },
    { "replaced on the stack",
      { REPLACED },
      12,
      5,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 72, -32, -8 } },
    { "xmm saved",
      { 0x19, 8, 3, 0, 8, 0x68, 2, 0, 4, 0x22 },
      10,
      8,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 32, 0, -8 } },
    { "nothing", { 0 }, 0, 0, false, { 0 } },
    { "another version", { 0x1a, 0, 0, 0 }, 4, 0, false, { 0 } },
    { "chained", { 0x21, 0, 0, 0 }, 4, 0, false, { 0 } },
    { "an unknown code", { 0x19, 1, 1, 0, 1, 0x07 }, 6, 1, false, { 0 } },
    { "codes cut short", { 0x19, 1, 2, 0, 1, 0x50 }, 6, 1, false, { 0 } },
    { "an operand cut short", { 0x19, 1, 1, 0, 1, 0x01 }, 6, 1, false, { 0 } },
    { "an absurd frame", { 0x19, 8, 3, 0, 8, 0x11, 0xff, 0xff, 0xff, 0xff }, 10, 8, false, { 0 } },
};

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        frame_rule_check(&cases[i], unwind_info_rule);
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        frame_rule_check_cut(&cases[i], unwind_info_rule);
}

static void test_bytes(void **state)
{
    (void)state;
    assert_int_equal(unwind_info_bytes((const uint8_t[]){ FRAMED }), 10);
    assert_int_equal(unwind_info_bytes((const uint8_t[]){ 1, 0, 255, 0 }), UNWIND_INFO_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rules), cmocka_unit_test(test_cut),
                                        cmocka_unit_test(test_bytes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
