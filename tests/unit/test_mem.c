/* Memory that is expected is there, for all threads, and goes on where it was too little. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"

enum { EXPECTED_BYTES = 4 << 20, PIECES = 24 };

/* Pieces of all sizes, three times what was expected, each filled with its own number. */
static void *use_pieces(void *user)
{
    uint8_t *pieces[PIECES];
    bool *ok = user;
    *ok = true;
    for (size_t i = 0; i < PIECES; i++) {
        size_t size = 1024 * (i + 1) * (i + 1);
        pieces[i] = mem_alloc(size, 1);
        for (size_t at = 0; at < size; at++)
            *ok &= pieces[i][at] == 0;
        memset(pieces[i], (int)i + 1, size);
    }
    for (size_t i = 0; i < PIECES; i++) {
        for (size_t at = 0; at < 1024 * (i + 1) * (i + 1); at++)
            *ok &= pieces[i][at] == i + 1;
        free(pieces[i]);
    }
    return NULL;
}

static void use_by_threads(void)
{
    pthread_t threads[2];
    bool ok[ARRAY_LEN(threads)];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, use_pieces, &ok[i]), 0);
        for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_true(ok[i]);
        }
    }
}

static void test_expect(void **state)
{
    (void)state;
    mem_expect(EXPECTED_BYTES, EXPECTED_BYTES / 2);
    use_by_threads();
    void *large = mem_expect_large(EXPECTED_BYTES);
    if (large) /* all of them are there */
        mem_bring_in(large, EXPECTED_BYTES);
    use_by_threads();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_expect) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
