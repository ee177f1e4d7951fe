#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/jit_stats.h"
#include "base/own.h"
#include "told_fixture.h"

enum { MAIN = 10, TIERING = 11, JITTED = 8, TIER_SHIFT = 7, MODULE_ID = 0x900 };

static const uint32_t cold = 1u << 28;

static uint32_t flags_of(enum runtime_tier tier)
{
    return JITTED | (uint32_t)tier << TIER_SHIFT;
}

static void started(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint64_t method, const char *name)
{
    buffer_u64le(&f->payload, method);
    buffer_u64le(&f->payload, MODULE_ID);
    buffer_u32le(&f->payload, 0x06000001);
    buffer_u32le(&f->payload, 40); /* of IL */
    told_text(f, "App.Program");
    told_text(f, name);
    told_text(f, "void  ()");
    buffer_u16le(&f->payload, 1);
    told_event(f, time_ns, tid, JIT_EVENT_STARTED, 1);
}

static void put_loaded(struct told_fixture *f, uint64_t method, const char *name, uint32_t flags)
{
    buffer_u64le(&f->payload, method);
    buffer_u64le(&f->payload, MODULE_ID);
    buffer_u64le(&f->payload, 0x7f0000 + method);
    buffer_u32le(&f->payload, 100); /* of code */
    buffer_u32le(&f->payload, 0x06000001);
    buffer_u32le(&f->payload, flags);
    told_text(f, "App.Program");
    told_text(f, name);
    told_text(f, "void  ()");
    buffer_u16le(&f->payload, 1);
}

static void loaded(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint64_t method, const char *name,
                   uint32_t flags)
{
    put_loaded(f, method, name, flags);
    told_event(f, time_ns, tid, JIT_EVENT_LOAD_VERBOSE, 1);
}

static void module(struct told_fixture *f)
{
    buffer_u64le(&f->payload, MODULE_ID);
    buffer_u64le(&f->payload, 0x901);
    buffer_u32le(&f->payload, 0);
    buffer_u32le(&f->payload, 0);
    told_text(f, "/srv/app/App.Web.dll");
    told_text(f, "");
    buffer_u16le(&f->payload, 1);
    told_event(f, 9000, MAIN, 152, 1);
}

static void test_pairs(void **state)
{
    (void)state;
    struct told_fixture f;
    struct jit_stats stats;
    told_fixture_begin(&f);
    module(&f);
    started(&f, 1000, MAIN, 1, "Outer");
    started(&f, 1100, MAIN, 2, "Inner"); /* a type that Outer uses */
    loaded(&f, 1300, MAIN, 2, "Inner", flags_of(RUNTIME_TIER_QUICK));
    loaded(&f, 2000, MAIN, 1, "Outer", flags_of(RUNTIME_TIER_QUICK));
    loaded(&f, 2001, MAIN, 1, "Outer", flags_of(RUNTIME_TIER_QUICK) | cold);
    loaded(&f, 3000, MAIN, 3, "Unstarted", flags_of(RUNTIME_TIER_OPTIMIZED));
    loaded(&f, 3100, MAIN, 4, "Precompiled", 0);
    jit_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.row_count, 3);
    const struct jit_method *inner = &stats.rows[0], *outer = &stats.rows[1], *unstarted = &stats.rows[2];
    assert_string_equal(outer->name, "App.Program.Outer");
    assert_string_equal(outer->module, "App.Web");
    assert_int_equal(outer->time_ns, 1000);
    assert_int_equal(outer->own_ns, 800);
    assert_int_equal(inner->own_ns, 200);
    assert_int_equal(outer->native_bytes, 200);
    assert_int_equal(outer->il_bytes, 40);
    assert_int_equal(outer->tier, TIER_0);
    assert_false(unstarted->has_start);
    assert_int_equal(unstarted->start_ns, 3000);
    assert_int_equal(stats.all.count, 3);
    assert_int_equal(stats.all.timed, 2);
    assert_int_equal(stats.all.time_ns, 1000);
    assert_int_equal(stats.module_count, 1);
    assert_int_equal(stats.unfinished, 0);
    jit_stats_done(&stats);
    told_fixture_end(&f);
}

/* They are of no module, which is something else than of one that is not known. */
static void test_dynamic(void **state)
{
    (void)state;
    struct told_fixture f;
    struct jit_stats stats;
    told_fixture_begin(&f);
    for (uint64_t i = 1; i <= 3; i++) {
        started(&f, 1000 * i, MAIN, i, "IL_STUB");
        loaded(&f, 1000 * i + 500, MAIN, i, "IL_STUB",
               flags_of(RUNTIME_TIER_OPTIMIZED) | (i < 3 ? RUNTIME_METHOD_DYNAMIC : 0));
    }
    jit_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.module_count, 1);
    assert_string_equal(stats.modules[0].name, "");
    assert_int_equal(stats.modules[0].sum.count, 3);
    assert_int_equal(stats.modules[0].dynamic, 2);
    jit_stats_done(&stats);
    told_fixture_end(&f);
}

/* Precompiled code of a module shows that what is jitted of it was left out then. */
static void test_precompiled(void **state)
{
    (void)state;
    static const struct {
        const char *module;
        uint8_t kind;
        bool is_precompiled;
    } cases[] = { { "App.Web", CODE_R2R, true },
                  { "App.Web", CODE_JIT, false },
                  { "Other", CODE_R2R, false } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct told_fixture f;
        struct jit_stats stats;
        told_fixture_begin(&f);
        module(&f);
        started(&f, 1000, MAIN, 1, "Outer");
        loaded(&f, 2000, MAIN, 1, "Outer", flags_of(RUNTIME_TIER_QUICK));
        uint32_t id = trace_push(&f.b.trace.functions);
        f.b.trace.functions.rows[id] = (struct trace_function){
            .name = trace_add_string(&f.b.trace, "App.Program::Other()"),
            .module = trace_add_string(&f.b.trace, cases[i].module),
            .kind = cases[i].kind,
        };
        jit_stats_init(&stats, &f.b.trace, false, 0, 0);
        assert_int_equal(stats.module_count, 1);
        assert_int_equal(stats.modules[0].is_precompiled, cases[i].is_precompiled);
        assert_int_equal(stats.modules[0].ahead.count, 1);
        jit_stats_done(&stats);
        told_fixture_end(&f);
    }
}

/* What other threads compiled may be in between, but not without limit. */
static void test_cold_parts(void **state)
{
    (void)state;
    enum { METHODS = 66 };
    struct told_fixture f;
    struct jit_stats stats;
    told_fixture_begin(&f);
    for (uint64_t i = 1; i <= METHODS; i++)
        loaded(&f, 1000 + i, i % 2 ? MAIN : TIERING, i, "Method", flags_of(RUNTIME_TIER_QUICK));
    for (uint64_t i = 1; i <= METHODS; i++)
        loaded(&f, 2000 + i, MAIN, i, "Method", flags_of(RUNTIME_TIER_QUICK) | cold);
    jit_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.row_count, METHODS);
    for (size_t i = 0; i < METHODS; i++)
        assert_int_equal(stats.rows[i].native_bytes, i < 2 ? 100 : 200); /* 64 are looked at */
    jit_stats_done(&stats);
    told_fixture_end(&f);
}

/* Who compiled it: the tiering thread by its marks or, without them, by the tier. */
static void test_triggers(void **state)
{
    (void)state;
    struct told_fixture f;
    struct jit_stats stats;
    told_fixture_begin(&f);
    loaded(&f, 1000, MAIN, 1, "A", flags_of(RUNTIME_TIER_1));
    loaded(&f, 1100, MAIN, 2, "B", flags_of(RUNTIME_TIER_1_OSR));
    jit_stats_init(&stats, &f.b.trace, true, 0, 0);
    assert_int_equal(stats.rows[0].trigger, JIT_TRIGGER_BACKGROUND);
    assert_int_equal(stats.rows[1].trigger, JIT_TRIGGER_OSR);
    assert_string_equal(stats.rows[0].name, "App.Program::A()");
    jit_stats_done(&stats);
    told_event(&f, 900, TIERING, JIT_EVENT_BACKGROUND_START, 0);
    loaded(&f, 1200, TIERING, 3, "C", flags_of(RUNTIME_TIER_QUICK));
    told_event(&f, 1300, TIERING, JIT_EVENT_BACKGROUND_STOP, 0);
    loaded(&f, 1400, TIERING, 4, "D", flags_of(RUNTIME_TIER_QUICK));
    jit_stats_init(&stats, &f.b.trace, true, 0, 0);
    assert_int_equal(stats.rows[0].trigger, JIT_TRIGGER_FOREGROUND);
    assert_int_equal(stats.rows[2].trigger, JIT_TRIGGER_BACKGROUND);
    assert_int_equal(stats.rows[3].trigger, JIT_TRIGGER_FOREGROUND);
    assert_int_equal(stats.by_trigger[JIT_TRIGGER_OSR].count, 1);
    jit_stats_done(&stats);
    told_fixture_end(&f);
}

/* Events of no known thread: those of two processes have nothing to do with each other. */
static void test_unknown_threads(void **state)
{
    (void)state;
    struct told_fixture f;
    struct jit_stats stats;
    told_fixture_begin(&f);
    started(&f, 5000, 0, 1, "A");
    told_event(&f, 5100, 0, JIT_EVENT_BACKGROUND_START, 0);
    f.pid = TOLD_PID + 1;
    loaded(&f, 1000, 0, 1, "A", flags_of(RUNTIME_TIER_QUICK));
    jit_stats_init(&stats, &f.b.trace, true, 0, 0);
    assert_int_equal(stats.row_count, 1);
    assert_false(stats.rows[0].has_start);
    assert_int_equal(stats.rows[0].time_ns, 0);
    assert_int_equal(stats.rows[0].trigger, JIT_TRIGGER_FOREGROUND);
    assert_int_equal(stats.unfinished, 1);
    jit_stats_done(&stats);
    told_fixture_end(&f);
}

static void test_missing(void **state)
{
    (void)state;
    struct told_fixture f;
    struct jit_stats stats;
    told_fixture_begin(&f);
    for (uint64_t i = 1; i <= 1000; i++) /* never compiled to the end */
        started(&f, 1000 + i, MAIN, i, "Endless");
    started(&f, 5000, TIERING, 7, "Given up");
    started(&f, 5100, TIERING, 8, "Other");
    loaded(&f, 5200, TIERING, 7, "Given up", flags_of(RUNTIME_TIER_1));
    buffer_u64le(&f.payload, 0);
    told_event(&f, 6000, MAIN, JIT_EVENT_STARTED, 1);
    jit_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_int_equal(stats.row_count, 1);
    assert_int_equal(stats.unfinished, 1001);
    assert_int_equal(stats.malformed, 1);
    jit_stats_done(&stats);
    told_fixture_end(&f);
}

static void test_cut_payloads(void **state)
{
    (void)state;
    struct told_fixture f;
    struct jit_stats stats;
    struct buffer whole;
    told_fixture_begin(&f);
    buffer_init(&whole, 1 << 10);
    put_loaded(&f, 5, "Method", flags_of(RUNTIME_TIER_1));
    buffer_append(&whole, f.payload.data, f.payload.size);
    static const uint16_t ids[] = { JIT_EVENT_LOAD,
                                    JIT_EVENT_LOAD_VERBOSE,
                                    JIT_EVENT_STARTED,
                                    JIT_EVENT_MEMORY,
                                    JIT_EVENT_INLINED,
                                    JIT_EVENT_NOT_INLINED,
                                    152 };
    for (size_t size = 0; size <= whole.size; size++) {
        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
            buffer_clear(&f.payload);
            buffer_append(&f.payload, whole.data, size);
            told_event(&f, 1000 + size * 10 + i, MAIN, ids[i], 2);
        }
    }
    jit_stats_init(&stats, &f.b.trace, false, 0, 0);
    assert_true(stats.malformed > 0 && stats.row_count > 0);
    assert_int_equal(stats.inlined, whole.size + 1);
    jit_stats_done(&stats);
    buffer_done(&whole);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),           cmocka_unit_test(test_precompiled),
        cmocka_unit_test(test_cold_parts),      cmocka_unit_test(test_triggers),
        cmocka_unit_test(test_unknown_threads), cmocka_unit_test(test_missing),
        cmocka_unit_test(test_cut_payloads),    cmocka_unit_test(test_dynamic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
