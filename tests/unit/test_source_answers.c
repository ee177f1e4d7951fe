#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "symbolize/source_answers.h"

static const struct file_stamp stamp = { 1, 2, 3, 4 };

/* 0x1000: inlined() at a.c:7 in the function, at b.c:9; 0x2000: nothing; 0x3000: only a line. */
static void fill(struct source_answers *a)
{
    const struct source_frame inlined[] = { { "inlined", "a.c", 7 }, { NULL, "b.c", 9 } };
    const struct source_frame plain = { NULL, NULL, 12 };
    source_answers_init(a);
    source_answers_add(a, 0x3000, &plain, 1);
    source_answers_add(a, 0x1000, inlined, 2);
    source_answers_add(a, 0x2000, NULL, 0);
    source_answers_add(a, 0x2000, NULL, 0);
    source_answers_sort(a);
}

static void check_filled(const struct source_answers *a)
{
    struct source_frame frames[SOURCE_FRAMES_MAX];
    assert_int_equal(a->count, 3);
    assert_null(source_answers_find(a, 0x1001));
    assert_null(source_answers_find(a, 0));
    const struct source_answer *row = source_answers_find(a, 0x1000);
    assert_non_null(row);
    assert_int_equal(source_answers_frames(a, row, frames), 2);
    assert_string_equal(frames[0].function, "inlined");
    assert_string_equal(frames[0].file, "a.c");
    assert_int_equal(frames[0].line, 7);
    assert_null(frames[1].function);
    assert_string_equal(frames[1].file, "b.c");
    assert_int_equal(frames[1].line, 9);
    row = source_answers_find(a, 0x2000);
    assert_non_null(row);
    assert_int_equal(source_answers_frames(a, row, frames), 0);
    row = source_answers_find(a, 0x3000);
    assert_non_null(row);
    assert_int_equal(source_answers_frames(a, row, frames), 1);
    assert_null(frames[0].file);
    assert_int_equal(frames[0].line, 12);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct source_answers a, b;
    struct buffer bytes;
    fill(&a);
    check_filled(&a);
    buffer_init(&bytes, SOURCE_ANSWERS_BYTES_MAX);
    source_answers_write(&a, &stamp, &bytes);
    assert_false(bytes.failed);
    assert_true(source_answers_read(buffer_span(&bytes), &stamp, &b, NULL));
    check_filled(&b);
    source_answers_done(&a);
    source_answers_done(&b);
    buffer_done(&bytes);
}

static void check_refused(struct span bytes, const struct file_stamp *of)
{
    struct source_answers b;
    struct error err = { 0 };
    assert_false(source_answers_read(bytes, of, &b, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    assert_int_equal(b.count, 0);
}

/* Cut at every byte, one bit wrong, of another state of the file. */
static void test_damaged(void **state)
{
    (void)state;
    struct source_answers a;
    struct buffer bytes;
    fill(&a);
    buffer_init(&bytes, SOURCE_ANSWERS_BYTES_MAX);
    source_answers_write(&a, &stamp, &bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *cut = mem_alloc(size + 1, 1); /* so that a read behind is seen */
        memcpy(cut, bytes.data, size);
        check_refused(span_of(cut, size), &stamp);
        free(cut);
    }
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 4;
        check_refused(buffer_span(&bytes), &stamp);
        bytes.data[i] ^= 4;
    }
    const struct file_stamp others[] = { { 0, 2, 3, 4 }, { 1, 0, 3, 4 }, { 1, 2, 0, 4 }, { 1, 2, 3, 0 } };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        check_refused(buffer_span(&bytes), &others[i]);
    source_answers_done(&a);
    buffer_done(&bytes);
}

static void test_too_much(void **state)
{
    (void)state;
    struct source_answers a;
    struct buffer bytes;
    source_answers_init(&a);
    for (uint64_t addr = 0; addr <= SOURCE_ANSWERS_MAX; addr++)
        source_answers_add(&a, addr, NULL, 0);
    source_answers_sort(&a);
    buffer_init(&bytes, SOURCE_ANSWERS_BYTES_MAX);
    source_answers_write(&a, &stamp, &bytes);
    check_refused(buffer_span(&bytes), &stamp);
    buffer_done(&bytes);
    buffer_init(&bytes, 100);
    source_answers_write(&a, &stamp, &bytes);
    assert_true(bytes.failed);
    buffer_done(&bytes);
    source_answers_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
