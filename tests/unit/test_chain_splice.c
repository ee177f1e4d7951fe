#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/chain_splice.h"

static void test_splice(void **state)
{
    (void)state;
    const struct unwind_frame known[] = { { 1 }, { 2 }, { 3 }, { 3 } };
    const uint64_t chain[] = { 1, 3, 3, 3, 3, 4 }, other[] = { 7, 8 };
    assert_int_equal(chain_splice(known, 4, chain, 6), 3); /* the recursion goes on: two more, then 4 */
    assert_int_equal(chain_splice(known, 4, other, 2), 0);
    assert_int_equal(chain_splice(known, 0, chain, 6), 0);
    assert_int_equal(chain_splice(known, 4, chain, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
