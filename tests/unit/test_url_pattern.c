#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/url_pattern.h"

static void check(const char *path, const char *pattern)
{
    struct buffer out;
    buffer_init(&out, 1 << 10);
    url_pattern_append(&out, span_of(path, strlen(path)));
    buffer_u8(&out, 0);
    assert_string_equal((const char *)out.data, pattern);
    buffer_done(&out);
}

static void test_ids(void **state)
{
    (void)state;
    check("/orders/4711", "/orders/{id}");
    check("/orders/4711/", "/orders/{id}/");
    check("/7/items/0", "/{id}/items/{id}");
    check("/users/6f9619ff-8b86-d011-b42d-00c04fc964ff/cart", "/users/{id}/cart");
    check("/blob/da39a3ee5e6b4b0d3255bfef95601890afd80709", "/blob/{id}");
    check("/blob/DA39A3EE5E6B4B0D", "/blob/{id}");
}

static void test_words(void **state)
{
    (void)state;
    check("", "");
    check("/", "/");
    check("//", "//");
    check("*", "*");
    check("x12", "x12");
    check("/v2/orders", "/v2/orders");
    check("/orders/4711.json", "/orders/4711.json");
    check("/cafe", "/cafe");
    check("/bad1", "/bad1");
    check("/deadbeef-deadbeef", "/deadbeef-deadbeef"); /* no decimal digit */
    check("/-", "/-");
    check("/da39a3ee5e6b4b0g", "/da39a3ee5e6b4b0g");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ids), cmocka_unit_test(test_words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
