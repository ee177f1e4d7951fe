#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "frame_rule_check.h"
#include "read/unwind_info_arm64.h"

/* The first word of a record: instructions, one epilog at the end (or not), epilogs (or where its codes
 * begin). */
#define HEAD(instructions, one, epilogs, code_words)                                                         \
    (instructions) & 0xff, (instructions) >> 8, (one) << 5 | ((epilogs)&3) << 6,                             \
        (epilogs) >> 2 | (code_words) << 3
/* An epilog: the instruction it starts at, and where its codes begin. */
#define EPILOG(instruction, index) (instruction), 0, ((index)&3) << 6, (index) >> 2

/* stp fp, lr, [sp, #-32]!; mov fp, sp; ...; ldp fp, lr, [sp], #32; ret */
#define SMALL HEAD(10, 1, 1, 1), 0xe1, 0x83, 0xe4, 0xe4
/* stp fp, lr, [sp, #-96]!; stp x19, x20, [sp, #80]; stp x21, x22; mov fp, sp, which its two epilogs leave out
 */
#define SAVING HEAD(40, 0, 2, 2), EPILOG(20, 1), EPILOG(36, 1), 0xe1, 0xe6, 0xc8, 0x0a, 0x8b, 0xe4, 0xe3, 0xe3
/* sub sp, sp, #0x220; stp fp, lr, [sp, #16]; add fp, sp, #16 */
#define LARGE HEAD(40, 0, 0, 2), 0xe2, 2, 0x42, 0xc0, 0x22, 0xe4, 0xe3, 0xe3
/* a part of a function whose prolog lies elsewhere */
#define FRAGMENT HEAD(10, 0, 0, 1), 0xe5, 0xe1, 0x83, 0xe4

#define AT_SP(off, fp, ra)                                                                                   \
    {                                                                                                        \
        FRAME_CFA_OFFSET, FRAME_REGISTER_SP, fp, ra, 0, false, 0, 0, off, 0, 0                               \
    }
#define SAVED(base, off, fp_off, ra_off)                                                                     \
    {                                                                                                        \
        FRAME_CFA_OFFSET, base, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, off, fp_off, ra_off              \
    }

static const struct frame_rule_case cases[] = {
    { "at entry", { SMALL }, 8, 0, true, AT_SP(0, FRAME_SAME, FRAME_SAME) },
    { "the pair is stored", { SMALL }, 8, 4, true, SAVED(FRAME_REGISTER_SP, 32, -32, -24) },
    { "the body", { SMALL }, 8, 8, true, SAVED(FRAME_REGISTER_FP, 32, -32, -24) },
    { "the last one of the body", { SMALL }, 8, 28, true, SAVED(FRAME_REGISTER_FP, 32, -32, -24) },
    { "the epilog", { SMALL }, 8, 32, true, SAVED(FRAME_REGISTER_SP, 32, -32, -24) },
    { "its return", { SMALL }, 8, 36, true, AT_SP(0, FRAME_SAME, FRAME_SAME) },
    { "behind the function, after a call", { SMALL }, 8, 40, true, SAVED(FRAME_REGISTER_FP, 32, -32, -24) },
    { "far away", { SMALL }, 8, UINT32_MAX, true, SAVED(FRAME_REGISTER_FP, 32, -32, -24) },
    { "registers: in the prolog", { SAVING }, 20, 8, true, SAVED(FRAME_REGISTER_SP, 96, -96, -88) },
    { "registers: the body", { SAVING }, 20, 16, true, SAVED(FRAME_REGISTER_FP, 96, -96, -88) },
    { "registers: the first epilog", { SAVING }, 20, 80, true, SAVED(FRAME_REGISTER_SP, 96, -96, -88) },
    { "registers: its last load", { SAVING }, 20, 88, true, SAVED(FRAME_REGISTER_SP, 96, -96, -88) },
    { "registers: its return", { SAVING }, 20, 92, true, AT_SP(0, FRAME_SAME, FRAME_SAME) },
    { "registers: between epilogs", { SAVING }, 20, 96, true, SAVED(FRAME_REGISTER_FP, 96, -96, -88) },
    { "registers: the last return", { SAVING }, 20, 156, true, AT_SP(0, FRAME_SAME, FRAME_SAME) },
    { "a frame pointer inside the frame",
      { LARGE },
      12,
      100,
      true,
      SAVED(FRAME_REGISTER_FP, 0x210, -0x210, -0x208) },
    { "only allocated", { LARGE }, 12, 4, true, AT_SP(0x220, FRAME_SAME, FRAME_SAME) },
    { "a fragment", { FRAGMENT }, 8, 0, true, SAVED(FRAME_REGISTER_FP, 32, -32, -24) },
    { "nothing to undo", { HEAD(10, 0, 0, 1), 0xe4 }, 8, 20, true, AT_SP(0, FRAME_SAME, FRAME_SAME) },
    { "lr beside another register",
      { HEAD(10, 0, 0, 1), 0xd6, 0x01, 0x04, 0xe4 },
      8,
      20,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 64, 0, -48 } },
    { "lr alone",
      { HEAD(10, 0, 0, 1), 0xd2, 0xc2, 0x04, 0xe4 },
      8,
      20,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 64, 0, -48 } },
    { "lr alone, making room",
      { HEAD(10, 0, 0, 1), 0xd5, 0x61, 0xe4 },
      8,
      20,
      true,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 16, 0, -16 } },
    { "other registers, making room",
      { HEAD(30, 0, 0, 2), 0x24, 0xcc, 0x03, 0xda, 0x01, 0xde, 0x01, 0xe4 },
      12,
      100,
      true,
      AT_SP(32 + 32 + 16 + 16, FRAME_SAME, FRAME_SAME) },
    { "other registers",
      { HEAD(30, 0, 0, 2), 0xd8, 0x03, 0xdc, 0x04, 0xd0, 0x05, 0x02, 0xe4 },
      12,
      100,
      true,
      AT_SP(32, FRAME_SAME, FRAME_SAME) },
    { "a huge frame",
      { HEAD(30, 0, 0, 2), 0xe0, 0x01, 0x00, 0x02, 0x83, 0xe4 },
      12,
      100,
      true,
      SAVED(FRAME_REGISTER_SP, 0x100020 + 32, -32, -24) },
    { "a signed return address",
      { HEAD(30, 0, 0, 1), 0xe1, 0x81, 0xfc, 0xe4 },
      8,
      100,
      true,
      SAVED(FRAME_REGISTER_FP, 16, -16, -8) },
    { "more words than the head can count",
      { HEAD(30, 0, 0, 0), 0, 0, 1, 0, 0xe1, 0x81, 0xe4, 0 },
      12,
      100,
      true,
      SAVED(FRAME_REGISTER_FP, 16, -16, -8) },
    { "nothing", { 0 }, 0, 0, false, { 0 } },
    { "another version", { 10, 0, 0x04, 0x08, 0xe4 }, 8, 20, false, { 0 } },
    { "no end", { HEAD(10, 0, 0, 1), 0x01, 0x01, 0x01, 0x01 }, 8, 20, false, { 0 } },
    { "an operand beyond the end", { HEAD(10, 0, 0, 1), 0x01, 0x01, 0x01, 0xe0 }, 8, 20, false, { 0 } },
    { "an unknown code", { HEAD(10, 0, 0, 1), 0xe9, 0xe4 }, 8, 20, false, { 0 } },
    { "an epilog without codes", { HEAD(10, 1, 9, 1), 0xe1, 0x83, 0xe4 }, 8, 20, false, { 0 } },
    { "an epilog that begins behind its codes",
      { HEAD(10, 0, 1, 1), EPILOG(3, 9), 0xe1, 0x83, 0xe4 },
      12,
      20,
      false,
      { 0 } },
    { "a frame pointer that was given back", { HEAD(10, 0, 0, 1), 0x83, 0xe1, 0xe4 }, 8, 20, false, { 0 } },
};

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        frame_rule_check(&cases[i], unwind_info_arm64_rule);
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        frame_rule_check_cut(&cases[i], unwind_info_arm64_rule);
}

static void test_bytes(void **state)
{
    (void)state;
    assert_int_equal(unwind_info_arm64_bytes((const uint8_t[]){ SMALL }), 8);
    assert_int_equal(unwind_info_arm64_bytes((const uint8_t[]){ SAVING }), 20);
    assert_int_equal(unwind_info_arm64_bytes((const uint8_t[]){ 1, 0, 0, 0, 0, 4, 255, 0 }),
                     UNWIND_INFO_ARM64_BYTES_MAX);
    assert_int_equal(unwind_info_arm64_bytes((const uint8_t[]){ 1, 0, 0, 0, 1, 4, 255, 0 }), 0);
    assert_int_equal(unwind_info_arm64_function_bytes(load_u32le((const uint8_t[]){ SAVING })), 160);
    assert_true(unwind_info_arm64_is_packed(0x1001));
    assert_false(unwind_info_arm64_is_packed(0x1000));
    assert_int_equal(unwind_info_arm64_packed_function_bytes(7 << 2 | 1), 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rules), cmocka_unit_test(test_cut),
                                        cmocka_unit_test(test_bytes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
