#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "clr/gc_events.h"
#include "clr/gc_watch.h"

enum { START = 1, END = 2, RESTART = 3, SUSPEND = 9, OTHER = 8 };

/* One event; what is over then, by its number, 0: nothing. */
struct step {
    uint32_t id;
    uint64_t time_ns;
    uint32_t number_or_reason, generation, type;
    uint32_t over;
    uint64_t pause_ns;
};

static void play(const struct step *steps, size_t count)
{
    struct gc_watch w = { 0 };
    for (size_t i = 0; i < count; i++) {
        struct buffer payload;
        struct gc_watch_one gc = { 0 };
        buffer_init(&payload, 64);
        buffer_u32le(&payload, steps[i].number_or_reason);
        buffer_u32le(&payload, steps[i].generation);
        buffer_u32le(&payload, 1);
        buffer_u32le(&payload, steps[i].type);
        /* cut short it says nothing, and does no harm */
        struct gc_watch cut = w;
        assert_false(gc_watch_take(&cut, steps[i].id == RESTART ? SUSPEND : steps[i].id, steps[i].time_ns,
                                   span_part(buffer_span(&payload), 0, 3), &gc));
        bool over = gc_watch_take(&w, steps[i].id, steps[i].time_ns, buffer_span(&payload), &gc);
        if (over != (steps[i].over != 0) ||
            (over && (gc.number != steps[i].over || gc.pause_ns != steps[i].pause_ns)))
            fail_msg("step %zu: %d, number %u, paused %u", i, over, gc.number, (unsigned)gc.pause_ns);
        buffer_done(&payload);
    }
    assert_int_equal(w.count, 0);
}

static void test_blocking(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { SUSPEND, 100, 1, 0, 0, 0, 0 },
        { OTHER, 105, 0, 0, 0, 0, 0 },
        { START, 110, 7, 0, 0, 0, 0 },
        { END, 150, 7, 0, 0, 0, 0 },
        { RESTART, 160, 0, 0, 0, 7, 60 },
        /* stopped for something else */
        { SUSPEND, 200, 3, 0, 0, 0, 0 },
        { RESTART, 210, 0, 0, 0, 0, 0 },
        { SUSPEND, 300, 1, 0, 0, 0, 0 },
        { START, 310, 9, 2, 0, 0, 0 },
        { END, 350, 9, 2, 0, 0, 0 },
        { RESTART, 400, 0, 0, 0, 9, 100 },
    };
    play(steps, ARRAY_LEN(steps));
}

static void test_background(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { SUSPEND, 100, 1, 0, 0, 0, 0 },
        { START, 110, 3, 2, 1, 0, 0 },
        { RESTART, 120, 0, 0, 0, 0, 0 },
        /* one of the young in between */
        { SUSPEND, 200, 1, 0, 0, 0, 0 },
        { START, 210, 4, 0, 2, 0, 0 },
        { END, 230, 4, 0, 0, 0, 0 },
        { RESTART, 240, 0, 0, 0, 4, 40 },
        /* its second pause */
        { SUSPEND, 300, 6, 0, 0, 0, 0 },
        { RESTART, 305, 0, 0, 0, 0, 0 },
        { END, 400, 3, 2, 0, 3, 25 },
    };
    play(steps, ARRAY_LEN(steps));
}

static void test_background_that_blocked(void **state)
{
    (void)state;
    static const struct step steps[] = {
        { SUSPEND, 100, 1, 0, 0, 0, 0 },
        { START, 110, 3, 2, 1, 0, 0 },
        { END, 180, 3, 2, 0, 0, 0 },
        { RESTART, 190, 0, 0, 0, 3, 90 },
    };
    play(steps, ARRAY_LEN(steps));
}

/* Ends that were lost do not pile up; an end that nobody began is nothing. */
static void test_losses(void **state)
{
    (void)state;
    struct gc_watch w = { 0 };
    struct gc_watch_one gc;
    for (uint32_t number = 1; number <= 100; number++) {
        uint8_t payload[16] = { (uint8_t)number };
        assert_false(gc_watch_take(&w, START, number, span_of(payload, sizeof payload), &gc));
    }
    assert_int_equal(w.count, GC_WATCH_OPEN_MAX);
    assert_int_equal(w.dropped, 100 - GC_WATCH_OPEN_MAX);
    uint8_t unknown[8] = { 200 };
    assert_false(gc_watch_take(&w, END, 300, span_of(unknown, sizeof unknown), &gc));
    assert_false(gc_watch_take(&w, RESTART, 300, span_of(unknown, 0), &gc));
}

/* What people are shown for each spelling of TraceEvent's. */
static void test_reason_names(void **state)
{
    (void)state;
    for (uint32_t reason = 0; gc_reason_name(reason); reason++) {
        assert_non_null(gc_reason_key(reason));
        assert_string_equal(gc_reason_name_of_key(gc_reason_key(reason)), gc_reason_name(reason));
    }
    assert_string_equal(gc_reason_name_of_key("InducedNotForced"), "induced, not forced");
    assert_string_equal(gc_reason_name_of_key("99"), "99");
    assert_string_equal(gc_reason_name_of_key(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_background_that_blocked),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_reason_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
