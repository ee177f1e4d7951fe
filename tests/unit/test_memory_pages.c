#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/memory_pages.h"

enum { PAGE = MEMORY_PAGE_BYTES, BASE = 64 * PAGE, PAGES = 300 };

static uint8_t bytes[PAGES * PAGE];
static struct flat_memory flat = { BASE, bytes, sizeof bytes };
static const struct memory memory = { .read = flat_memory_read, .user = &flat };

static bool read_since(const struct memory_pages *pages, uint64_t since, uint64_t addr, uint64_t wanted)
{
    uint64_t got = ~wanted;
    return memory_pages_read_since(pages, since, addr, &got, sizeof got) && got == wanted;
}

static void test_read_since(void **state)
{
    (void)state;
    struct memory_pages pages;
    for (size_t i = 0; i < PAGES; i++)
        flat_memory_put64(&flat, BASE + i * PAGE, i);
    memory_pages_init(&pages, &memory, 2 * sizeof bytes);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(memory_pages_u64(&pages, BASE + i * PAGE), i);
    uint64_t since = pages.reads;
    for (size_t i = 100; i < 200; i++)
        assert_int_equal(memory_pages_u64(&pages, BASE + i * PAGE), i);
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(read_since(&pages, since, BASE + i * PAGE, i), i >= 100);
        assert_true(read_since(&pages, 0, BASE + i * PAGE, i));
    }
    assert_false(read_since(&pages, 0, BASE + 250 * PAGE, 250));                  /* nobody asked for it */
    assert_false(read_since(&pages, since, BASE + 100 * PAGE - 4, 100ull << 32)); /* begins in an older one */
    assert_true(read_since(&pages, since, BASE + 101 * PAGE - 4, 101ull << 32));

    memory_pages_drop(&pages);
    assert_false(read_since(&pages, since, BASE + 150 * PAGE, 150));
    assert_int_equal(memory_pages_u64(&pages, BASE + 299 * PAGE), 299); /* brings the others again */
    assert_true(read_since(&pages, since, BASE + 299 * PAGE, 299));
    assert_true(read_since(&pages, since, BASE + 10 * PAGE, 10));
    assert_int_equal(memory_pages_u64(&pages, BASE + PAGES * PAGE), 0); /* looked for, not there */
    assert_false(read_since(&pages, 0, BASE + PAGES * PAGE, 0));
    memory_pages_done(&pages);
}

/* Who asks for little gets little; the next full look brings what the last one asked for. */
static void test_forget(void **state)
{
    (void)state;
    struct memory_pages pages;
    memory_pages_init(&pages, &memory, 2 * sizeof bytes);
    for (size_t i = 0; i < 100; i++)
        memory_pages_u64(&pages, BASE + i * PAGE);
    memory_pages_forget(&pages);
    assert_false(read_since(&pages, 0, BASE, 0));
    uint64_t reads = pages.reads;
    flat_memory_put64(&flat, BASE + 50 * PAGE, 5050);
    assert_int_equal(memory_pages_u64(&pages, BASE + 50 * PAGE), 5050);
    assert_true(pages.reads - reads <= 4); /* with its neighbours */
    memory_pages_forget(&pages);
    memory_pages_drop(&pages);
    reads = pages.reads;
    assert_int_equal(memory_pages_u64(&pages, BASE + 50 * PAGE), 5050);
    assert_int_equal(pages.reads - reads, 100);
    flat_memory_put64(&flat, BASE + 50 * PAGE, 50);
    memory_pages_done(&pages);
}

/* One read for both; marks are left out, and what leads nowhere stays so. */
static void test_follow_all(void **state)
{
    (void)state;
    struct memory_pages pages;
    uint64_t addrs[] = { BASE, 0, BASE + 200 * PAGE };
    flat_memory_put64(&flat, BASE + 16, 0x1235);
    flat_memory_put64(&flat, BASE + 200 * PAGE + 16, 0x5678);
    memory_pages_init(&pages, &memory, 2 * sizeof bytes);
    memory_pages_follow_all(&pages, addrs, 3, 16);
    assert_int_equal(addrs[0], 0x1230);
    assert_int_equal(addrs[1], 0);
    assert_int_equal(addrs[2], 0x5678);
    assert_int_equal(pages.reads, 2);
    memory_pages_done(&pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_read_since), cmocka_unit_test(test_forget),
                                        cmocka_unit_test(test_follow_all) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
