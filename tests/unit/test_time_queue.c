#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/time_queue.h"

struct taken {
    char text[64];
    size_t count;
};

static void take(void *user, const struct time_item *item, struct span bytes)
{
    (void)item;
    struct taken *t = user;
    assert_int_equal(bytes.size, 1);
    t->text[t->count++] = (char)bytes.data[0];
}

struct numbered_item {
    uint64_t time_ns;
    uint64_t number; /* of arrival */
};

struct numbered {
    struct numbered_item last;
    size_t count, wrong;
};

static void take_numbered(void *user, const struct time_item *queued, struct span bytes)
{
    (void)queued;
    struct numbered *n = user;
    struct numbered_item item;
    assert_int_equal(bytes.size, sizeof item);
    memcpy(&item, bytes.data, sizeof item);
    bool later =
        item.time_ns > n->last.time_ns || (item.time_ns == n->last.time_ns && item.number > n->last.number);
    n->wrong +=
        n->count > 0 && !later && item.time_ns > 1000; /* what comes late to a release is out of turn */
    n->last = item;
    n->count++;
}

static void test_order(void **state)
{
    (void)state;
    struct time_queue q;
    struct taken t = { { 0 }, 0 };
    time_queue_init(&q, 1024);
    /* two rings, each in order; equal times keep the order of arrival */
    time_queue_add(&q, 10, 0, span_of("a", 1));
    time_queue_add(&q, 30, 0, span_of("c", 1));
    time_queue_add(&q, 20, 1, span_of("b", 1));
    time_queue_add(&q, 30, 0, span_of("d", 1));
    assert_int_equal(time_queue_middle_ns(&q), 30);
    time_queue_release(&q, 20, take, &t);
    assert_string_equal(t.text, "ab");
    time_queue_add(&q, 25, 0, span_of("x", 1));
    time_queue_release(&q, UINT64_MAX, take, &t);
    assert_string_equal(t.text, "abxcd");
    assert_int_equal(q.count, 0);
    time_queue_done(&q);
}

static void test_full(void **state)
{
    (void)state;
    struct time_queue q;
    struct taken t = { { 0 }, 0 };
    time_queue_init(&q, 2);
    assert_true(time_queue_add(&q, 1, 0, span_of("a", 1)));
    assert_true(time_queue_add(&q, 2, 0, span_of("b", 1)));
    assert_false(time_queue_add(&q, 3, 0, span_of("c", 1)));
    time_queue_release(&q, UINT64_MAX, take, &t);
    assert_string_equal(t.text, "ab");
    assert_true(time_queue_add(&q, 3, 0, span_of("c", 1)));
    time_queue_done(&q);
}

/* Runs of many lengths, with many equal times: what a stable sort makes of them. */
static void test_many_runs(void **state)
{
    (void)state;
    enum { ITEMS = 5000 };
    struct time_queue q;
    struct numbered n = { 0 };
    uint32_t seed = 12345;
    uint64_t time_ns = 1000;
    time_queue_init(&q, ITEMS * sizeof(struct numbered_item));
    for (uint32_t i = 0; i < ITEMS; i++) {
        seed = seed * 1664525 + 1013904223;
        time_ns = seed >> 24 < 40 ? 1000 + seed % 997 : time_ns + (seed >> 16) % 3;
        struct numbered_item item = { time_ns, i };
        time_queue_add(&q, time_ns, 2, span_of(&item, sizeof item));
        if (i % 1000 == 999)
            time_queue_release(&q, 1000, take_numbered, &n);
    }
    time_queue_release(&q, UINT64_MAX, take_numbered, &n);
    assert_int_equal(n.count, ITEMS);
    assert_int_equal(n.wrong, 0);
    time_queue_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_order), cmocka_unit_test(test_full),
                                        cmocka_unit_test(test_many_runs) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
