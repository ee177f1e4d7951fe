#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/threadpool_stats.h"
#include "base/own.h"
#include "told_fixture.h"

enum { WORKER = 10 };

static void workers(struct told_fixture *f, uint64_t time_ns, uint32_t id, uint32_t count)
{
    buffer_u32le(&f->payload, count);
    buffer_u32le(&f->payload, 0);
    buffer_u16le(&f->payload, 0);
    told_event(f, time_ns, WORKER, id, 0);
}

static void adjusted(struct told_fixture *f, uint64_t time_ns, double throughput, uint32_t count,
                     uint32_t reason)
{
    uint64_t bits;
    memcpy(&bits, &throughput, sizeof bits);
    buffer_u64le(&f->payload, bits);
    buffer_u32le(&f->payload, count);
    buffer_u32le(&f->payload, reason);
    buffer_u16le(&f->payload, 0);
    told_event(f, time_ns, WORKER, THREADPOOL_EVENT_ADJUSTMENT, 0);
}

static void test_starving(void **state)
{
    (void)state;
    struct told_fixture f;
    struct threadpool_stats stats;
    told_fixture_begin(&f);
    const uint16_t limits[] = { 2, 32767, 1, 1000 };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        buffer_u16le(&f.payload, limits[i]);
    buffer_u16le(&f.payload, 0);
    told_event(&f, 500, WORKER, THREADPOOL_EVENT_MIN_MAX, 0);
    workers(&f, 1000, THREADPOOL_EVENT_START, 2);
    workers(&f, 1001, THREADPOOL_EVENT_WAIT, 2);
    adjusted(&f, 2000, 1.5, 3, THREADPOOL_STARVATION);
    workers(&f, 2001, THREADPOOL_EVENT_START, 3);
    adjusted(&f, 3000, 2.5, 4, THREADPOOL_STARVATION);
    adjusted(&f, 4000, 0, 3, 99);
    workers(&f, 5000, THREADPOOL_EVENT_STOP, 2);
    threadpool_stats_init(&stats, &f.b.trace, 0, 0);
    const struct threadpool_process *p = &stats.processes[0];
    assert_int_equal(stats.process_count, 1);
    assert_int_equal(p->most_workers, 3);
    assert_int_equal(p->last_workers, 2);
    assert_true(p->has_limits && p->min_workers == 2 && p->max_workers == 32767);
    assert_int_equal(p->started, 2);
    assert_int_equal(p->adjustments[THREADPOOL_STARVATION], 2);
    assert_int_equal(p->adjustments[THREADPOOL_REASONS], 1);
    assert_int_equal(p->first_starved_ns, 2000);
    assert_int_equal(p->last_starved_ns, 3000);
    assert_true(p->throughput_max == 2.5);
    assert_int_equal(stats.level_count, 3); /* 2, 3, 2: the wait changed nothing */
    assert_int_equal(stats.adjustments[0].workers_before, 2);
    assert_int_equal(stats.adjustments[1].workers_before, 3);
    assert_string_equal(threadpool_reason_name(stats.adjustments[2].reason), "Other");
    threadpool_stats_done(&stats);
    told_fixture_end(&f);
}

/* What was wanted before the time that is asked about is where its first change begins. */
static void test_part(void **state)
{
    (void)state;
    struct told_fixture f;
    struct threadpool_stats stats;
    told_fixture_begin(&f);
    adjusted(&f, 1000, 9, 11, THREADPOOL_STARVATION);
    workers(&f, 2000, THREADPOOL_EVENT_WAIT, 9);
    adjusted(&f, 3000, 2.5, 2, THREADPOOL_STARVATION);
    threadpool_stats_init(&stats, &f.b.trace, 2000, 0);
    assert_int_equal(stats.adjustment_count, 1);
    assert_true(stats.adjustments[0].has_before);
    assert_int_equal(stats.adjustments[0].workers_before, 11);
    assert_int_equal(stats.processes[0].adjustments[THREADPOOL_STARVATION], 1);
    assert_int_equal(stats.processes[0].first_starved_ns, 3000);
    assert_true(stats.processes[0].throughput_max == 2.5);
    threadpool_stats_done(&stats);
    threadpool_stats_init(&stats, &f.b.trace, 4000, 0); /* nothing happened there */
    assert_false(stats.any);
    assert_int_equal(stats.process_count, 0);
    threadpool_stats_done(&stats);
    told_fixture_end(&f);
}

static void test_cut_payloads(void **state)
{
    (void)state;
    static const uint16_t ids[] = { THREADPOOL_EVENT_START, THREADPOOL_EVENT_ADJUSTMENT,
                                    THREADPOOL_EVENT_SAMPLE, THREADPOOL_EVENT_MIN_MAX };
    struct told_fixture f;
    struct threadpool_stats stats;
    told_fixture_begin(&f);
    for (size_t size = 0; size < 18; size++) {
        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
            for (size_t k = 0; k < size; k++)
                buffer_u8(&f.payload, 0xff);
            told_event(&f, 1000 + size * 10 + i, WORKER, ids[i], 0);
        }
    }
    threadpool_stats_init(&stats, &f.b.trace, 0, 0);
    assert_true(stats.malformed > 0 && stats.adjustment_count > 0);
    assert_true(stats.processes[0].throughput_max == 0); /* not a number */
    threadpool_stats_done(&stats);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starving),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_cut_payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
