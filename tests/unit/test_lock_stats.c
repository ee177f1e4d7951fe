#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/lock_stats.h"
#include "base/own.h"
#include "told_fixture.h"

enum { WAITER = 10, OTHER = 11, OWNER = 12 };

static void start(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint64_t lock)
{
    buffer_u8(&f->payload, 0);
    buffer_u16le(&f->payload, 1);
    buffer_u64le(&f->payload, lock);
    buffer_u64le(&f->payload, 0);
    buffer_u64le(&f->payload, OWNER);
    told_event(f, time_ns, tid, LOCK_EVENT_CONTENTION_START, 2);
}

/* Version 0 does not say how long. */
static void stop(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t version, double ns)
{
    uint64_t bits;
    memcpy(&bits, &ns, sizeof bits);
    buffer_u8(&f->payload, 0);
    buffer_u16le(&f->payload, 1);
    if (version)
        buffer_u64le(&f->payload, bits);
    told_event(f, time_ns, tid, LOCK_EVENT_CONTENTION_STOP, version);
}

static void test_pairs(void **state)
{
    (void)state;
    struct told_fixture f;
    struct lock_stats stats;
    struct event_groups groups;
    told_fixture_begin(&f);
    start(&f, 1000, WAITER, 0x7f10);
    start(&f, 1100, OTHER, 0x7f10);
    stop(&f, 2000, WAITER, 1, 950);
    stop(&f, 3100, OTHER, 0, 0);
    lock_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.tally.total.count, 2);
    assert_true(stats.tally.total.weight == 950 + 2000);
    assert_true(stats.tally.total.most == 2000);
    assert_int_equal(stats.unfinished + stats.unbegun + stats.malformed, 0);
    event_groups_init(&groups, &stats.tally, TALLY_BY_TEXT);
    assert_int_equal(groups.count, 1);
    const struct tally_row *row = event_group_row(&groups, &groups.rows[0], 0);
    assert_string_equal(intern_text(&stats.tally.texts, row->text), "0x7f10");
    assert_string_equal(intern_text(&stats.tally.texts, row->detail), "12");
    event_groups_done(&groups);
    lock_stats_done(&stats);
    told_fixture_end(&f);
}

static void test_missing(void **state)
{
    (void)state;
    struct told_fixture f;
    struct lock_stats stats;
    told_fixture_begin(&f);
    stop(&f, 500, WAITER, 1, 100); /* began before the capture */
    start(&f, 1000, WAITER, 0x10); /* its end was lost */
    start(&f, 2000, WAITER, 0x10);
    stop(&f, 2500, WAITER, 1, -1.0); /* no time at all: ours is taken */
    start(&f, 3000, OTHER, 0x10);    /* not over yet */
    start(&f, 3000, 0, 0x10);        /* of no thread */
    stop(&f, 3500, 0, 1, 1);
    lock_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.unbegun, 2);
    assert_int_equal(stats.unfinished, 2);
    assert_int_equal(stats.malformed, 1);
    assert_int_equal(stats.tally.total.count, 1);
    assert_true(stats.tally.total.weight == 500);
    lock_stats_done(&stats);
    told_fixture_end(&f);
}

static void test_cut_payloads(void **state)
{
    (void)state;
    struct told_fixture f;
    struct lock_stats stats;
    told_fixture_begin(&f);
    for (size_t size = 0; size < 27; size++) {
        for (size_t i = 0; i < size; i++)
            buffer_u8(&f.payload, (uint8_t)i);
        told_event(&f, 1000 + size * 10, WAITER, LOCK_EVENT_CONTENTION_START, 2);
        for (size_t i = 0; i < size; i++)
            buffer_u8(&f.payload, (uint8_t)i);
        told_event(&f, 1005 + size * 10, WAITER, LOCK_EVENT_CONTENTION_STOP, 1);
    }
    lock_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.tally.total.count, 27);
    lock_stats_done(&stats);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_cut_payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
