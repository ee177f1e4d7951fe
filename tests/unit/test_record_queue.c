#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/record_queue.h"

struct taken {
    char text[64];
    size_t count;
};

static void take(void *user, enum queue_item_kind kind, struct span bytes)
{
    (void)kind;
    struct taken *t = user;
    assert_int_equal(bytes.size, 1);
    t->text[t->count++] = (char)bytes.data[0];
}

static void test_order(void **state)
{
    (void)state;
    struct record_queue q;
    struct taken t = { { 0 }, 0 };
    record_queue_init(&q, 1024);
    /* two rings, each in order; equal times keep the order of arrival */
    record_queue_add(&q, 10, QUEUE_PERF_RECORD, span_of("a", 1));
    record_queue_add(&q, 30, QUEUE_PERF_RECORD, span_of("c", 1));
    record_queue_add(&q, 20, QUEUE_CODE, span_of("b", 1));
    record_queue_add(&q, 30, QUEUE_PERF_RECORD, span_of("d", 1));
    record_queue_release(&q, 20, take, &t);
    assert_string_equal(t.text, "ab");
    record_queue_add(&q, 25, QUEUE_PERF_RECORD, span_of("x", 1));
    record_queue_release(&q, UINT64_MAX, take, &t);
    assert_string_equal(t.text, "abxcd");
    assert_int_equal(q.count, 0);
    record_queue_done(&q);
}

static void test_full(void **state)
{
    (void)state;
    struct record_queue q;
    struct taken t = { { 0 }, 0 };
    record_queue_init(&q, 2);
    assert_true(record_queue_add(&q, 1, QUEUE_PERF_RECORD, span_of("a", 1)));
    assert_true(record_queue_add(&q, 2, QUEUE_PERF_RECORD, span_of("b", 1)));
    assert_false(record_queue_add(&q, 3, QUEUE_PERF_RECORD, span_of("c", 1)));
    record_queue_release(&q, UINT64_MAX, take, &t);
    assert_string_equal(t.text, "ab");
    assert_true(record_queue_add(&q, 3, QUEUE_PERF_RECORD, span_of("c", 1)));
    record_queue_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_order), cmocka_unit_test(test_full) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
