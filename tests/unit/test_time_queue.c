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

static void keep_first(void *user, const struct time_item *item, struct span bytes)
{
    struct span *first = user;
    (void)item;
    if (!first->size)
        *first = bytes;
}

/* What was handed over stays until it is forgotten, and what waits stays longer. */
static void test_handed_over(void **state)
{
    (void)state;
    struct time_queue q;
    struct taken t = { { 0 }, 0 };
    struct span first = { 0 };
    static const uint8_t many[300 * 1024] = { 7 };
    time_queue_init(&q, 1 << 20);
    time_queue_add(&q, 1, 0, span_of(many, sizeof many));
    time_queue_add(&q, 9, 0, span_of("z", 1));
    time_queue_hand_over(&q, 5, keep_first, &first);
    assert_int_equal(first.size, sizeof many);
    assert_memory_equal(first.data, many, sizeof many);
    time_queue_forget(&q);
    assert_int_equal(q.live_bytes, 1);
    time_queue_release(&q, UINT64_MAX, take, &t);
    assert_string_equal(t.text, "z");
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

static void take_large(void *user, const struct time_item *item, struct span bytes)
{
    uint32_t *next = user;
    assert_int_equal(item->kind, *next);
    assert_int_equal(bytes.size, 1000 + *next % 64000);
    assert_int_equal(bytes.data[0], *next & 0xff);
    assert_int_equal(bytes.data[bytes.size - 1], *next & 0xff);
    ++*next;
}

static size_t held_bytes(const struct time_queue *q)
{
    size_t bytes = 0;
    for (size_t i = 0; i < q->chunk_count; i++)
        bytes += q->chunks[i].capacity;
    return bytes;
}

/* A third of what was added waits at any time; memory is used again, and given back when a burst is over. */
static void test_memory(void **state)
{
    (void)state;
    enum { ITEMS = 20000, WAITING = 300, ITEM_MAX = 65536 };
    struct time_queue q;
    uint32_t next = 0;
    size_t most = 0;
    time_queue_init(&q, 64 << 20);
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint8_t *room = time_queue_room(&q, ITEM_MAX);
        assert_non_null(room);
        size_t size = 1000 + i % 64000;
        memset(room, (int)(i & 0xff), size);
        time_queue_add_made(&q, 1 + i, i, size);
        if (i % 100 == 99 && i > WAITING)
            time_queue_release(&q, i - WAITING, take_large, &next);
        most = held_bytes(&q) > most ? held_bytes(&q) : most;
    }
    assert_true(most < (size_t)2 * (WAITING + 100) * ITEM_MAX);
    time_queue_release(&q, UINT64_MAX, take_large, &next);
    assert_int_equal(next, ITEMS);
    assert_int_equal(q.live_bytes, 0);
    for (int round = 0; round < 200; round++)
        time_queue_release(&q, UINT64_MAX, take_large, &next);
    assert_true(held_bytes(&q) < 1 << 20);
    time_queue_done(&q);
}

/* An item that is larger than others ever are has room of its own. */
static void take_aligned(void *user, const struct time_item *item, struct span bytes)
{
    (void)item;
    assert_int_equal((uintptr_t)bytes.data % sizeof(uint64_t), 0);
    ++*(size_t *)user;
}

/* Items of any size are followed by one that can be read as numbers, up to the end of a chunk. */
static void test_alignment(void **state)
{
    (void)state;
    static const uint8_t bytes[4097];
    struct time_queue q;
    size_t count = 0;
    time_queue_init(&q, 8 << 20);
    for (size_t i = 1; i <= sizeof bytes; i += 5)
        assert_true(time_queue_add(&q, i, 0, span_of(bytes, i)));
    time_queue_release(&q, UINT64_MAX, take_aligned, &count);
    assert_int_equal(count, 820);
    time_queue_done(&q);
}

static void test_large_item(void **state)
{
    (void)state;
    struct time_queue q;
    uint32_t next = 0;
    time_queue_init(&q, 8 << 20);
    time_queue_release(&q, UINT64_MAX, take_large, &next); /* nothing was ever in it */
    assert_null(time_queue_room(&q, (8 << 20) + 1));
    uint8_t *room = time_queue_room(&q, 4 << 20);
    assert_non_null(room);
    memset(room, 0, 1000);
    time_queue_add_made(&q, 1, 0, 1000);
    time_queue_release(&q, 1, take_large, &next);
    assert_int_equal(next, 1);
    time_queue_done(&q);
}

struct expected {
    size_t told, taken, wrong;
};

static void expect_item(void *user, const struct time_item *item, struct span bytes)
{
    struct expected *e = user;
    assert_int_equal(bytes.size, 1);
    e->wrong += e->told && item->time_ns != e->told + 1; /* in their order */
    e->told = (size_t)item->time_ns;
}

static void take_expected(void *user, const struct time_item *item, struct span bytes)
{
    struct expected *e = user;
    assert_int_equal(bytes.data[0], (uint8_t)item->time_ns);
    e->taken++;
    e->wrong += item->time_ns != e->taken;
    e->wrong += e->told && e->told < item->time_ns; /* in time, but for the last ones */
}

/* Who takes items is told of each a little before, also of what is not due yet. */
static void test_expected(void **state)
{
    (void)state;
    struct time_queue q;
    struct expected e = { 0 };
    time_queue_init(&q, 4096);
    q.expect = expect_item;
    for (unsigned i = 1; i <= 100; i++)
        assert_true(time_queue_add(&q, i, 0, span_of(&(uint8_t){ (uint8_t)i }, 1)));
    time_queue_release(&q, 50, take_expected, &e);
    assert_int_equal(e.taken, 50);
    assert_in_range(e.told, 51, 60);
    time_queue_release(&q, UINT64_MAX, take_expected, &e);
    assert_int_equal(e.taken, 100);
    assert_int_equal(e.told, 100);
    assert_int_equal(e.wrong, 0);
    time_queue_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_order),       cmocka_unit_test(test_full),
                                        cmocka_unit_test(test_handed_over), cmocka_unit_test(test_many_runs),
                                        cmocka_unit_test(test_memory),      cmocka_unit_test(test_large_item),
                                        cmocka_unit_test(test_alignment),   cmocka_unit_test(test_expected) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
