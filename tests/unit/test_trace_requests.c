#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/trace_requests.h"

static const uint8_t one[16] = { 1 }, other[16] = { 2 };

static struct trace_request request(const uint8_t activity[16], uint64_t from_ns)
{
    struct trace_request r = { .from_ns = from_ns, .text = "GET /orders" };
    memcpy(r.activity, activity, sizeof r.activity);
    return r;
}

static void test_begin_and_end(void **state)
{
    (void)state;
    struct trace_requests requests = { 0 };
    struct trace_request first = request(one, 10), second = request(other, 11), ended;
    trace_requests_begin(&requests, &first);
    trace_requests_begin(&requests, &second);
    assert_true(trace_requests_end(&requests, one, false, 30, &ended));
    assert_string_equal(ended.text, "GET /orders");
    assert_int_equal(ended.from_ns, 10);
    assert_false(trace_requests_end(&requests, one, false, 31, &ended));  /* ended already */
    assert_false(trace_requests_end(&requests, other, true, 31, &ended)); /* that one is served, not sent */
    assert_true(trace_requests_end(&requests, other, false, 5, &ended));  /* clocks of threads differ */
    assert_int_equal(requests.count, 0);
    assert_int_equal(requests.ended, 2);
    assert_int_equal(requests.total_ns, 20);
    assert_int_equal(requests.longest_ns, 20);
    assert_int_equal(requests.unmatched, 2);
    trace_requests_done(&requests);
}

/* An activity that begins again before it ended: the end is of the later one. */
static void test_nested(void **state)
{
    (void)state;
    struct trace_requests requests = { 0 };
    struct trace_request outer = request(one, 10), inner = request(one, 20), ended;
    trace_requests_begin(&requests, &outer);
    trace_requests_begin(&requests, &inner);
    assert_true(trace_requests_end(&requests, one, false, 30, &ended));
    assert_int_equal(ended.from_ns, 20);
    assert_true(trace_requests_end(&requests, one, false, 40, &ended));
    assert_int_equal(ended.from_ns, 10);
    trace_requests_done(&requests);
}

static void test_too_many_open(void **state)
{
    (void)state;
    struct trace_requests requests = { 0 };
    struct trace_request r = request(one, 1), ended;
    for (uint32_t i = 0; i < TRACE_REQUESTS_OPEN_MAX + 5; i++) {
        memcpy(r.activity, &i, sizeof i);
        trace_requests_begin(&requests, &r);
    }
    assert_int_equal(requests.count, TRACE_REQUESTS_OPEN_MAX);
    uint8_t first[16] = { 0 };
    assert_false(trace_requests_end(&requests, first, false, 5, &ended));
    assert_true(trace_requests_end(&requests, r.activity, false, 5, &ended));
    trace_requests_done(&requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin_and_end),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_too_many_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
