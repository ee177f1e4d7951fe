#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "eh_frame_fixture.h"
#include "elf_fixture.h"
#include "read/eh_frame.h"
#include "read/eh_frame_rows.h"

enum { BASE = 0x1000 };

/* push rbp; mov rbp, rsp; ...; pop rbp; ret, with a way out in the middle */
static const uint8_t framed[] = {
    0x41, 0x0e, 16, 0x86, 2,    /* +1: CFA rsp+16, rbp at CFA-16 */
    0x43, 0x0d, 6,              /* +4: CFA rbp+16 */
    0x50, 0x0a,                 /* +20: remembered */
    0x0c, 7,    8,              /*      CFA rsp+8: popped, though rbp's place stays */
    0x41, 0x0b,                 /* +21: as remembered */
    0x4f, 0x0c, 7,  8,    0xc6, /* +36: CFA rsp+8, rbp as at the start */
};
static const uint8_t root[] = { 0x07, 16 };
static const uint8_t plt[] = { 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
static const uint8_t sigreturn[] = {
    0x0f, 4,  0x77, 0xa0, 0x01, 0x06, /* CFA: the word at rsp+160 */
    0x10, 6,  3,    0x77, 0xf8, 0x00, /* rbp: in the word at rsp+120 */
    0x10, 16, 3,    0x77, 0xa8, 0x01, /* return address: at rsp+168 */
};
static const uint8_t realigned[] = {
    0x0f, 3, 0x76, 0x78, 0x06, /* CFA: the word at rbp-8 */
    0x10, 6, 2,    0x76, 0,    /* rbp: in the word at rbp */
};
static const uint8_t saved[] = {
    0x0f, 5,    0x77, 40,   0x06, 0x23, 8, /* CFA: the word at rsp+40, and 8 more */
    0x41, 0x0f, 10,   0x77, 8,    0x79, 0,
    0x38, 0x1e, 0x22, 0x06, 0x23, 8, /* +1: the word at rsp+8+8*r9, and 8 more */
};
static const uint8_t by_other[] = { 0x0c, 10, 0 };
static const uint8_t in_register[] = { 0x41, 0x0e, 0, 0x09, 16, 5, 0x41, 0x09, 6, 5 };
static const uint8_t unknown[] = { 0x41, 0x0e, 16, 0x41, 0x3e };
/* no rule of the form "register + offset" is there that could get another offset or register */
static const uint8_t half_defined[] = { 0x0f, 3,    0x76, 0x78, 0x06, 0x41, 0x0e, 16,
                                        0x41, 0x0d, 7,    0x41, 0x0c, 7,    24 };
static const uint8_t large_steps[] = { 0x02, 200,  0x0e, 16, 0x03, 0x00, 0x01, 0x0e,
                                       24,   0x04, 0,    0,  1,    0,    0x0e, 32 };

static struct buffer section_of_all(void)
{
    struct buffer s;
    buffer_init(&s, 1 << 16);
    size_t plain = eh_fixture_cie(&s, "zR", NULL, 0), signal = eh_fixture_cie(&s, "zRS", NULL, 0);
    eh_fixture_fde(&s, plain, 0x2000, 40, framed, sizeof framed);
    eh_fixture_fde(&s, plain, 0x2100, 16, root, sizeof root);
    eh_fixture_fde(&s, plain, 0x2200, 0x80, plt, sizeof plt);
    eh_fixture_fde(&s, signal, 0x2300, 9, sigreturn, sizeof sigreturn);
    eh_fixture_fde(&s, plain, 0x2400, 16, realigned, sizeof realigned);
    eh_fixture_fde(&s, plain, 0x2480, 16, saved, sizeof saved);
    eh_fixture_fde(&s, plain, 0x2500, 16, by_other, sizeof by_other);
    eh_fixture_fde(&s, plain, 0x2580, 16, in_register, sizeof in_register);
    eh_fixture_fde(&s, plain, 0x2600, 16, unknown, sizeof unknown);
    eh_fixture_fde(&s, plain, 0x2680, 16, half_defined, sizeof half_defined);
    eh_fixture_fde(&s, plain, 0x1800, 16, NULL, 0); /* out of order */
    eh_fixture_fde(&s, plain, 0x2008, 16, NULL, 0); /* inside another */
    eh_fixture_fde(&s, plain, 0x20000, 0x20000, large_steps, sizeof large_steps);
    eh_fixture_end(&s);
    return s;
}

static const struct {
    const char *name;
    uint64_t addr;
    struct frame_rule rule;
} cases[] = {
    { "below all", 0x10, { FRAME_CFA_NONE } },
    { "out of order",
      0x180f,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 8, 0, -8 } },
    { "behind its end", 0x1810, { FRAME_CFA_NONE } },
    { "entry",
      0x2000,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 8, 0, -8 } },
    { "pushed",
      0x2001,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 16, -16, -8 } },
    { "framed",
      0x2004,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_FP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 16, -16, -8 } },
    { "early ret",
      0x2014,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 8, -16, -8 } },
    { "framed again",
      0x2015,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_FP, FRAME_AT_CFA, FRAME_AT_CFA, 0, false, 0, 0, 16, -16, -8 } },
    { "late ret",
      0x2027,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 8, 0, -8 } },
    { "between functions", 0x2028, { FRAME_CFA_NONE } },
    { "root",
      0x2100,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_UNDEFINED, 0, false, 0, 0, 8, 0, 0 } },
    { "linkage table",
      0x2277,
      { FRAME_CFA_PLT, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 11, false, 0, 0, 8, 0, -8 } },
    { "signal",
      0x2300,
      { FRAME_CFA_DEREF, FRAME_REGISTER_SP, FRAME_AT_SP, FRAME_AT_SP, 0, true, 0, 0, 160, 120, 168 } },
    { "realigned",
      0x2401,
      { FRAME_CFA_DEREF, FRAME_REGISTER_FP, FRAME_AT_FP, FRAME_AT_CFA, 0, false, 0, 0, -8, 0, -8 } },
    { "the stack pointer is saved",
      0x2480,
      { FRAME_CFA_DEREF, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 8, 40, 0, -8 } },
    { "at an index",
      0x2481,
      { FRAME_CFA_DEREF, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 10, 8, 8, 0, -8 } },
    { "by r10", 0x2501, { FRAME_CFA_OFFSET, 10, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 0, 0, -8 } },
    { "the return address in rdi",
      0x2581,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_IN_REGISTER, 0, false, 0, 0, 0, 0, 5 } },
    { "the frame pointer, too",
      0x2582,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_LOST, FRAME_IN_REGISTER, 0, false, 0, 0, 0, 0, 5 } },
    { "before the unknown",
      0x2601,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 16, 0, -8 } },
    { "the unknown",
      0x2602,
      { FRAME_CFA_UNKNOWN, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 16, 0, -8 } },
    { "an offset for an expression",
      0x2681,
      { FRAME_CFA_UNKNOWN, 0, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 0, 0, -8 } },
    { "a register for it",
      0x2682,
      { FRAME_CFA_UNKNOWN, 0, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 0, 0, -8 } },
    { "both",
      0x2683,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 24, 0, -8 } },
    { "1-byte step",
      0x200c8,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 16, 0, -8 } },
    { "2-byte step",
      0x201c8,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 24, 0, -8 } },
    { "4-byte step",
      0x301c8,
      { FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_SAME, FRAME_AT_CFA, 0, false, 0, 0, 32, 0, -8 } },
    { "above all", 0x40000, { FRAME_CFA_NONE } },
    { "beyond 32 bits", 0x200000000, { FRAME_CFA_NONE } },
};

static bool same_rule(const struct frame_rule *a, const struct frame_rule *b)
{
    return a->cfa == b->cfa && a->cfa_register == b->cfa_register && a->fp == b->fp && a->ra == b->ra &&
           a->plt_edge == b->plt_edge && a->signal_frame == b->signal_frame && a->cfa_index == b->cfa_index &&
           a->cfa_above == b->cfa_above && a->cfa_off == b->cfa_off && a->fp_off == b->fp_off &&
           a->ra_off == b->ra_off;
}

static void test_rules(void **state)
{
    (void)state;
    struct buffer section = section_of_all();
    struct eh_rows rows;
    assert_true(eh_rows_compile(buffer_span(&section), EH_FIXTURE_ADDR, BASE, ELF_X86_64, &rows, NULL));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (!same_rule(eh_rows_find(&rows, cases[i].addr), &cases[i].rule))
            fail_msg("%s: another rule", cases[i].name);
    assert_int_equal(rows.skipped, 2); /* the one inside another, the unknown instruction */
    assert_int_equal(sizeof *rows.rows, 8);
    eh_rows_done(&rows);
    buffer_done(&section);
}

static void test_functions(void **state)
{
    (void)state;
    struct buffer section = section_of_all();
    struct eh_rows rows;
    uint64_t start = 0, end = 0;
    assert_true(eh_rows_compile(buffer_span(&section), EH_FIXTURE_ADDR, BASE, ELF_X86_64, &rows, NULL));
    assert_true(eh_rows_function(&rows, 0x2014, &start, &end));
    assert_int_equal(start, 0x2000);
    assert_int_equal(end, 0x2028);
    assert_true(eh_rows_function(&rows, 0x3ffff, &start, &end));
    assert_int_equal(start, 0x20000);
    assert_int_equal(end, 0x40000);
    assert_false(eh_rows_function(&rows, 0x2028, &start, &end));
    assert_false(eh_rows_function(&rows, 0x10, &start, &end));
    eh_rows_done(&rows);
    buffer_done(&section);
}

/* A function whose rows would take long to go through is not understood; the next one is. */
static void test_endless_instructions(void **state)
{
    (void)state;
    enum { LONGEST = 64 << 10 };
    for (size_t size = LONGEST; size <= LONGEST + 1; size++) {
        struct buffer s;
        struct eh_rows rows;
        AUTO_FREE uint8_t *code = malloc(size);
        memset(code, 0x41, size); /* steps of one byte */
        buffer_init(&s, 1 << 20);
        size_t cie = eh_fixture_cie(&s, "zR", NULL, 0);
        eh_fixture_fde(&s, cie, 0x10000, 0x10000, code, size);
        eh_fixture_fde(&s, cie, 0x20000, 16, NULL, 0);
        eh_fixture_end(&s);
        assert_true(eh_rows_compile(buffer_span(&s), EH_FIXTURE_ADDR, BASE, ELF_X86_64, &rows, NULL));
        assert_int_equal(rows.skipped, size > LONGEST);
        assert_int_equal(eh_rows_find(&rows, 0x10000)->cfa,
                         size > LONGEST ? FRAME_CFA_UNKNOWN : FRAME_CFA_OFFSET);
        assert_int_equal(eh_rows_find(&rows, 0x20000)->cfa, FRAME_CFA_OFFSET);
        eh_rows_done(&rows);
        buffer_done(&s);
    }
}

/* aarch64 has other numbers, and the return address stays in a register at first. */
static void test_arm(void **state)
{
    (void)state;
    static const uint8_t code[] = {
        12, 0, 0, 0, 0,  0, 0, 0,    1,    0,    4,    0x78, 30,   0x0c, 31, 0, /* CIE without augmentation */
        28, 0, 0, 0, 20, 0, 0, 0,    0,    0x20, 0,    0,    0,    0,    0,  0, 32,
        0,  0, 0, 0, 0,  0, 0, 0x41, 0x0e, 16,   0x9d, 2,    0x9e, 1,    0, /* +4: CFA sp+16, x29 at CFA-16,
                                                                               x30 at CFA-8 */
    };
    struct eh_rows rows;
    assert_true(eh_rows_compile(span_of(code, sizeof code), EH_FIXTURE_ADDR, BASE, ELF_AARCH64, &rows, NULL));
    assert_true(
        same_rule(eh_rows_find(&rows, 0x2000), &(struct frame_rule){ FRAME_CFA_OFFSET, FRAME_REGISTER_SP }));
    assert_true(same_rule(eh_rows_find(&rows, 0x2004),
                          &(struct frame_rule){ FRAME_CFA_OFFSET, FRAME_REGISTER_SP, FRAME_AT_CFA,
                                                FRAME_AT_CFA, 0, false, 0, 0, 16, -16, -8 }));
    eh_rows_done(&rows);
}

/* Cut at every byte, and with every byte spoiled: whatever comes out is a table that can be asked. */
static void test_damage(void **state)
{
    (void)state;
    struct buffer section = section_of_all();
    for (size_t i = 0; i < 2 * section.size; i++) {
        size_t size = i < section.size ? i : section.size;
        AUTO_FREE uint8_t *copy = malloc(size + 1);
        memcpy(copy, section.data, size);
        if (i >= section.size)
            copy[i - section.size] ^= 0xff;
        struct eh_rows rows;
        if (!eh_rows_compile(span_of(copy, size), EH_FIXTURE_ADDR, BASE, ELF_X86_64, &rows, NULL))
            continue;
        for (size_t k = 1; k < rows.count; k++)
            assert_true(rows.rows[k - 1].start < rows.rows[k].start);
        for (uint64_t addr = 0x1700; addr < 0x2700; addr += 3)
            eh_rows_find(&rows, addr);
        eh_rows_done(&rows);
    }
    buffer_done(&section);
}

/* A real image: every function of its .eh_frame is there. */
static void test_image(void **state)
{
    (void)state;
    struct buffer file = elf_fixture_load("sample.so");
    struct source source = source_over_span(buffer_span(&file));
    struct elf e;
    struct eh_rows rows;
    struct eh_ranges ranges;
    assert_true(elf_open(&source, &e, NULL));
    assert_true(eh_rows_read(&e, &rows, NULL));
    assert_true(eh_ranges_read(&e, &ranges, NULL));
    assert_int_equal(ranges.count, 5);
    for (size_t i = 0; i < ranges.count; i++) {
        uint64_t start, end, wanted = ranges.base + ranges.rows[i].start;
        assert_true(eh_rows_function(&rows, wanted, &start, &end));
        assert_int_equal(start, wanted);
        assert_int_equal(end, wanted + ranges.rows[i].size_bytes);
    }
    assert_int_equal(rows.skipped, 0);
    eh_ranges_done(&ranges);
    eh_rows_done(&rows);
    elf_done(&e);
    buffer_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules), cmocka_unit_test(test_functions),
        cmocka_unit_test(test_arm),   cmocka_unit_test(test_damage),
        cmocka_unit_test(test_image), cmocka_unit_test(test_endless_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
