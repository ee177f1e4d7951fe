#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/clock.h"
#include "base/recent_pages.h"

enum { PAGE = MEMORY_PAGE_BYTES, BASE = 64 * PAGE, PAGES = 20 };

static uint8_t bytes[PAGES * PAGE + 100];
static struct flat_memory flat = { BASE, bytes, sizeof bytes };
static size_t questions;

static void read_counted(void *user, struct memory_piece *pieces, size_t count)
{
    questions++;
    flat_memory_read(user, pieces, count);
}

static const struct memory memory = { .read = read_counted, .user = &flat };
static struct recent_pages recent;

/* How many questions it takes to read `wanted`. */
static size_t read_one(uint64_t time_ns, uint64_t addr, uint64_t wanted)
{
    uint64_t got = ~wanted;
    size_t before = questions;
    assert_true(recent_pages_read(&recent, &memory, time_ns, addr, &got, sizeof got));
    assert_int_equal(got, wanted);
    return questions - before;
}

static void test_age(void **state)
{
    (void)state;
    uint64_t before_ns = clock_monotonic_ns();
    flat_memory_put64(&flat, BASE, 1);
    flat_memory_put64(&flat, BASE + 4000, 2);
    assert_int_equal(read_one(before_ns, BASE, 1), 1);
    flat_memory_put64(&flat, BASE, 3);
    assert_int_equal(read_one(before_ns, BASE, 1), 0); /* it was that then, or later */
    assert_int_equal(read_one(before_ns, BASE + 4000, 2), 0);
    uint64_t after_ns = clock_monotonic_ns();
    while (clock_monotonic_ns() == after_ns)
        ;
    assert_int_equal(read_one(clock_monotonic_ns(), BASE, 3), 1);
    assert_int_equal(read_one(before_ns, BASE, 3) + read_one(after_ns, BASE, 3), 0);
}

static void test_places(void **state)
{
    (void)state;
    memset(&recent, 0, sizeof recent);
    for (size_t i = 0; i < PAGES; i++)
        flat_memory_put64(&flat, BASE + i * PAGE, i);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(read_one(1, BASE + i * PAGE, i), 1);
    assert_int_equal(read_one(1, BASE + (PAGES - 1) * PAGE, PAGES - 1), 0);
    assert_int_equal(read_one(1, BASE, 0), 1); /* it had to make room */
    memset(&recent, 0, sizeof recent);
    flat_memory_put64(&flat, BASE + 5 * PAGE - 4, 77);
    assert_int_equal(read_one(1, BASE + 5 * PAGE - 4, 77), 1); /* two pages, one question */
    assert_int_equal(read_one(1, BASE + 5 * PAGE - 4, 77), 0);
}

static void test_edges(void **state)
{
    (void)state;
    static uint8_t large[3 * PAGE];
    uint64_t word;
    memset(&recent, 0, sizeof recent);
    flat_memory_put64(&flat, BASE + PAGES * PAGE, 5); /* in a page that is not whole */
    assert_int_equal(read_one(1, BASE + PAGES * PAGE, 5), 2);
    assert_false(recent_pages_read(&recent, &memory, 1, BASE + sizeof bytes, &word, sizeof word));
    assert_false(recent_pages_read(&recent, &memory, 1, UINT64_MAX - 3, &word, sizeof word));
    assert_false(recent_pages_read(&recent, &memory, 1, 0, &word, sizeof word));
    assert_true(recent_pages_read(&recent, &memory, 1, BASE + 1, large, sizeof large));
    assert_memory_equal(large, bytes + 1, sizeof large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
