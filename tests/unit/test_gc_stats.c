#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyse/finalized_types.h"
#include "analyse/gc_stats.h"
#include "base/own.h"
#include "told_fixture.h"

enum { COLLECTOR = 10, WORKER = 11, HEAP_A = 12, HEAP_B = 13 };
enum { MECHANISM_CONCURRENT = 1, MECHANISM_PROMOTION = 4 };

static void suspend(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t reason)
{
    buffer_u32le(&f->payload, reason);
    buffer_u32le(&f->payload, 0);
    told_event(f, time_ns, tid, GC_EVENT_SUSPEND_BEGIN, 1);
}

static void start(struct told_fixture *f, uint64_t time_ns, uint32_t number, uint32_t generation,
                  uint32_t reason, uint32_t type)
{
    const uint32_t words[] = { number, generation, reason, type };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        buffer_u32le(&f->payload, words[i]);
    told_event(f, time_ns, COLLECTOR, GC_EVENT_START, 2);
}

static void end(struct told_fixture *f, uint64_t time_ns, uint32_t number)
{
    buffer_u32le(&f->payload, number);
    buffer_u32le(&f->payload, 0);
    told_event(f, time_ns, COLLECTOR, GC_EVENT_END, 1);
}

static void plain(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t id)
{
    told_event(f, time_ns, tid, id, 1);
}

/* Sizes after: 1000 in each generation; promoted: 100 in each. */
static void put_stats(struct buffer *payload)
{
    for (unsigned i = 0; i < 4; i++) {
        buffer_u64le(payload, 1000);
        buffer_u64le(payload, 100);
    }
    buffer_u64le(payload, 64); /* finalizable */
    buffer_u64le(payload, 2);
    buffer_u32le(payload, 7); /* pinned */
    buffer_u32le(payload, 0);
    buffer_u32le(payload, 30); /* handles */
    buffer_u16le(payload, 1);
    buffer_u64le(payload, 500); /* objects pinned for good */
    buffer_u64le(payload, 0);
}

static void stats(struct told_fixture *f, uint64_t time_ns)
{
    put_stats(&f->payload);
    told_event(f, time_ns, COLLECTOR, GC_EVENT_HEAP_STATS, 2);
}

/* A heap with `before` bytes in generation 0, of which a tenth is free, and `after` bytes with 30 free. */
static void put_sizes(struct buffer *payload, uint32_t heap, uint64_t before, uint64_t after,
                      uint64_t survived)
{
    buffer_u16le(payload, 1);
    for (unsigned i = 0; i < 6; i++)
        buffer_u64le(payload, 0);
    buffer_u32le(payload, 0);
    buffer_u32le(payload, 2 | 1 << 2); /* condemned: at first 2, in the end 1 */
    buffer_u32le(payload, 1 << 7);
    buffer_u32le(payload, 0);
    buffer_u32le(payload, 0);
    buffer_u32le(payload, heap);
    buffer_u64le(payload, 0);
    buffer_u32le(payload, GC_EVENT_GENS);
    for (unsigned gen = 0; gen < GC_EVENT_GENS; gen++) {
        const uint64_t sizes[10] = { before, before / 10, 0, after, 10, 20, 5, 0, survived, 4096 };
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
            buffer_u64le(payload, gen ? 0 : sizes[i]);
    }
}

static void put_surviving(struct buffer *payload, uint32_t heap, uint64_t before, uint64_t survived)
{
    put_sizes(payload, heap, before, before / 2, survived);
}

/* What lies in generation 0, and of it in `gen` (GC_EVENT_LARGE). */
static void put_large(struct buffer *payload, uint64_t before, uint64_t after)
{
    size_t large = (size_t)GC_EVENT_LARGE * 10 * 8, at = payload->size + 86 + large;
    put_sizes(payload, 0, 1000, 0, 0);
    for (size_t i = 0; i < 8; i++) {
        payload->data[at + i] = (uint8_t)(before >> (8 * i));
        payload->data[at + 24 + i] = (uint8_t)(after >> (8 * i));
    }
}

/* Half of its objects survive. */
static void put_heap(struct buffer *payload, uint32_t heap, uint64_t before)
{
    put_surviving(payload, heap, before, before * 9 / 20);
}

static void heap(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t number, uint64_t before)
{
    put_heap(&f->payload, number, before);
    told_event(f, time_ns, tid, GC_EVENT_HEAP_HISTORY, 3);
}

static void put_history(struct buffer *payload, uint32_t mechanisms)
{
    buffer_u64le(payload, 4096);
    const uint32_t words[] = { 2, 0, 0, 0, mechanisms };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        buffer_u32le(payload, words[i]);
    buffer_u16le(payload, 1);
    const uint32_t later[] = { 1, 42, 3, 4, 2, 100, 200 }; /* pause mode, load, why, times */
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        buffer_u32le(payload, later[i]);
}

static void history(struct told_fixture *f, uint64_t time_ns, uint32_t mechanisms)
{
    put_history(&f->payload, mechanisms);
    told_event(f, time_ns, COLLECTOR, GC_EVENT_GLOBAL_HISTORY, 4);
}

/* A collection that blocks from `at` for 800 ns; 100 ns later the threads are let go. */
static void blocking(struct told_fixture *f, uint64_t at, uint32_t number, uint32_t generation,
                     uint32_t reason)
{
    suspend(f, at, COLLECTOR, RUNTIME_SUSPEND_GC);
    plain(f, at + 50, COLLECTOR, GC_EVENT_SUSPEND_END);
    start(f, at + 100, number, generation, reason, RUNTIME_GC_BLOCKING);
    end(f, at + 800, number);
    stats(f, at + 850);
    plain(f, at + 900, COLLECTOR, GC_EVENT_RESTART_BEGIN);
    plain(f, at + 950, COLLECTOR, GC_EVENT_RESTART_END);
}

static void test_blocking(void **state)
{
    (void)state;
    struct told_fixture f;
    struct gc_stats gc;
    told_fixture_begin(&f);
    f.stack = told_stack(&f, "app", (const char *const[]){ "Main", "Allocate", NULL });
    buffer_u32le(&f.payload, 0);
    plain(&f, 990, WORKER, GC_EVENT_TRIGGERED);
    uint32_t stack = f.stack;
    f.stack = 0;
    blocking(&f, 1000, 1, 0, 1);
    blocking(&f, 3000, 2, 2, 10);
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_int_equal(gc.row_count, 2);
    assert_int_equal(gc.process_count, 1);
    const struct gc_record *r = &gc.rows[0];
    assert_true(r->complete && r->has_stats && !r->has_before);
    assert_int_equal(r->pause_ns, 800);
    assert_int_equal(r->suspend_ns, 50);
    assert_int_equal(r->end_ns - r->start_ns, 700);
    assert_int_equal(r->heap_after, 4500);
    assert_int_equal(r->promoted, 400);
    assert_int_equal(r->trigger_stack, stack);
    assert_int_equal(f.b.trace.threads.rows[r->trigger_thread].tid, WORKER);
    assert_int_equal(gc.rows[1].trigger_stack, 0);
    assert_int_equal(gc.rows[1].since_last_ns, 1200);
    double paused;
    assert_false(gc_record_pause_share(r, &paused));
    assert_true(gc_record_pause_share(&gc.rows[1], &paused) && paused == 0.4);
    char label[8];
    gc_record_label(&gc.rows[1], label);
    assert_string_equal(label, "2NI");
    const struct gc_process_stats *p = &gc.processes[0];
    assert_int_equal(p->all.count, 2);
    assert_int_equal(p->all.induced, 2);
    assert_int_equal(p->all.pause_ns, 1600);
    assert_int_equal(p->by_generation[2].count, 1);
    assert_int_equal(p->all.pinned, 14);
    gc_stats_done(&gc);
    /* only what begins in a stretch of time */
    gc_stats_init(&gc, &f.b.trace, 2500, 0);
    assert_int_equal(gc.row_count, 1);
    gc_stats_done(&gc);
    told_fixture_end(&f);
}

/*
 * What the program allocated meanwhile is there when it ends: a heap was at least as large as it then was,
 * and no more than all of it survived.
 */
static void test_grown_meanwhile(void **state)
{
    (void)state;
    static const struct {
        uint64_t before, survived, peak;
        double share;
    } cases[] = { { 2000, 450, 4500, 0.25 }, { 7000, 9000, 7000, 1 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct told_fixture f;
        struct gc_stats gc;
        told_fixture_begin(&f);
        suspend(&f, 1000, COLLECTOR, RUNTIME_SUSPEND_GC);
        start(&f, 1100, 1, 2, 0, RUNTIME_GC_BLOCKING);
        put_surviving(&f.payload, 0, cases[i].before, cases[i].survived);
        told_event(&f, 1200, HEAP_A, GC_EVENT_HEAP_HISTORY, 3);
        history(&f, 1210, 0);
        end(&f, 1800, 1);
        stats(&f, 1850);
        plain(&f, 1900, COLLECTOR, GC_EVENT_RESTART_BEGIN);
        plain(&f, 1950, COLLECTOR, GC_EVENT_RESTART_END);
        gc_stats_init(&gc, &f.b.trace, 0, 0);
        assert_int_equal(gc.rows[0].heap_after, 4500);
        assert_int_equal(gc.rows[0].peak, cases[i].before);
        assert_true(gc.rows[0].gen[0].survival_share == cases[i].share);
        assert_int_equal(gc.processes[0].all.peak_max, cases[i].peak);
        gc_stats_done(&gc);
        told_fixture_end(&f);
    }
}

/* In the background: a pause at its begin, another collection meanwhile, a pause near its end. */
static void background(struct told_fixture *f)
{
    suspend(f, 1000, COLLECTOR, RUNTIME_SUSPEND_GC);
    plain(f, 1020, COLLECTOR, GC_EVENT_SUSPEND_END);
    start(f, 1030, 5, 2, 0, RUNTIME_GC_BACKGROUND);
    plain(f, 1100, COLLECTOR, GC_EVENT_RESTART_BEGIN);
    plain(f, 1110, COLLECTOR, GC_EVENT_RESTART_END);
    suspend(f, 2000, WORKER, RUNTIME_SUSPEND_GC);
    start(f, 2010, 6, 0, 0, RUNTIME_GC_IN_BACKGROUND);
    heap(f, 2015, HEAP_A, 0, 9000);
    history(f, 2020, MECHANISM_PROMOTION);
    end(f, 2050, 6);
    stats(f, 2060);
    plain(f, 2070, WORKER, GC_EVENT_RESTART_BEGIN);
    plain(f, 2080, WORKER, GC_EVENT_RESTART_END);
    suspend(f, 3000, COLLECTOR, RUNTIME_SUSPEND_GC_PREP);
    plain(f, 3005, COLLECTOR, GC_EVENT_SUSPEND_END);
    plain(f, 3030, COLLECTOR, GC_EVENT_RESTART_BEGIN);
    plain(f, 3040, COLLECTOR, GC_EVENT_RESTART_END);
    heap(f, 3900, HEAP_A, 0, 1000);
    heap(f, 3900, HEAP_B, 1, 2000);
    history(f, 3950, MECHANISM_CONCURRENT | GC_MECHANISM_COMPACTION);
    end(f, 4000, 5);
    stats(f, 4010);
}

static void test_background(void **state)
{
    (void)state;
    struct told_fixture f;
    struct gc_stats gc;
    told_fixture_begin(&f);
    background(&f);
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_int_equal(gc.row_count, 2);
    const struct gc_record *r = &gc.rows[0], *inside = &gc.rows[1];
    assert_int_equal(r->kind, GC_KIND_BACKGROUND);
    assert_true(r->complete && !r->turned_blocking && inside->complete);
    assert_int_equal(r->pauses, 2);
    assert_int_equal(r->pause_ns, 100 + 30);
    assert_int_equal(r->final_pause_ns, 30);
    assert_int_equal(r->suspend_ns, 20 + 5);
    assert_int_equal(inside->kind, GC_KIND_FOREGROUND);
    assert_int_equal(inside->pause_ns, 50);
    assert_int_equal(inside->heaps, 1);
    assert_int_equal(r->heaps, 2);
    assert_int_equal(r->heap_before, 3000);
    assert_int_equal(r->peak, 9000); /* that of the other */
    assert_int_equal(r->gen[0].fragmentation, 60);
    assert_int_equal(r->gen[0].out, 1350);
    assert_true(r->gen[0].has_survival && r->gen[0].survival_share == 0.5);
    assert_int_equal(r->history.memory_load_percent, 42);
    assert_int_equal(r->history.phases, 2);
    assert_int_equal(r->history.phase_us[1], 200);
    assert_int_equal(gc.processes[0].all.background, 1);
    gc_stats_done(&gc);
    told_fixture_end(&f);
}

/* It began in the background and ended before anybody was let go. */
static void test_turned_blocking(void **state)
{
    (void)state;
    struct told_fixture f;
    struct gc_stats gc;
    told_fixture_begin(&f);
    suspend(&f, 1000, COLLECTOR, RUNTIME_SUSPEND_GC);
    start(&f, 1030, 5, 2, 0, RUNTIME_GC_BACKGROUND);
    history(&f, 1040, GC_MECHANISM_COMPACTION);
    end(&f, 1900, 5);
    stats(&f, 1910);
    plain(&f, 2000, COLLECTOR, GC_EVENT_RESTART_END); /* that of its begin was lost */
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_int_equal(gc.rows[0].kind, GC_KIND_BLOCKING);
    assert_true(gc.rows[0].turned_blocking && gc.rows[0].complete);
    assert_int_equal(gc.rows[0].pause_ns, 1000);
    assert_int_equal(gc.processes[0].all.background, 0);
    gc_stats_done(&gc);
    told_fixture_end(&f);
}

/* One in the background lets a young one go first, in one pause. */
static void test_two_in_a_pause(void **state)
{
    (void)state;
    struct told_fixture f;
    struct gc_stats gc;
    told_fixture_begin(&f);
    suspend(&f, 1000, COLLECTOR, RUNTIME_SUSPEND_GC);
    start(&f, 1100, 1, 2, 0, RUNTIME_GC_BACKGROUND);
    start(&f, 1200, 2, 1, 0, RUNTIME_GC_BLOCKING);
    end(&f, 1700, 2);
    stats(&f, 1710);
    plain(&f, 2000, COLLECTOR, GC_EVENT_RESTART_BEGIN);
    plain(&f, 2010, COLLECTOR, GC_EVENT_RESTART_END);
    end(&f, 3000, 1);
    stats(&f, 3010);
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_int_equal(gc.rows[0].pause_ns, 500);
    assert_int_equal(gc.rows[1].pause_ns, 500);
    assert_int_equal(gc.rows[1].pause_from_ns, 1200);
    assert_true(gc.rows[0].complete && gc.rows[1].complete);
    assert_int_equal(gc.processes[0].all.pause_ns, 1000);
    gc_stats_done(&gc);
    told_fixture_end(&f);
}

/* What another process tells, and pauses for something else, change nothing. */
static void test_others(void **state)
{
    (void)state;
    struct told_fixture f;
    struct gc_stats gc;
    told_fixture_begin(&f);
    suspend(&f, 500, WORKER, RUNTIME_SUSPEND_OTHER);
    suspend(&f, 990, HEAP_A, RUNTIME_SUSPEND_OTHER); /* waits while the collection goes on */
    blocking(&f, 1000, 1, 0, 0);
    plain(&f, 2000, HEAP_A, GC_EVENT_RESTART_END);
    suspend(&f, 3000, COLLECTOR, RUNTIME_SUSPEND_GC); /* a region without collections begins */
    plain(&f, 3100, COLLECTOR, GC_EVENT_RESTART_BEGIN);
    plain(&f, 3110, COLLECTOR, GC_EVENT_RESTART_END);
    f.pid = TOLD_PID + 1;
    blocking(&f, 1010, 9, 1, 0);
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_int_equal(gc.process_count, 2);
    assert_int_equal(gc.processes[0].all.pause_ns, 800);
    assert_int_equal(gc.processes[0].other_pauses, 1);
    assert_int_equal(gc.processes[0].other_pause_ns, 100);
    assert_int_equal(gc.processes[1].all.count, 1);
    assert_int_equal(gc.processes[1].all.pause_ns, 800);
    gc_stats_done(&gc);
    told_fixture_end(&f);
}

/* The trace begins in a collection, and ends in another. */
static void test_missing_ends(void **state)
{
    (void)state;
    struct told_fixture f;
    struct gc_stats gc;
    told_fixture_begin(&f);
    end(&f, 100, 3);
    stats(&f, 110);
    plain(&f, 120, COLLECTOR, GC_EVENT_RESTART_BEGIN);
    plain(&f, 130, COLLECTOR, GC_EVENT_RESTART_END);
    blocking(&f, 1000, 4, 0, 0);
    suspend(&f, 3000, COLLECTOR, RUNTIME_SUSPEND_GC);
    start(&f, 3010, 5, 0, 0, RUNTIME_GC_BLOCKING);
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_int_equal(gc.processes[0].all.count, 1);
    assert_int_equal(gc.processes[0].incomplete, 1);
    assert_int_equal(gc.processes[0].all.pause_ns, 800);
    gc_stats_done(&gc);
    told_fixture_end(&f);
}

/* Allocated since: what is there now, less what was left. */
static void test_allocated(void **state)
{
    (void)state;
    struct told_fixture f;
    struct gc_stats gc;
    told_fixture_begin(&f);
    for (uint64_t i = 0; i < 2; i++) {
        suspend(&f, 1000 + i * 1000, COLLECTOR, RUNTIME_SUSPEND_GC);
        start(&f, 1010 + i * 1000, (uint32_t)i + 1, 0, 0, RUNTIME_GC_BLOCKING);
        heap(&f, 1020 + i * 1000, COLLECTOR, 0, 1000 + 1000 * i);
        end(&f, 1050 + i * 1000, (uint32_t)i + 1);
        plain(&f, 1100 + i * 1000, COLLECTOR, GC_EVENT_RESTART_END);
    }
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_false(gc.rows[0].has_allocated);
    assert_true(gc.rows[1].has_allocated);
    assert_int_equal(gc.rows[1].allocated, (2000 - 200) - (500 - 30));
    gc_stats_done(&gc);
    told_fixture_end(&f);
}

/* One in the background is measured as it begins and as it ends; what comes in between is not left by it. */
static void test_allocated_meanwhile(void **state)
{
    (void)state;
    for (unsigned ends_first = 0; ends_first < 2; ends_first++) {
        struct told_fixture f;
        struct gc_stats gc;
        told_fixture_begin(&f);
        suspend(&f, 1000, COLLECTOR, RUNTIME_SUSPEND_GC);
        start(&f, 1030, 1, 2, 0, RUNTIME_GC_BACKGROUND);
        plain(&f, 1100, COLLECTOR, GC_EVENT_RESTART_BEGIN);
        plain(&f, 1110, COLLECTOR, GC_EVENT_RESTART_END);
        uint64_t end_ns = ends_first ? 1500 : 2500;
        suspend(&f, 2000, WORKER, RUNTIME_SUSPEND_GC);
        start(&f, 2010, 2, 0, 0, ends_first ? RUNTIME_GC_BLOCKING : RUNTIME_GC_IN_BACKGROUND);
        heap(&f, 2020, WORKER, 0, 2000);
        end(&f, 2050, 2);
        stats(&f, 2060);
        plain(&f, 2070, WORKER, GC_EVENT_RESTART_BEGIN);
        plain(&f, 2080, WORKER, GC_EVENT_RESTART_END);
        put_sizes(&f.payload, 0, 400, 900, 100);
        told_event(&f, end_ns - 10, COLLECTOR, GC_EVENT_HEAP_HISTORY, 3);
        end(&f, end_ns, 1);
        stats(&f, end_ns + 10);
        gc_stats_init(&gc, &f.b.trace, 0, 0);
        assert_true(gc.rows[0].complete && gc.rows[1].complete && gc.rows[1].has_allocated);
        assert_int_equal(gc.rows[1].allocated,
                         ends_first ? (2000 - 200) - (900 - 30 - (900 - 400)) : (2000 - 200) - (400 - 40));
        gc_stats_done(&gc);
        told_fixture_end(&f);
    }
}

/* A collection of the youngest, which finds so many bytes of large objects and leaves them. */
static void young(struct told_fixture *f, uint64_t at, uint32_t number, uint32_t type, uint64_t large)
{
    suspend(f, at, WORKER, RUNTIME_SUSPEND_GC);
    start(f, at + 10, number, 1, 0, type);
    put_large(&f->payload, large, large);
    told_event(f, at + 20, WORKER, GC_EVENT_HEAP_HISTORY, 3);
    end(f, at + 50, number);
    stats(f, at + 60);
    plain(f, at + 70, WORKER, GC_EVENT_RESTART_BEGIN);
    plain(f, at + 80, WORKER, GC_EVENT_RESTART_END);
}

/*
 * Large objects are allocated before, during and after a collection in the background, which tells how many
 * there were when it had marked, and frees some between two that do not look at them: each counts once.
 */
static void test_large_meanwhile(void **state)
{
    (void)state;
    for (unsigned ticks = 0; ticks < 2; ticks++) {
        struct told_fixture f;
        struct gc_stats gc;
        uint64_t sum = 0;
        told_fixture_begin(&f);
        if (ticks) {
            buffer_u32le(&f.payload, 600); /* sizes tell more of where it was */
            buffer_u32le(&f.payload, GC_ALLOCATION_SMALL);
            plain(&f, 900, WORKER, GC_EVENT_ALLOCATION_TICK);
        }
        young(&f, 1000, 1, RUNTIME_GC_BLOCKING, 10000);
        suspend(&f, 2000, COLLECTOR, RUNTIME_SUSPEND_GC);
        start(&f, 2030, 2, 2, 0, RUNTIME_GC_BACKGROUND);
        plain(&f, 2100, COLLECTOR, GC_EVENT_RESTART_BEGIN);
        plain(&f, 2110, COLLECTOR, GC_EVENT_RESTART_END);
        young(&f, 3000, 3, RUNTIME_GC_IN_BACKGROUND, 10500); /* 500 more */
        young(&f, 4000, 4, RUNTIME_GC_IN_BACKGROUND, 10700); /* 200 more */
        put_large(&f.payload, 10730, 4000);                  /* 30 more, and then most of them are freed */
        told_event(&f, 4500, COLLECTOR, GC_EVENT_HEAP_HISTORY, 3);
        end(&f, 4600, 2);
        stats(&f, 4610);
        young(&f, 5000, 5, RUNTIME_GC_BLOCKING, 4007); /* 7 more */
        gc_stats_init(&gc, &f.b.trace, 0, 0);
        assert_int_equal(gc.rows[0].gen[0].allocated,
                         ticks ? 600 : 0); /* before it is nothing to compare with */
        static const uint64_t made[] = { 0, 500, 0, 200, 37 };
        assert_int_equal(gc.row_count, ARRAY_LEN(made));
        for (size_t i = 1; i < ARRAY_LEN(made); i++) {
            assert_int_equal(gc.rows[i].gen[GC_EVENT_LARGE].allocated, made[i]);
            sum += gc.rows[i].gen[GC_EVENT_LARGE].allocated;
        }
        assert_int_equal(sum, 737);
        gc_stats_done(&gc);
        told_fixture_end(&f);
    }
}

/* Every payload cut at every byte, and garbage: nothing is read that is not there. */
static void test_malformed(void **state)
{
    (void)state;
    static const uint16_t ids[] = { GC_EVENT_SUSPEND_BEGIN,   GC_EVENT_START,  GC_EVENT_HEAP_HISTORY,
                                    GC_EVENT_GLOBAL_HISTORY,  GC_EVENT_MARKED, GC_EVENT_PINNED_OBJECT,
                                    GC_EVENT_ALLOCATION_TICK, GC_EVENT_END,    GC_EVENT_HEAP_STATS };
    struct told_fixture f;
    struct gc_stats gc;
    struct buffer payload;
    told_fixture_begin(&f);
    buffer_init(&payload, 1 << 12);
    put_heap(&payload, 0, 1000);
    for (size_t size = 0; size <= payload.size; size++) {
        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
            buffer_append(&f.payload, payload.data, size);
            told_event(&f, 1000 + size * 100 + i, COLLECTOR, ids[i], 3);
        }
        plain(&f, 1090 + size * 100, COLLECTOR, GC_EVENT_RESTART_END);
    }
    gc_stats_init(&gc, &f.b.trace, 0, 0);
    assert_true(gc.malformed > 0);
    gc_stats_done(&gc);
    buffer_done(&payload);
    told_fixture_end(&f);
}

/* Types by their ids; the runtime names some, of others it says where they are defined. */
static void test_finalized(void **state)
{
    (void)state;
    static const uint64_t finalized[] = { 0x10, 0x20, 0x10, 0x30, 0x10, 0x20 };
    struct told_fixture f;
    struct finalized_types types;
    told_fixture_begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(finalized); i++) {
        buffer_u64le(&f.payload, finalized[i]);
        buffer_u64le(&f.payload, 0x7f00);
        buffer_u16le(&f.payload, 1);
        told_event(&f, 1000 + i, COLLECTOR, GC_EVENT_FINALIZE_OBJECT, 0);
    }
    buffer_u32le(&f.payload, 3); /* one more than there are */
    buffer_u16le(&f.payload, 1);
    for (uint64_t i = 0; i < 2; i++) {
        buffer_u64le(&f.payload, 0x10 + 0x10 * i);
        buffer_u64le(&f.payload, 0x900);
        buffer_u32le(&f.payload, 0x02000005);
        buffer_u32le(&f.payload, 0);
        buffer_u8(&f.payload, 0);
        told_text(&f, i ? "" : "App.Cursor");
        buffer_u32le(&f.payload, 1);
        buffer_u64le(&f.payload, 0x40); /* a type parameter */
    }
    told_event(&f, 2000, COLLECTOR, 15, 0);
    finalized_types_init(&types, &f.b.trace, 0, 0);
    assert_int_equal(types.count, 3);
    assert_int_equal(types.rows[0].count, 3);
    assert_string_equal(types.rows[0].name, "App.Cursor");
    assert_string_equal(types.rows[1].name, "[unknown]!0x02000005");
    assert_null(types.rows[2].name);
    finalized_types_done(&types);
    told_fixture_end(&f);
}

static void test_readers(void **state)
{
    (void)state;
    struct buffer payload;
    struct gc_heap_stats_event heap_stats;
    struct gc_heap_history_event heap_history;
    struct gc_global_history_event global;
    buffer_init(&payload, 1 << 12);
    put_stats(&payload);
    for (size_t size = 0; size <= payload.size; size++) {
        bool whole = size >= 92; /* version 0; the rest was added later */
        assert_int_equal(gc_heap_stats_read(span_of(payload.data, size), &heap_stats, NULL), whole);
        assert_true(!whole || heap_stats.size_bytes[4] == (size >= 110 ? 500 : 0));
    }
    buffer_clear(&payload);
    put_heap(&payload, 3, 1000);
    for (size_t size = 0; size < payload.size; size++)
        assert_false(gc_heap_history_read(span_of(payload.data, size), 8, &heap_history, NULL));
    assert_true(gc_heap_history_read(buffer_span(&payload), 8, &heap_history, NULL));
    assert_int_equal(heap_history.heap, 3);
    assert_int_equal(heap_history.gens, 5);
    assert_int_equal(heap_history.gen[0].budget, 4096);
    buffer_clear(&payload);
    put_history(&payload, 5);
    for (size_t size = 0; size <= payload.size; size++) {
        bool whole = size >= 28;
        assert_int_equal(gc_global_history_read(span_of(payload.data, size), &global, NULL), whole);
        assert_true(!whole || global.phases == (size >= 58 ? 2 : size >= 54 ? 1 : 0));
    }
    assert_true(global.has_load && global.condemn_conditions == 4);
    buffer_done(&payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_grown_meanwhile),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_turned_blocking),
        cmocka_unit_test(test_two_in_a_pause),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_missing_ends),
        cmocka_unit_test(test_allocated),
        cmocka_unit_test(test_allocated_meanwhile),
        cmocka_unit_test(test_large_meanwhile),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_finalized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
