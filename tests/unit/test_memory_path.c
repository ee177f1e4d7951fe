#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/memory_path.h"

enum { BASE = 0x10000, SIZE = 0x200, PEEKS = 64 };

static uint8_t bytes[SIZE];
static struct flat_memory flat = { BASE, bytes, sizeof bytes };
static const struct memory memory = { .read = flat_memory_read, .user = &flat };
static uint64_t peeks[PEEKS];
static size_t peek_count;

static bool peek(void *user, uint64_t addr, void *into, size_t size)
{
    assert_true(peek_count < PEEKS);
    peeks[peek_count++] = addr;
    return memory_read(user, addr, into, size);
}

static bool walk(const struct memory_path *path)
{
    peek_count = 0;
    return memory_path_walk(path, peek, (void *)&memory);
}

static bool was_peeked(uint64_t addr)
{
    for (size_t i = 0; i < peek_count; i++)
        if (peeks[i] == addr)
            return true;
    return false;
}

static void test_steps(void **state)
{
    (void)state;
    struct memory_path path = { .start = BASE };
    flat_memory_put64(&flat, BASE + 8, (BASE + 0x40) | 3); /* two flags */
    flat_memory_put64(&flat, BASE + 0x40, 0x20);
    bytes[0x47] = 4; /* so that the number of 32 bits ends before it */
    flat_memory_put64(&flat, BASE + 0x38, BASE + 0x180);
    uint8_t pointer = memory_path_add_pointer(&path, 0, 8);
    memory_path_add(&path, (struct memory_step){ pointer, STEP_RVA, 0, BASE + 0x100 });
    memory_path_add(&path, (struct memory_step){ pointer, STEP_BACK, 7, 0x10 });
    assert_int_equal(memory_path_add_pointer(&path, pointer, -8), 4);
    assert_true(walk(&path));
    assert_true(was_peeked(BASE + 0x40));
    assert_true(was_peeked(BASE + 0x120));
    assert_true(was_peeked(BASE + 0x40 - 0x10 - 4 * 8));
    assert_true(was_peeked(BASE + 0x180));
}

static void test_nowhere(void **state)
{
    (void)state;
    struct memory_path path = { .start = BASE };
    memset(bytes, 0, sizeof bytes);
    uint8_t null = memory_path_add_pointer(&path, 0, 0x10);
    memory_path_add_pointer(&path, null, 8);
    assert_true(walk(&path)); /* a NULL pointer is an end like any other */
    assert_false(was_peeked(8));
    flat_memory_put64(&flat, BASE + 0x10, BASE + SIZE);
    assert_false(walk(&path));
    assert_true(was_peeked(BASE + SIZE));
    path.start = 0;
    assert_false(walk(&path));
}

static void test_longest(void **state)
{
    (void)state;
    struct memory_path path = { .start = BASE };
    flat_memory_put64(&flat, BASE, BASE);
    for (uint8_t i = 0; i < MEMORY_PATH_STEPS_MAX; i++)
        assert_int_equal(memory_path_add_pointer(&path, i, 0), i + 1);
    assert_true(walk(&path));
    assert_int_equal(peek_count, 1 + 2 * MEMORY_PATH_STEPS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
