#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/own.h"
#include "clr/call_counting.h"

/* A heap's node, and what it leads to, each on a page of its own; a table of 7 places. */
#define BASE UINT64_C(0x7f0000000000)
enum {
    NODE = 0x00,
    ALLOCATOR = 0x1000,
    MANAGER = 0x2000,
    TABLE = 0x3000,
    ENTRIES = 0x4000,
    BYTES = 0x5000,
    PLACES = 7,
    STAGE_COUNTING = 1,
    STAGE_COMPLETE = 3,
    STAGE_OFF = 4,
};

static const struct runtime_layout layout = { .counting = { .allocator = 0x40, .manager = 0x10 } };
static uint8_t bytes[BYTES];
static struct flat_memory flat = { BASE, bytes, BYTES };

/* A method whose first place is `place` and the one after that `step` further, which is odd. */
static uint64_t method_at(uint32_t place, uint32_t step)
{
    uint32_t hash = 0;
    while (hash % PLACES != place || hash % (PLACES - 1) + 1 != step)
        hash += 8;
    return UINT64_C(0x7f1200000000) + hash;
}

static void put_entry(unsigned number, uint32_t place, uint64_t method, uint8_t stage)
{
    uint64_t entry = ENTRIES + 0x20 * (uint64_t)number;
    flat_memory_put64(&flat, BASE + TABLE + 8 * (uint64_t)place, BASE + entry);
    flat_memory_put64(&flat, BASE + entry + 8, method);
    bytes[entry + 0x1a] = stage;
}

static int build(void **state)
{
    (void)state;
    memset(bytes, 0, sizeof bytes);
    flat.size = BYTES;
    flat_memory_put64(&flat, BASE + NODE + 0x40, BASE + ALLOCATOR);
    flat_memory_put64(&flat, BASE + ALLOCATOR + 0x10, BASE + MANAGER);
    flat_memory_put64(&flat, BASE + MANAGER, BASE + TABLE);
    flat_memory_put32(&flat, BASE + MANAGER + 8, PLACES);
    return 0;
}

static bool is_off_by(const struct runtime_layout *by, uint64_t heap, uint64_t method)
{
    struct memory memory = { .read = flat_memory_read, .user = &flat };
    struct memory_pages pages;
    struct call_counting counting = { 0 };
    memory_pages_init(&pages, &memory, 1 << 20);
    call_counting_open(&pages, by, heap, &counting);
    call_counting_want_place(&pages, &counting, method);
    memory_pages_fetch(&pages);
    call_counting_want_entry(&pages, &counting, method);
    memory_pages_fetch(&pages);
    bool off = call_counting_is_off(&pages, &counting, method);
    memory_pages_done(&pages);
    return off;
}

static bool is_off(uint64_t method)
{
    return is_off_by(&layout, BASE + NODE, method);
}

static void test_stages(void **state)
{
    (void)state;
    static const struct {
        uint8_t stage;
        bool off;
    } cases[] = {
        { 0, false }, { STAGE_COUNTING, false }, { STAGE_COMPLETE, false }, { STAGE_OFF, true }, { 5, false }
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        put_entry(0, 3, method_at(3, 1), cases[i].stage);
        assert_int_equal(is_off(method_at(3, 1)), cases[i].off);
    }
    assert_false(is_off(method_at(3, 3))); /* another method with that place */
    assert_false(is_off(method_at(4, 1)));
    assert_false(is_off(0));
}

/* Places are taken by others: it is looked for in steps of its own, past what was deleted, and over the end.
 */
static void test_taken_places(void **state)
{
    (void)state;
    uint64_t method = method_at(5, 3);
    put_entry(0, 5, method_at(5, 1), STAGE_OFF);
    flat_memory_put64(&flat, BASE + TABLE + 8 * ((5 + 3) % PLACES), 1);
    put_entry(1, (5 + 3 + 3) % PLACES, method, STAGE_OFF);
    assert_true(is_off(method));
    bytes[ENTRIES + 0x20 + 0x1a] = STAGE_COUNTING;
    assert_false(is_off(method));
    flat_memory_put64(&flat, BASE + TABLE + 8 * ((5 + 3) % PLACES), 0); /* a free place ends it */
    bytes[ENTRIES + 0x20 + 0x1a] = STAGE_OFF;
    assert_false(is_off(method));
}

/* All places are taken, and none is the method's. */
static void test_full_table(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PLACES; i++)
        put_entry(0, i, method_at(3, 1), STAGE_OFF);
    assert_false(is_off(method_at(2, 5)));
}

static void test_senseless_sizes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = { 0, 1, (1 << 24) + 1, UINT32_MAX };
    put_entry(0, 3, method_at(3, 1), STAGE_OFF);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        flat_memory_put32(&flat, BASE + MANAGER + 8, sizes[i]);
        assert_false(is_off(method_at(3, 1)));
    }
}

static void test_unknown_place(void **state)
{
    (void)state;
    static const struct runtime_layout unknown = { .counting = { LAYOUT_NONE, LAYOUT_NONE } };
    put_entry(0, 3, method_at(3, 1), STAGE_OFF);
    assert_true(is_off(method_at(3, 1)));
    assert_false(is_off_by(&unknown, BASE + NODE, method_at(3, 1)));
    assert_false(is_off_by(&layout, 0, method_at(3, 1)));
    assert_false(is_off_by(&layout, UINT64_MAX - 8, method_at(3, 1)));
}

/* Memory that ends: it is known only when all that leads to the entry is there. */
static void test_cut(void **state)
{
    (void)state;
    put_entry(0, 3, method_at(3, 1), STAGE_OFF);
    for (size_t size = 0; size <= BYTES; size += 0x40) {
        flat.size = size;
        assert_int_equal(is_off(method_at(3, 1)), size == BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_stages, build),
        cmocka_unit_test_setup(test_taken_places, build),
        cmocka_unit_test_setup(test_full_table, build),
        cmocka_unit_test_setup(test_senseless_sizes, build),
        cmocka_unit_test_setup(test_unknown_place, build),
        cmocka_unit_test_setup(test_cut, build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
