#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/alloc_stats.h"
#include "base/own.h"
#include "clr/gc_events.h"
#include "told_fixture.h"

enum { THREAD = 10 };

static void put_tick(struct told_fixture *f, uint64_t bytes, uint32_t kind, const char *type,
                     uint64_t object_bytes)
{
    buffer_u32le(&f->payload, (uint32_t)bytes);
    buffer_u32le(&f->payload, kind);
    buffer_u16le(&f->payload, 1);
    buffer_u64le(&f->payload, bytes);
    buffer_u64le(&f->payload, 0x7f00);
    told_text(f, type);
    buffer_u32le(&f->payload, 0);
    buffer_u64le(&f->payload, 0x7f01);
    buffer_u64le(&f->payload, object_bytes);
}

static void tick(struct told_fixture *f, uint64_t time_ns, uint64_t bytes, uint32_t kind, const char *type,
                 uint64_t object_bytes)
{
    put_tick(f, bytes, kind, type, object_bytes);
    told_event(f, time_ns, THREAD, GC_EVENT_ALLOCATION_TICK, 4);
}

static void put_sample(struct told_fixture *f, uint32_t kind, const char *type, uint64_t object_bytes)
{
    buffer_u32le(&f->payload, kind);
    buffer_u16le(&f->payload, 1);
    buffer_u64le(&f->payload, 0x7f00);
    told_text(f, type);
    buffer_u64le(&f->payload, 0x7f01);
    buffer_u64le(&f->payload, object_bytes);
    buffer_u64le(&f->payload, 0);
}

static const char *type_of(const struct event_groups *groups, size_t i)
{
    return intern_text(&groups->tally->texts, event_group_row(groups, &groups->rows[i], 0)->text);
}

static void test_ticks(void **state)
{
    (void)state;
    struct told_fixture f;
    struct alloc_stats stats;
    struct event_groups groups;
    told_fixture_begin(&f);
    for (uint64_t i = 0; i < 75; i++)
        tick(&f, 1000 + i, 100000, GC_ALLOCATION_SMALL, "App.Order", 50);
    for (uint64_t i = 0; i < 25; i++)
        tick(&f, 2000 + i, 100000, GC_ALLOCATION_SMALL, "App.Line", 25);
    tick(&f, 3000, 900000, GC_ALLOCATION_LARGE, "System.Byte[]", 899000);
    alloc_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_true(stats.any && stats.source == ALLOC_SOURCE_TICKS);
    assert_int_equal(stats.ticks, 101);
    assert_true(stats.tally.total.weight == 10900000);
    assert_true(stats.bytes_of_kind[GC_ALLOCATION_LARGE] == 900000);
    event_groups_init(&groups, &stats.tally, TALLY_BY_TEXT);
    assert_int_equal(groups.count, 3);
    assert_string_equal(type_of(&groups, 0), "App.Order");
    assert_true(groups.rows[0].sum.objects == 150000);
    double low, high;
    alloc_stats_bounds(&stats, &groups.rows[1].sum, &low, &high);
    assert_string_equal(type_of(&groups, 1), "App.Line");
    assert_true(low > 1500000 && low < 2500000 && high > 2500000 && high < 3500000);
    alloc_stats_bounds(&stats, &groups.rows[2].sum, &low, &high); /* it is told by itself */
    assert_true(low == 900000 && high == 900000);
    event_groups_done(&groups);
    alloc_stats_done(&stats);
    told_fixture_end(&f);
}

/* A byte in 102400 is chosen: one of a small object stands for that many bytes, a large one for itself. */
static void test_samples(void **state)
{
    (void)state;
    struct told_fixture f;
    struct alloc_stats stats;
    struct event_groups groups;
    told_fixture_begin(&f);
    tick(&f, 500, 100000, GC_ALLOCATION_SMALL, "App.Forgotten", 50); /* before sampling began */
    for (uint64_t i = 0; i < 100; i++) {
        put_sample(&f, GC_ALLOCATION_SMALL, "App.Order", 48);
        told_event(&f, 1000 + i, THREAD, GC_EVENT_ALLOCATION_SAMPLED, 0);
    }
    put_sample(&f, GC_ALLOCATION_LARGE, "System.Byte[]", 8000000);
    told_event(&f, 3000, THREAD, GC_EVENT_ALLOCATION_SAMPLED, 0);
    alloc_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_true(stats.source == ALLOC_SOURCE_SAMPLED);
    assert_int_equal(stats.samples, 101);
    assert_int_equal(stats.ticks, 1);
    event_groups_init(&groups, &stats.tally, TALLY_BY_TEXT);
    assert_int_equal(groups.count, 2);
    const struct event_sum *orders = &groups.rows[0].sum, *bytes = &groups.rows[1].sum;
    assert_true(orders->weight > 102400 * 99.9 && orders->weight < 102400 * 100.1);
    assert_true(orders->objects > 102400 / 48 * 99 && orders->objects < 102400 / 48 * 101);
    double low, high;
    alloc_stats_bounds(&stats, orders, &low, &high); /* 1.96 of 10 deviations */
    assert_true(low > 8.0e6 && low < 8.3e6 && high > 12.1e6 && high < 12.4e6);
    assert_true(bytes->weight >= 8000000 && bytes->weight < 8000001);
    event_groups_done(&groups);
    alloc_stats_done(&stats);
    told_fixture_end(&f);
}

/* Native AOT tells "NULL" for all of them. */
static void test_type_names(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    tick(&f, 1000, 300000, GC_ALLOCATION_SMALL, "Entry[System.Int32,System.String][]", 50);
    tick(&f, 1001, 200000, GC_ALLOCATION_SMALL, "NULL", 50);
    static const char *const wanted[2][2] = { { "Entry<int,string>[]", "" },
                                              { "Entry[System.Int32,System.String][]", "NULL" } };
    for (unsigned raw = 0; raw < 2; raw++) {
        struct alloc_stats stats;
        struct event_groups groups;
        alloc_stats_init(&stats, &f.b.trace, raw, 0, 0);
        event_groups_init(&groups, &stats.tally, TALLY_BY_TEXT);
        assert_int_equal(groups.count, 2);
        assert_string_equal(type_of(&groups, 0), wanted[raw][0]);
        assert_string_equal(type_of(&groups, 1), wanted[raw][1]);
        event_groups_done(&groups);
        alloc_stats_done(&stats);
    }
    told_fixture_end(&f);
}

static void test_cut_payloads(void **state)
{
    (void)state;
    struct told_fixture f;
    struct alloc_stats stats;
    struct buffer whole;
    told_fixture_begin(&f);
    buffer_init(&whole, 1 << 10);
    for (unsigned sampled = 0; sampled < 2; sampled++) {
        buffer_clear(&whole);
        buffer_clear(&f.payload);
        if (sampled)
            put_sample(&f, 0, "App.Order", 48);
        else
            put_tick(&f, 100000, 7, "App.Order", 48);
        buffer_append(&whole, f.payload.data, f.payload.size);
        f.pid = TOLD_PID + sampled;
        for (size_t size = 0; size < whole.size; size++) {
            buffer_clear(&f.payload);
            buffer_append(&f.payload, whole.data, size);
            told_event(&f, 1000 + size, THREAD,
                       sampled ? GC_EVENT_ALLOCATION_SAMPLED : GC_EVENT_ALLOCATION_TICK, 4);
        }
    }
    alloc_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_true(stats.source == ALLOC_SOURCE_MIXED);
    assert_true(stats.malformed > 0 && stats.tally.total.count > 0); /* version 0 is 8 bytes */
    alloc_stats_done(&stats);
    buffer_done(&whole);
    told_fixture_end(&f);
}

/* Old runtimes told differences below zero. */
static void test_negative(void **state)
{
    (void)state;
    struct told_fixture f;
    struct alloc_stats stats;
    told_fixture_begin(&f);
    buffer_u32le(&f.payload, (uint32_t)-5000);
    buffer_u32le(&f.payload, 0);
    told_event(&f, 1000, THREAD, GC_EVENT_ALLOCATION_TICK, 0);
    alloc_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_true(stats.tally.total.weight == GC_SAMPLED_ONE_IN);
    alloc_stats_done(&stats);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),      cmocka_unit_test(test_samples),
        cmocka_unit_test(test_type_names), cmocka_unit_test(test_cut_payloads),
        cmocka_unit_test(test_negative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
