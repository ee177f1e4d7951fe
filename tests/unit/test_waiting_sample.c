#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/own.h"
#include "collect/waiting_sample.h"

static uint8_t *waiting(const struct raw_sample *s, struct span *out)
{
    size_t size = waiting_sample_size(s);
    uint8_t *bytes = mem_alloc(size, 1);
    waiting_sample_put(s, bytes);
    *out = span_of(bytes, size);
    return bytes;
}

static const struct raw_sample sample = {
    .time_ns = 77, .weight = 5, .thread = 3, .cpu = 2, .kind = SAMPLE_EVENT, .end = STACK_TRUNCATED
};

static void test_frames(void **state)
{
    (void)state;
    static const uint64_t kernel[] = { 0xffff000000000010 }, user[] = { 1, 2, 3 };
    static const bool exact[] = { true, false, true };
    struct raw_sample s = sample;
    s.kernel = kernel;
    s.kernel_count = ARRAY_LEN(kernel);
    s.user = user;
    s.user_exact = exact;
    s.user_count = ARRAY_LEN(user);
    struct span bytes;
    AUTO_FREE uint8_t *owned = waiting(&s, &bytes);
    struct raw_sample got = waiting_sample_get(bytes);
    assert_int_equal(got.time_ns, 77);
    assert_int_equal(got.weight, 5);
    assert_int_equal(got.thread, 3);
    assert_int_equal(got.cpu, 2);
    assert_int_equal(got.kind, SAMPLE_EVENT);
    assert_int_equal(got.end, STACK_TRUNCATED);
    assert_int_equal(got.kernel_count, 1);
    assert_memory_equal(got.kernel, kernel, sizeof kernel);
    assert_int_equal(got.user_count, 3);
    assert_memory_equal(got.user, user, sizeof user);
    assert_memory_equal(got.user_exact, exact, sizeof exact);
    assert_int_equal(got.chain.size, 0);
    assert_null(got.judge);
    assert_true(got.is_hashed);
    struct chain_key hash = raw_sample_hash(&s);
    assert_memory_equal(&got.hash, &hash, sizeof hash);
}

static void test_chain(void **state)
{
    (void)state;
    static const uint64_t chain[] = { 9, 8, 7, 6 };
    struct raw_sample s = sample;
    s.chain = span_of(chain, sizeof chain);
    struct span bytes;
    AUTO_FREE uint8_t *owned = waiting(&s, &bytes);
    struct raw_sample got = waiting_sample_get(bytes);
    assert_int_equal(got.chain.size, sizeof chain);
    assert_memory_equal(got.chain.data, chain, sizeof chain);
    assert_int_equal(got.user_count + got.kernel_count, 0);
}

static void test_nothing(void **state)
{
    (void)state;
    struct span bytes;
    AUTO_FREE uint8_t *owned = waiting(&sample, &bytes);
    struct raw_sample got = waiting_sample_get(bytes);
    assert_int_equal(got.chain.size + got.user_count + got.kernel_count, 0);
    assert_int_equal(got.end, STACK_TRUNCATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
