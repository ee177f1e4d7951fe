#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/place_filter.h"

static void test_what_was_added_is_found(void **state)
{
    (void)state;
    struct place_filter filter;
    place_filter_init(&filter, 64);
    place_filter_add(&filter, 1, 0x7000);
    place_filter_add(&filter, 1, UINT64_MAX);
    assert_true(place_filter_may_have(&filter, 1, 0x7000, 0x7001));
    assert_true(place_filter_may_have(&filter, 1, 0x1000, 0x8000));
    assert_true(place_filter_may_have(&filter, 1, UINT64_MAX - 0x100, UINT64_MAX));
    assert_false(place_filter_may_have(&filter, 2, 0x7000, 0x7001));
    assert_false(place_filter_may_have(&filter, 1, 0x9000, 0x9001));
    assert_false(place_filter_may_have(&filter, 1, 0x7000, 0x7000)); /* nothing lies in there */
    assert_true(place_filter_may_have(&filter, 2, 0, UINT64_MAX));   /* too much to tell */
    place_filter_done(&filter);
}

/* Methods that lie between those that were sampled are mostly known not to have been. */
static void test_few_are_found_that_were_not_added(void **state)
{
    (void)state;
    enum { PLACES = 1000, SIZE = 0x1000 };
    struct place_filter filter;
    place_filter_init(&filter, PLACES);
    for (uint64_t i = 0; i < PLACES; i++)
        place_filter_add(&filter, 1, i * 2 * SIZE + 0x80);
    size_t wrong = 0;
    for (uint64_t i = 0; i < PLACES; i++) {
        assert_true(place_filter_may_have(&filter, 1, i * 2 * SIZE, i * 2 * SIZE + 0x100));
        wrong += place_filter_may_have(&filter, 1, (i * 2 + 1) * SIZE, (i * 2 + 1) * SIZE + 0x100);
    }
    assert_true(wrong < PLACES / 8);
    place_filter_done(&filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_added_is_found),
        cmocka_unit_test(test_few_are_found_that_were_not_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
