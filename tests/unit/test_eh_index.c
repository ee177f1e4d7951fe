#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "elf_fixture.h"
#include "read/eh_frame.h"
#include "read/eh_index.h"

/* The sections of a fixture, which the caller ends, or eh_index_over() takes over. */
static struct eh_sections load(const char *name, struct eh_rows *out_rows)
{
    struct buffer bytes = elf_fixture_load(name);
    struct source file = source_over_span(buffer_span(&bytes));
    struct elf e;
    assert_true(elf_open(&file, &e, NULL));
    const struct elf_section *header = elf_section_named(&e, ".eh_frame_hdr");
    struct eh_sections s = { .header_addr = header->addr, .base = elf_base_addr(&e), .machine = e.machine };
    buffer_init(&s.header, 1 << 20);
    assert_true(eh_frame_load(&e, &s.frame, &s.frame_addr, NULL));
    assert_true(elf_section_load(&e, header, &s.header, NULL));
    if (out_rows)
        assert_true(eh_rows_read(&e, out_rows, NULL));
    elf_done(&e);
    buffer_done(&bytes);
    return s;
}

static const struct frame_rule *rule_at(struct eh_index *index, uint64_t addr)
{
    static const struct frame_rule none = { 0 };
    const struct eh_rows *rows = eh_index_rows(index, addr);
    return rows ? eh_rows_find(rows, addr) : &none;
}

static bool function_at(struct eh_index *index, uint64_t addr, uint64_t *out_start, uint64_t *out_end)
{
    const struct eh_rows *rows = eh_index_rows(index, addr);
    return rows && eh_rows_function(rows, addr, out_start, out_end);
}

/* Every address around what has rows, function by function and all at once. */
static void check_same(const char *name)
{
    struct eh_rows rows;
    struct eh_index *index;
    struct eh_sections s = load(name, &rows);
    assert_true(eh_index_over(&s, &index, NULL));
    uint64_t first = rows.base + rows.rows[0].start, last = rows.base + rows.rows[rows.count - 1].start + 16;
    for (uint64_t addr = first > 16 ? first - 16 : 0; addr < last; addr++) {
        uint64_t begin = 0, end = 0, other_begin = 0, other_end = 0;
        struct frame_rule rule = *rule_at(index, addr), other = *eh_rows_find(&rows, addr);
        assert_memory_equal(&rule, &other, sizeof rule);
        bool is = function_at(index, addr, &begin, &end);
        assert_int_equal(is, eh_rows_function(&rows, addr, &other_begin, &other_end));
        assert_int_equal(begin, other_begin);
        assert_int_equal(end, other_end);
    }
    eh_index_close(index);
    eh_rows_done(&rows);
}

/* With the frame pointer's own number the rules are the usual ones; once all were compiled nothing is known.
 */
static void test_register(void **state)
{
    (void)state;
    enum { RBP = 6, R15 = 15 };
    struct eh_rows rows;
    struct eh_index *index;
    struct eh_sections s = load("sample.so", &rows);
    assert_true(eh_index_over(&s, &index, NULL));
    for (size_t i = 0; i + 1 < rows.count; i++) {
        uint64_t addr = rows.base + rows.rows[i].start;
        const struct frame_rule *usual = eh_rows_find(&rows, addr);
        struct frame_rule rule;
        bool known = usual->cfa != FRAME_CFA_NONE && usual->cfa != FRAME_CFA_UNKNOWN;
        assert_int_equal(eh_index_register(index, addr, RBP, &rule), known);
        if (known)
            assert_memory_equal(&rule, usual, sizeof rule);
        assert_int_equal(eh_index_register(index, addr, R15, &rule), known);
        if (known)
            assert_int_equal(rule.fp, FRAME_SAME); /* no function of this file uses it */
    }
    eh_index_close(index);
    eh_rows_done(&rows);
}

static void test_same_as_all(void **state)
{
    (void)state;
    static const char *const names[] = { "sample.so", "stripped.so", "runtime.so", "mini.so", "bare.so" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        check_same(names[i]);
}

/* What is not as linkers write it, or is cut. */
static void test_refused(void **state)
{
    (void)state;
    struct eh_index *index = NULL;
    struct eh_sections whole = load("sample.so", NULL);
    for (size_t size = 0; size < whole.header.size; size++) {
        struct eh_sections s = load("sample.so", NULL);
        s.header.size = size;
        assert_false(eh_index_over(&s, &index, NULL));
    }
    static const size_t places[] = { 0, 1, 2, 3, 4 }; /* version, three encodings, where .eh_frame is */
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct eh_sections s = load("sample.so", NULL);
        s.header.data[places[i]] ^= 8;
        assert_false(eh_index_over(&s, &index, NULL));
    }
    struct eh_sections s = load("sample.so", NULL);
    memset(s.header.data + 8, 0xff, 4);
    assert_false(eh_index_over(&s, &index, NULL));
    buffer_done(&whole.header);
    buffer_done(&whole.frame);
}

/* A table that lies, or an .eh_frame that is cut, has no functions, or others, and that is all. */
static void test_lies(void **state)
{
    (void)state;
    struct eh_index *index = NULL;
    struct eh_sections good = load("sample.so", NULL);
    for (size_t at = 12; at < good.header.size; at++) {
        struct eh_sections s = load("sample.so", NULL);
        uint64_t base = s.base;
        s.header.data[at] ^= 0xa5;
        s.frame.size -= at % s.frame.size;
        assert_true(eh_index_over(&s, &index, NULL));
        for (uint64_t addr = base; addr < base + 0x3000; addr += 16)
            rule_at(index, addr);
        eh_index_close(index);
    }
    eh_index_close(NULL);
    buffer_done(&good.header);
    buffer_done(&good.frame);
}

/* More functions than are compiled one by one. */
static void put_u32(struct buffer *b, uint64_t value)
{
    buffer_u32le(b, (uint32_t)value);
}

static void test_many(void **state)
{
    (void)state;
    enum { FUNCTIONS = 2 * EH_INDEX_FUNCTIONS_MAX, FRAME = 0x100000, HEADER = 0x200000, CODE = 0x300000 };
    static const uint8_t cie[] = { 20, 0,    0,  0, 0,    0,    0, 0, 1,    'z', 'R', 0,
                                   1,  0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0 };
    struct eh_sections s = {
        .frame_addr = FRAME, .header_addr = HEADER, .base = 0x1000, .machine = ELF_X86_64
    };
    buffer_init(&s.frame, 1 << 20);
    buffer_init(&s.header, 1 << 20);
    buffer_append(&s.frame, cie, sizeof cie);
    buffer_append(&s.header, "\x01\x1b\x03\x3b", 4);
    put_u32(&s.header, (uint64_t)FRAME - HEADER - 4);
    put_u32(&s.header, FUNCTIONS);
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        put_u32(&s.header, CODE + 16 * i - HEADER);
        put_u32(&s.header, FRAME + s.frame.size - HEADER);
        put_u32(&s.frame, 20);
        put_u32(&s.frame, s.frame.size);
        put_u32(&s.frame, CODE + 16 * i - (FRAME + s.frame.size));
        put_u32(&s.frame, 16);
        buffer_append(&s.frame, "\0\x41\x0e\x10\x41\x0e\x18", 7); /* +1: 16, +2: 24 */
        buffer_u8(&s.frame, 0);
    }
    put_u32(&s.frame, 0);
    struct eh_index *index;
    uint64_t starts[4];
    assert_true(eh_index_over(&s, &index, NULL));
    assert_int_equal(eh_index_with_bytes(index, span_of("\x0e\x10\x41\x0e", 4), starts, 4), 4);
    assert_int_equal(starts[0], CODE);
    assert_int_equal(starts[3], CODE + 48);
    assert_int_equal(eh_index_with_bytes(index, span_of("\x0e\x11", 2), starts, 4), 0);
    static uint64_t
        all[FUNCTIONS + 1]; /* also those that lie in two of the blocks in which they are sought */
    assert_int_equal(eh_index_with_bytes(index, span_of("\x41\x0e\x10\x41\x0e\x18", 6), all, FUNCTIONS + 1),
                     FUNCTIONS);
    for (uint64_t i = 0; i < FUNCTIONS; i++)
        assert_int_equal(all[i], CODE + 16 * i);
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        uint64_t start = 0, end = 0, addr = CODE + 16 * i;
        assert_int_equal(rule_at(index, addr)->cfa_off, 8);
        assert_int_equal(rule_at(index, addr + 1)->cfa_off, 16);
        assert_int_equal(rule_at(index, addr + 15)->cfa_off, 24);
        assert_true(function_at(index, addr + 7, &start, &end));
        assert_int_equal(start, addr);
        assert_int_equal(end, addr + 16);
    }
    assert_int_equal(rule_at(index, CODE - 1)->cfa, FRAME_CFA_NONE);
    assert_int_equal(rule_at(index, CODE + 16 * FUNCTIONS)->cfa, FRAME_CFA_NONE);
    eh_index_close(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_all), cmocka_unit_test(test_register), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lies),        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
