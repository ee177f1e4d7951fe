#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/span_lanes.h"

enum { ROWS_MAX = 4096, PROCESS = 1, THREAD = 2, ID_BYTES = 16 };

/* Ids of activities with their checksums, and the paths they are. */
static const uint8_t request[ID_BYTES] = { 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0x99, 0x9d, 0x59 },
                     other[ID_BYTES] = { 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbf, 0x99, 0x9d, 0x59 };
static const struct span_owner request_owner = { .process = PROCESS, .path = { { 0x11 } } },
                               other_owner = { .process = PROCESS, .path = { { 0x12 } } },
                               thread_owner = { .process = PROCESS, .thread = THREAD };

struct fixture {
    struct span_row rows[ROWS_MAX];
    struct span_table table;
    struct span_lanes lanes;
    uint32_t found[ROWS_MAX];
    size_t count;
};

static struct fixture f;

static void add(const uint8_t *activity, uint64_t start_ns, uint64_t stop_ns)
{
    struct span_row row = { .start_ns = start_ns, .stop_ns = stop_ns, .process = PROCESS };
    if (activity)
        memcpy(row.activity, activity, ID_BYTES);
    else
        row.thread = THREAD;
    row.on_one_thread = !activity;
    f.rows[f.table.count++] = row;
}

static void take(void *user, const struct laned_span *span)
{
    (void)user;
    f.found[f.count++] = span->row;
}

static size_t find(const struct span_owner *owner, uint64_t from_ns, uint64_t to_ns)
{
    f.count = 0;
    span_lanes_each(&f.lanes, owner, from_ns, to_ns, take, NULL);
    return f.count;
}

static int set_up(void **state)
{
    (void)state;
    f.table = (struct span_table){ .rows = f.rows };
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    span_lanes_done(&f.lanes);
    return 0;
}

/* One after the other, told in no order: those that a stretch meets are found, and no others. */
static void test_one_lane(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t start_ns = 100 * (i * 7 % 1000);
        add(request, start_ns, start_ns + 90);
    }
    span_lanes_init(&f.lanes, &f.table);
    assert_int_equal(f.lanes.count, 1000);
    assert_int_equal(f.lanes.left_out, 0);
    for (size_t i = 0; i < f.lanes.count; i++)
        assert_int_equal(f.lanes.rows[i].lane, 0);
    assert_int_equal(find(&request_owner, 500, 510), 1);
    assert_int_equal(f.rows[f.found[0]].start_ns, 500);
    assert_int_equal(find(&request_owner, 590, 600), 0); /* between two */
    assert_int_equal(find(&request_owner, 589, 601), 2);
    assert_int_equal(find(&request_owner, 0, UINT64_MAX), 1000);
    assert_int_equal(find(&request_owner, 99990, UINT64_MAX), 0);
    assert_int_equal(find(&other_owner, 0, UINT64_MAX), 0);
    assert_int_equal(find(&thread_owner, 0, UINT64_MAX), 0);
}

/* A long one does not hide behind the short ones that began in it. */
static void test_long_span(void **state)
{
    (void)state;
    add(request, 10, 100000);
    for (uint64_t i = 0; i < 500; i++)
        add(request, 100 + 100 * i, 150 + 100 * i);
    add(other, 0, 100000);
    add(NULL, 0, 50);
    add(NULL, 20, 30);
    span_lanes_init(&f.lanes, &f.table);
    assert_int_equal(f.lanes.left_out, 0);
    assert_int_equal(find(&request_owner, 60000, 60001), 1);
    assert_int_equal(f.found[0], 0);
    assert_int_equal(find(&request_owner, 50010, 50020), 2);
    assert_int_equal(find(&request_owner, 0, 10), 0);
    assert_int_equal(find(&thread_owner, 25, 26), 2);
    assert_int_equal(find(&thread_owner, 40, 90), 1);
}

/* More at once than there are lanes: those that began last are left out, and counted. */
static void test_limit(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < ROWS_MAX - 1; i++)
        add(request, 1000 + i, 100000 + i);
    add(request, 200000, 200001); /* all lanes are free again */
    span_lanes_init(&f.lanes, &f.table);
    assert_int_equal(f.lanes.left_out, ROWS_MAX - 1 - SPAN_LANES_MAX);
    assert_int_equal(find(&request_owner, 50000, 50001), SPAN_LANES_MAX);
    for (size_t i = 0; i < f.count; i++)
        assert_int_equal(f.found[i], i);
    assert_int_equal(find(&request_owner, 200000, 300000), 1);
}

/* One that takes no time takes no room, and one that nothing is told of has no lane. */
static void test_empty(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * SPAN_LANES_MAX; i++)
        add(request, 1000, 1000);
    add(request, 1000, 2000);
    f.rows[f.table.count++] = (struct span_row){ .start_ns = 1, .stop_ns = 9000, .process = PROCESS };
    span_lanes_init(&f.lanes, &f.table);
    assert_int_equal(f.lanes.left_out, 0);
    assert_int_equal(f.lanes.count, 2 * SPAN_LANES_MAX + 1);
    assert_int_equal(find(&request_owner, 1500, 1600), 1);
}

static void test_none(void **state)
{
    (void)state;
    span_lanes_init(&f.lanes, &f.table);
    assert_int_equal(find(&request_owner, 0, UINT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_lane, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_span, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
