#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unwind/method_map.h"

enum { SLOTS = 4000, SLOT_BYTES = 16, CHANGES = 60000 };

static unsigned gone;

static void count_gone(void *user, const struct code_method *method)
{
    assert_ptr_equal(user, &gone);
    assert_true(method->start < method->end);
    gone++;
}

/* The same, slot by slot: the start of the method that holds each, or 0. */
static uint64_t model[SLOTS];

static uint64_t addr_of(size_t slot)
{
    return 0x10000 + (uint64_t)slot * SLOT_BYTES;
}

/* Returns how many methods leave the model. */
static unsigned cut_model(size_t first, size_t end)
{
    unsigned removed = 0;
    for (size_t i = first; i < end; i++) {
        uint64_t start = model[i];
        if (!start)
            continue;
        removed++;
        for (size_t k = 0; k < SLOTS; k++)
            model[k] = model[k] == start ? 0 : model[k];
    }
    return removed;
}

static size_t model_count(void)
{
    size_t count = 0;
    for (size_t i = 0; i < SLOTS; i++)
        count += model[i] == addr_of(i);
    return count;
}

static void check_all(const struct method_map *map)
{
    for (size_t i = 0; i < SLOTS; i++) {
        const struct code_method *method = method_map_at(map, addr_of(i) + SLOT_BYTES - 1);
        assert_int_equal(method ? method->start : 0, model[i]);
    }
    assert_int_equal(map->count, model_count());
}

static uint64_t random_state = 88172645463325252u;

static size_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % limit);
}

static void test_against_model(void **state)
{
    (void)state;
    struct method_map map = { 0 };
    for (unsigned i = 0; i < CHANGES; i++) {
        size_t first = random_below(SLOTS), length = 1 + random_below(i % 100 ? 4 : 600);
        size_t end = first + length < SLOTS ? first + length : SLOTS;
        gone = 0;
        size_t removed = method_map_cut(&map, addr_of(first), addr_of(end), count_gone, &gone);
        assert_int_equal(removed, gone);
        assert_int_equal(removed, cut_model(first, end));
        if (length < 5) {
            const struct code_method *method = method_map_add(&map, addr_of(first), addr_of(end));
            assert_int_equal(method->start, addr_of(first));
            assert_null(method->jit);
            for (size_t k = first; k < end; k++)
                model[k] = addr_of(first);
        }
        if (i % 5000 == 0)
            check_all(&map);
    }
    check_all(&map);
    gone = 0;
    size_t count = map.count;
    method_map_done(&map, count_gone, &gone);
    assert_int_equal(gone, count);
    assert_int_equal(map.count, 0);
}

static void test_orders(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        struct method_map map = { 0 };
        for (size_t i = 0; i < SLOTS; i++) {
            size_t slot = order == 0 ? i : order == 1 ? SLOTS - 1 - i : i * 1009 % SLOTS;
            method_map_add(&map, addr_of(slot), addr_of(slot) + SLOT_BYTES - 1);
        }
        assert_int_equal(map.count, SLOTS);
        for (size_t i = 0; i < SLOTS; i++) {
            assert_int_equal(method_map_at(&map, addr_of(i))->start, addr_of(i));
            assert_null(method_map_at(&map, addr_of(i) + SLOT_BYTES - 1)); /* between two */
        }
        assert_null(method_map_at(&map, 0));
        assert_null(method_map_at(&map, UINT64_MAX));
        gone = 0;
        assert_int_equal(method_map_cut(&map, 0, UINT64_MAX, count_gone, &gone), SLOTS);
        assert_null(method_map_at(&map, addr_of(7)));
        method_map_done(&map, count_gone, &gone);
        assert_int_equal(gone, SLOTS);
    }
}

static void test_empty(void **state)
{
    (void)state;
    struct method_map map = { 0 };
    assert_null(method_map_at(&map, 1));
    assert_int_equal(method_map_cut(&map, 0, UINT64_MAX, count_gone, &gone), 0);
    method_map_done(&map, count_gone, &gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
