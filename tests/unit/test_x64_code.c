#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "unwind/x64_code.h"

enum { BEGIN = 0x1000, END = 0x2000, AT = 0x1800 };

static const struct {
    const char *name;
    uint8_t code[32];
    size_t size;
    bool is_epilog;
    uint8_t cfa_register;
    int32_t cfa_off;
    bool fp_saved;
    int32_t fp_off;
} epilogs[] = {
    { "ret", { 0xc3 }, 1, true, FRAME_REGISTER_SP, 8, false, 0 },
    { "rep ret", { 0xf3, 0xc3 }, 2, true, FRAME_REGISTER_SP, 8, false, 0 },
    { "pop rbp; ret", { 0x5d, 0xc3 }, 2, true, FRAME_REGISTER_SP, 16, true, -16 },
    { "add rsp, 40; pop rbx; pop r15; pop rbp; ret",
      { 0x48, 0x83, 0xc4, 0x28, 0x5b, 0x41, 0x5f, 0x5d, 0xc3 },
      9,
      true,
      FRAME_REGISTER_SP,
      72,
      true,
      -16 },
    { "add rsp, 0x1000; ret",
      { 0x48, 0x81, 0xc4, 0, 0x10, 0, 0, 0xc3 },
      8,
      true,
      FRAME_REGISTER_SP,
      0x1008,
      false,
      0 },
    { "lea rsp, [rbp-16]; pop r14; pop r15; pop rbp; ret",
      { 0x48, 0x8d, 0x65, 0xf0, 0x41, 0x5e, 0x41, 0x5f, 0x5d, 0xc3 },
      10,
      true,
      FRAME_REGISTER_FP,
      16,
      true,
      -16 },
    { "vzeroupper; add rsp, 8; ret",
      { 0xc5, 0xf8, 0x77, 0x48, 0x83, 0xc4, 8, 0xc3 },
      8,
      true,
      FRAME_REGISTER_SP,
      16,
      false,
      0 },
    { "two frames: add; pop rbx; add; pop rbp; ret",
      { 0x48, 0x83, 0xc4, 8, 0x5b, 0x48, 0x83, 0xc4, 16, 0x5d, 0xc3 },
      11,
      true,
      FRAME_REGISTER_SP,
      48,
      true,
      -16 },
    { "pop rbp; jmp out", { 0x5d, 0xe9, 0, 0x10, 0, 0 }, 6, true, FRAME_REGISTER_SP, 16, true, -16 },
    { "rex.jmp rax", { 0x48, 0xff, 0xe0 }, 3, true, FRAME_REGISTER_SP, 8, false, 0 },
    { "jmp [rip+x]", { 0xff, 0x25, 1, 2, 3, 4 }, 6, true, FRAME_REGISTER_SP, 8, false, 0 },
    { "mov rbp, [rsp+24]; add rsp, 32; ret",
      { 0x48, 0x8b, 0x6c, 0x24, 24, 0x48, 0x83, 0xc4, 32, 0xc3 },
      10,
      true,
      FRAME_REGISTER_SP,
      40,
      true,
      -16 },
    { "jmp within", { 0xe9, 0x10, 0, 0, 0 }, 5, false, 0, 0, false, 0 },
    { "a switch", { 0xff, 0xe0 }, 2, false, 0, 0, false, 0 },
    { "mov before ret", { 0x48, 0x89, 0xc7, 0xc3 }, 4, false, 0, 0, false, 0 },
    { "sub", { 0x48, 0x83, 0xc4, 0xf8, 0xc3 }, 5, false, 0, 0, false, 0 },
    { "pops for ever",
      { 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58,
        0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0x58, 0xc3 },
      28,
      false,
      0,
      0,
      false,
      0 },
    { "nothing", { 0 }, 0, false, 0, 0, false, 0 },
};

static void test_epilogs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(epilogs); i++) {
        struct frame_rule rule = { 0 };
        bool is = x64_epilog(span_of(epilogs[i].code, epilogs[i].size), AT, BEGIN, END, &rule);
        if (is != epilogs[i].is_epilog || rule.cfa_register != epilogs[i].cfa_register ||
            rule.cfa_off != epilogs[i].cfa_off || (rule.fp == FRAME_AT_CFA) != epilogs[i].fp_saved ||
            rule.fp_off != epilogs[i].fp_off)
            fail_msg("%s: %d, cfa %d+%d, fp %d at %d", epilogs[i].name, is, rule.cfa_register, rule.cfa_off,
                     rule.fp, rule.fp_off);
        for (size_t size = 0; size < epilogs[i].size; size++) { /* cut short it may say no, but not read on */
            AUTO_FREE uint8_t *exact = malloc(size ? size : 1);
            memcpy(exact, epilogs[i].code, size);
            x64_epilog(span_of(exact, size), AT, BEGIN, END, &rule);
        }
    }
}

static const struct {
    const char *name;
    uint8_t before[8];
    size_t size;
    bool is_call;
} calls[] = {
    { "call rel32", { 0xe8, 1, 2, 3, 4 }, 5, true },
    { "call rax", { 0xff, 0xd0 }, 2, true },
    { "call r11", { 0x41, 0xff, 0xd3 }, 3, true },
    { "call [rax]", { 0xff, 0x10 }, 2, true },
    { "call [rax+8]", { 0xff, 0x50, 8 }, 3, true },
    { "call [r12+8]", { 0x41, 0xff, 0x54, 0x24, 8 }, 5, true },
    { "call [rip+x]", { 0xff, 0x15, 1, 2, 3, 4 }, 6, true },
    { "call [rax+x]", { 0xff, 0x90, 1, 2, 3, 4 }, 6, true },
    { "call [r12+x]", { 0x41, 0xff, 0x94, 0x24, 1, 2, 3, 4 }, 8, true },
    { "jmp [rax]", { 0xff, 0x20 }, 2, false },
    { "nops", { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, 8, false },
    { "nothing", { 0 }, 0, false },
    { "half a call", { 1, 2, 3, 4 }, 4, false },
};

static void test_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (x64_is_after_call(span_of(calls[i].before, calls[i].size)) != calls[i].is_call)
            fail_msg("%s", calls[i].name);
    uint64_t target;
    struct span direct = span_of("\xe8\xfb\xff\xff\xff", 5);
    assert_true(x64_is_direct_call(direct, 0x1005, &target));
    assert_int_equal(target, 0x1000);
    assert_false(x64_is_direct_call(span_part(direct, 1, 4), 0x1005, &target));
    assert_false(x64_is_direct_call(span_of("\x41\xff\xd0", 3), 0x1005, &target));
    assert_true(x64_is_after_syscall(span_of("\x0f\x05", 2)));
    assert_false(x64_is_after_syscall(span_of("\x05", 1)));
}

static void test_plt(void **state)
{
    (void)state;
    static const uint8_t entry[] = { 0xff, 0x25, 1, 2, 3, 4, 0x68, 5, 0, 0, 0, 0xe9, 6, 7, 8, 9 };
    static const uint8_t first[] = { 0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4 };
    struct span e = span_of(entry, sizeof entry), f = span_of(first, sizeof first);
    assert_int_equal(x64_bare_depth(span_part(e, 0, 0), e), 0);
    assert_int_equal(x64_bare_depth(span_part(e, 0, 6), span_part(e, 6, 10)), 0);
    assert_int_equal(x64_bare_depth(span_part(e, 0, 11), span_part(e, 11, 5)), 8);
    assert_int_equal(x64_bare_depth(span_part(f, 0, 0), f), 8);
    assert_int_equal(x64_bare_depth(span_part(f, 0, 6), span_part(f, 6, 6)), 16);
}

/* As clang and gcc make them. */
static void test_retpolines(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[24];
        size_t call_target, size;
        uint32_t depths[2]; /* at its two instructions */
        size_t second;
    } thunks[] = {
        { { 0xe8, 0x0b, 0,    0,    0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb,
            0xf9, 0x0f, 0x1f, 0x40, 0, 0x4c, 0x89, 0x1c, 0x24, 0xc3 },
          16,
          21,
          { 8, 8 },
          20 },
        { { 0xe8, 0x07, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x48, 0x89, 0x04, 0x24, 0xc3 },
          12,
          17,
          { 8, 8 },
          16 },
        { { 0xe8, 0x07, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3 },
          12,
          18,
          { 8, 0 },
          17 },
        { { 0x48, 0x89, 0x44, 0x24, 8, 0xc3 }, 0, 6, { 0, 0 }, 5 }, /* another word of the stack */
        { { 0x48, 0x89, 0x04, 0x24, 0x90, 0xc3 }, 0, 6, { 0, 0 }, 5 },
    };
    for (size_t i = 0; i < ARRAY_LEN(thunks); i++) {
        struct span all = span_of(thunks[i].bytes, thunks[i].size);
        for (unsigned k = 0; k < 2; k++) {
            size_t at = k ? thunks[i].second : thunks[i].call_target;
            uint32_t depth = x64_bare_depth(span_part(all, 0, at), span_part(all, at, all.size - at));
            if (depth != thunks[i].depths[k])
                fail_msg("thunk %zu, %u: %u", i, k, depth);
        }
        if (thunks[i].bytes[0] == 0xe8)
            assert_int_equal(x64_bare_depth(span_part(all, 0, 0), all), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_epilogs), cmocka_unit_test(test_calls),
                                        cmocka_unit_test(test_plt), cmocka_unit_test(test_retpolines) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
