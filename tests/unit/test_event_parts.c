#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/event_parts.h"

static const char file[] = GOLDEN_DIR "/nettrace/primes.nettrace";

struct told {
    uint64_t time_ns;
    uint32_t event_id, tid, payload_bytes;
};

struct seen {
    struct told rows[512];
    size_t count, parts, largest;
    bool ended;
};

static enum import_want all(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    (void)provider;
    (void)event_id;
    return IMPORT_PAYLOADS;
}

static int told_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct told));
}

static bool take(void *user, const struct capture *part, bool is_last, struct error *err)
{
    struct seen *seen = user;
    const struct trace *t = &part->b.trace;
    uint64_t until_ns = 0;
    (void)err;
    for (size_t i = 0; i < seen->count; i++)
        if (seen->rows[i].time_ns > until_ns)
            until_ns = seen->rows[i].time_ns;
    assert_false(seen->ended);
    seen->ended = is_last;
    seen->parts++;
    if (t->events.count - 1 > seen->largest)
        seen->largest = t->events.count - 1;
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *e = &t->events.rows[i];
        assert_true(e->time_ns > until_ns || !seen->count); /* parts come in the order of time */
        assert_true(seen->count < ARRAY_LEN(seen->rows));
        seen->rows[seen->count++] = (struct told){ .time_ns = e->time_ns,
                                                   .event_id = t->event_types.rows[e->type].event_id,
                                                   .tid = t->threads.rows[e->thread].tid,
                                                   .payload_bytes = e->payload_bytes };
    }
    return true;
}

static void see(struct seen *seen, struct import_part *first, size_t events_max)
{
    const struct event_parts parts = {
        .path = file, .wants = all, .events_max = events_max, .part = take, .user = seen
    };
    struct capture c;
    struct error err;
    *first = (struct import_part){ .events_max = events_max };
    assert_true(capture_read(file, &(struct import_options){ .wants = all, .part = first }, &c, &err));
    assert_true(c.b.trace.events.count <= events_max + 1);
    capture_done(&c);
    assert_true(event_parts_each(&parts, first, &err));
    event_course_done(&first->course);
}

/* However many there may be in memory, all are seen, once, in order. */
static void test_all_of_them(void **state)
{
    (void)state;
    struct seen *whole = calloc(1, sizeof *whole), *parts = calloc(1, sizeof *parts);
    struct import_part first;
    assert_non_null(whole);
    assert_non_null(parts);
    see(whole, &first, 1 << 20);
    assert_false(first.overflowed);
    assert_int_equal(whole->parts, 1);
    assert_true(whole->ended && whole->count > 300);
    qsort(whole->rows, whole->count, sizeof *whole->rows, told_compare);
    for (size_t events_max = 20; events_max < 300; events_max += 90) {
        memset(parts, 0, sizeof *parts);
        see(parts, &first, events_max);
        assert_true(first.overflowed && parts->ended);
        assert_true(parts->parts > 1 && parts->largest <= events_max);
        assert_int_equal(parts->count, whole->count);
        qsort(parts->rows, parts->count, sizeof *parts->rows, told_compare);
        assert_memory_equal(parts->rows, whole->rows, whole->count * sizeof *whole->rows);
    }
    free(whole);
    free(parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_of_them) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
