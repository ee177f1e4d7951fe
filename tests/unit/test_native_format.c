#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "read/native_format.h"

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[5];
        size_t size;
        bool ok;
        uint32_t value;
        int32_t as_signed;
    } integers[] = {
        { { 0x00 }, 1, true, 0, 0 },
        { { 0x7e }, 1, true, 63, 63 },
        { { 0xfe }, 1, true, 127, -1 },
        { { 0x01, 0x02 }, 2, true, 128, 128 },
        { { 0xfd, 0xff }, 2, true, 0x3fff, -1 },
        { { 0x03, 0x00, 0x02 }, 3, true, 1 << 14, 1 << 14 },
        { { 0x07, 0x00, 0x00, 0x02 }, 4, true, 1 << 21, 1 << 21 },
        { { 0x0f, 0xff, 0xff, 0xff, 0xff }, 5, true, UINT32_MAX, -1 },
        { { 0x01 }, 1, false, 0, 0 },
        { { 0x03, 0x00 }, 2, false, 0, 0 },
        { { 0x07, 0x00, 0x00 }, 3, false, 0, 0 },
        { { 0x0f, 0xff, 0xff, 0xff }, 4, false, 0, 0 },
        { { 0x1f, 0, 0, 0, 0 }, 5, false, 0, 0 }, /* the 9-byte form */
        { { 0 }, 0, false, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(integers); i++) {
        struct cursor c = cursor_over(span_of(integers[i].bytes, integers[i].size));
        struct cursor s = c;
        if (cursor_native_uint(&c) != integers[i].value || cursor_ok(&c) != integers[i].ok)
            fail_msg("unsigned %zu", i);
        if (cursor_native_int(&s) != integers[i].as_signed || cursor_ok(&s) != integers[i].ok)
            fail_msg("signed %zu", i);
    }
}

/*
 * 20 elements, one byte per index entry. Block 0 holds elements 0 and 8 (a root with both children),
 * block 1 only element 19.
 */
static const uint8_t array_bytes[] = {
    20 << 2 << 1 & 0xff, /* header 80 = count 20, width 1; coded 80 << 1 */
    2, 9,                /* blocks, from behind the header */
    /* root for bit 8: left follows, right is 3 bytes on */
    (3 << 2 | 3) << 1, 0 << 1 | 0, 0xa0, /* left: the only element of its part, number 0; then its bytes */
    (8 << 2) << 1, 0xa8, 0,              /* right: number 8 */
    0, (3 << 2) << 1, 0xb3,              /* block 1: number 3 of it */
};

static void test_array(void **state)
{
    (void)state;
    struct native_array array;
    assert_true(native_array_open(span_of(array_bytes, sizeof array_bytes), &array, NULL));
    assert_int_equal(array.count, 20);
    for (uint32_t i = 0; i < 40; i++) {
        struct cursor at;
        bool there = native_array_find(&array, i, &at);
        assert_int_equal(there, i == 0 || i == 8 || i == 19);
        if (there)
            assert_int_equal(cursor_u8(&at), i == 0 ? 0xa0 : i == 8 ? 0xa8 : 0xb3);
    }
}

/* The elements that native_array_each() told of. */
struct told {
    size_t positions[64];
    bool there[64];
    uint32_t next;
};

static bool note_element(void *user, uint32_t index, struct cursor at)
{
    struct told *told = user;
    assert_in_range(index, told->next, 63);
    told->next = index + 1;
    told->there[index] = true;
    told->positions[index] = at.pos;
    return true;
}

static bool stop_there(void *user, uint32_t index, struct cursor at)
{
    (void)at;
    *(uint32_t *)user = index;
    return index < 8;
}

/* However damaged: whether it is asked for each element, or for all at once. */
static void test_array_each(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (size_t round = 0; round < 20000; round++) {
        uint8_t bytes[sizeof array_bytes + 24];
        struct native_array array;
        struct told told = { 0 };
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = (uint8_t)(random >> 24) >> (random >> 16 & 7);
        }
        if (round % 2)
            memcpy(bytes, array_bytes, sizeof array_bytes);
        if (round > 1)
            bytes[(random >> 8) % sizeof array_bytes] = (uint8_t)random;
        if (!native_array_open(span_of(bytes, sizeof bytes - round % 24), &array, NULL))
            continue;
        array.count = array.count < 64 ? array.count : 64;
        assert_true(native_array_each(&array, note_element, &told));
        for (uint32_t i = 0; i < 64; i++) {
            struct cursor at;
            assert_int_equal(native_array_find(&array, i, &at), told.there[i]);
            assert_true(!told.there[i] || at.pos == told.positions[i]);
        }
    }
    struct native_array array;
    uint32_t last = 0;
    assert_true(native_array_open(span_of(array_bytes, sizeof array_bytes), &array, NULL));
    assert_false(native_array_each(&array, stop_there, &last));
    assert_int_equal(last, 8);
}

static void test_array_cut(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof array_bytes; size++) {
        AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
        memcpy(cut, array_bytes, size);
        struct native_array array;
        if (!native_array_open(span_of(cut, size), &array, NULL))
            continue;
        for (uint32_t i = 0; i < 20; i++) {
            struct cursor at;
            native_array_find(&array, i, &at);
        }
    }
}

/* Two buckets, one byte per index entry: entries of targets at 9 and 10, then of 11. */
static const uint8_t table_bytes[] = {
    1 << 2 | 0, 3,      7,    9, /* header; bucket 0 is [4,8), bucket 1 [8,10) behind the header */
    0x11,       5 << 1, 0x12, 4 << 1, 0x13, 3 << 1, 0x90, 0x91, 0x92,
};

struct seen {
    uint8_t bytes[8];
    unsigned count;
};

static bool see(void *user, struct cursor target)
{
    struct seen *seen = user;
    if (seen->count < sizeof seen->bytes)
        seen->bytes[seen->count] = cursor_u8(&target);
    seen->count++;
    return true;
}

static void test_hashtable(void **state)
{
    (void)state;
    struct seen seen = { 0 };
    assert_true(native_hashtable_each(span_of(table_bytes, sizeof table_bytes), see, &seen, NULL));
    assert_int_equal(seen.count, 3);
    assert_memory_equal(seen.bytes, ((uint8_t[]){ 0x90, 0x91, 0x92 }), 3);
}

static void test_hashtable_damaged(void **state)
{
    (void)state;
    for (size_t size = 0; size < 10; size++) {
        AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
        memcpy(cut, table_bytes, size);
        struct seen seen = { 0 };
        struct error err;
        assert_false(native_hashtable_each(span_of(cut, size), see, &seen, &err));
    }
    uint8_t backwards[sizeof table_bytes];
    memcpy(backwards, table_bytes, sizeof backwards);
    backwards[2] = 1; /* bucket 0 ends before it starts */
    struct seen seen = { 0 };
    assert_false(native_hashtable_each(span_of(backwards, sizeof backwards), see, &seen, NULL));
    assert_int_equal(seen.count, 0);
    uint8_t many[] = { 31 << 2, 0, 0, 0 };
    assert_false(native_hashtable_each(span_of(many, sizeof many), see, &seen, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_array),
        cmocka_unit_test(test_array_each), cmocka_unit_test(test_array_cut),
        cmocka_unit_test(test_hashtable),  cmocka_unit_test(test_hashtable_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
