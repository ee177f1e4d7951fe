#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/activity_spans.h"
#include "analyse/http_spans.h"
#include "analyse/span_account.h"
#include "analyse/span_lanes.h"
#include "analyse/task_spans.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/provider_names.h"
#include "told_fixture.h"
#include "trace/facts.h"

enum { ONE = 10, TWO = 11, COLLECTOR = 12, ID_BYTES = 16 };

#define MS UINT64_C(1000000)

/* Paths with their checksums: none, 1/1, 1/1/1, 1/2. */
static const uint8_t none[ID_BYTES],
    request[ID_BYTES] = { 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0x99, 0x9d, 0x59 },
    inner[ID_BYTES] = { 0x11, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xa9, 0x9d, 0x59 },
    other[ID_BYTES] = { 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbf, 0x99, 0x9d, 0x59 };

/* An event of a source, with what its payload was made of before. */
static void event_beside(struct told_fixture *f, const char *provider, const char *name, uint32_t id,
                         uint64_t time_ns, uint32_t tid, const uint8_t *activity, struct span related)
{
    struct trace_event_type type = { .provider = trace_add_string(&f->b.trace, provider),
                                     .name = trace_add_string(&f->b.trace, name),
                                     .event_id = id,
                                     .pointer_size = 8 };
    struct trace_event row = { .time_ns = time_ns,
                               .type = trace_builder_event_type(&f->b, &type),
                               .process = trace_builder_process_start(&f->b, f->pid, 0),
                               .thread = trace_builder_thread(&f->b, f->pid, tid, 0) };
    trace_push_event(&f->b.trace, &row, buffer_span(&f->payload));
    if (activity)
        trace_push_event_activity(&f->b.trace, span_of(activity, ID_BYTES), related);
    buffer_clear(&f->payload);
}

static void source_event(struct told_fixture *f, const char *provider, const char *name, uint32_t id,
                         uint64_t time_ns, uint32_t tid, const uint8_t *activity)
{
    event_beside(f, provider, name, id, time_ns, tid, activity, (struct span){ 0 });
}

static void begin(struct told_fixture *f, uint64_t time_ns, uint32_t tid, const uint8_t *activity)
{
    source_event(f, HTTP_SERVED_PROVIDER, "RequestStart", HTTP_SERVED_EVENT_START, time_ns, tid, activity);
}

static void end(struct told_fixture *f, uint64_t time_ns, uint32_t tid, const uint8_t *activity)
{
    source_event(f, HTTP_SERVED_PROVIDER, "RequestStop", HTTP_SERVED_EVENT_STOP, time_ns, tid, activity);
}

static void take_up(struct told_fixture *f, uint64_t time_ns, uint32_t tid, const uint8_t *activity)
{
    buffer_append(&f->payload, activity, ID_BYTES);
    source_event(f, TASKS_PROVIDER, "SetActivityId", TASKS_EVENT_SET_ACTIVITY, time_ns, tid, NULL);
}

static void sample(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint64_t weight)
{
    trace_push_sample(&f->b.trace.samples, time_ns, trace_builder_thread(&f->b, f->pid, tid, 0), STACK_WHOLE,
                      weight, SAMPLE_CPU, 0);
}

/* It leaves the CPU; `giver` is the function that calls the scheduler, NULL: the kernel's are not known. */
static void leave(struct told_fixture *f, uint64_t time_ns, uint32_t tid, const char *giver)
{
    uint32_t functions[3], count = 0;
    const char *const names[] = { "Shop.Order", giver, "schedule" };
    for (unsigned i = 0; i < (giver ? 3 : 1); i++)
        functions[count++] = trace_builder_function(
            &f->b, &(struct trace_function){ .name = trace_add_string(&f->b.trace, names[i]),
                                             .module = trace_add_string(&f->b.trace, "m"),
                                             .kind = i ? CODE_KERNEL : CODE_JIT });
    trace_set_fact(&f->b.trace, FACT_COUNTED_EVENT, "context-switches");
    trace_push_sample(&f->b.trace.samples, time_ns, trace_builder_thread(&f->b, f->pid, tid, 0),
                      trace_builder_named_stack(&f->b, functions, count), 1, SAMPLE_EVENT, 0);
}

static void numbers(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t id,
                    const uint32_t words[4])
{
    for (unsigned i = 0; i < 4; i++)
        buffer_u32le(&f->payload, words[i]);
    told_event(f, time_ns, tid, id, 0);
}

/* A collection with its pause. */
static void collect(struct told_fixture *f, uint64_t from_ns, uint64_t to_ns)
{
    numbers(f, from_ns, COLLECTOR, 9, (const uint32_t[4]){ RUNTIME_SUSPEND_GC });
    numbers(f, from_ns, COLLECTOR, 8, (const uint32_t[4]){ 0 });
    numbers(f, from_ns, COLLECTOR, 1, (const uint32_t[4]){ 1, 0, 0, RUNTIME_GC_BLOCKING });
    numbers(f, to_ns, COLLECTOR, 2, (const uint32_t[4]){ 1, 0 });
    numbers(f, to_ns, COLLECTOR, 7, (const uint32_t[4]){ 0 });
    numbers(f, to_ns, COLLECTOR, 3, (const uint32_t[4]){ 0 });
}

static void check_times(const struct span_account *row, const uint64_t ns[THREAD_STATES])
{
    for (unsigned i = 0; i < THREAD_STATES; i++)
        if (row->times.ns[i] != ns[i])
            fail_msg("state %u: %llu, not %llu", i, (unsigned long long)row->times.ns[i],
                     (unsigned long long)ns[i]);
}

/* The ten microseconds of test_told(), one by one; the samples in them stand for less. */
static void check_parts(const struct span_accounts *accounts, const struct span_row *span)
{
    static const uint64_t expected[10][THREAD_STATES] = {
        [0] = { [THREAD_RAN] = 800, [THREAD_GC] = 200 },
        [1] = { [THREAD_RAN] = 1000 },
        [2] = { [THREAD_BLOCKED] = 1000 },
        [3] = { [THREAD_BLOCKED] = 1000 },
        [4] = { [THREAD_RAN] = 1000 },
        [8] = { [THREAD_RAN] = 550, [THREAD_LOCK] = 400, [THREAD_READY] = 50 },
        [9] = { [THREAD_RAN] = 900, [THREAD_OFF] = 100 },
    };
    struct span_account parts[10];
    span_accounts_parts(accounts, &span, 1, 10, parts);
    for (size_t i = 0; i < 10; i++) {
        check_times(&parts[i], expected[i]);
        assert_int_equal(parts[i].away_ns, i >= 5 && i <= 7 ? 1000 : 0);
    }
}

static void thrown(struct told_fixture *f, uint64_t time_ns, uint16_t flags)
{
    told_text(f, "App.Refused");
    told_text(f, "no");
    buffer_u64le(&f->payload, 0x7f00);
    buffer_u32le(&f->payload, 0x80131537);
    buffer_u16le(&f->payload, flags);
    buffer_u16le(&f->payload, 1);
    told_event(f, time_ns, ONE, 80, 1);
}

/* One exception on its way through awaits and a `throw;` counts once, as in exception_stats. */
static void test_thrown_again(void **state)
{
    (void)state;
    static const char *const thrower[] = { "App.Shop::Pay()", NULL };
    static const char *const awaits[] = { "App.Shop::Buy()",
                                          "System.Runtime.ExceptionServices.ExceptionDispatchInfo::Throw()",
                                          NULL };
    enum { RETHROWN = 4 };
    struct told_fixture f;
    struct http_spans spans;
    struct span_accounts accounts;
    told_fixture_begin(&f);
    take_up(&f, 1000, ONE, request);
    begin(&f, 1000, ONE, request);
    f.stack = told_stack(&f, "app", thrower);
    thrown(&f, 2000, 16);
    f.stack = told_stack(&f, "System.Private.CoreLib", awaits);
    thrown(&f, 3000, 16);
    thrown(&f, 4000, 16);
    f.stack = 0;
    thrown(&f, 5000, 16 | RETHROWN);
    end(&f, 6000, ONE, request);
    http_spans_init(&spans, &f.b.trace, false, 0, 0);
    span_accounts_init(&accounts, &spans.table, &f.b.trace);
    assert_int_equal(accounts.count, 1);
    assert_int_equal(accounts.rows[0].times.exceptions, 1);
    span_accounts_done(&accounts);
    http_spans_done(&spans);
    told_fixture_end(&f);
}

/* One thread works, is away, works; nobody does; another one goes on, in an inner activity. */
static void test_told(void **state)
{
    (void)state;
    struct told_fixture f;
    struct http_spans spans;
    struct span_accounts accounts;
    told_fixture_begin(&f);
    told_asked(&f, RUNTIME_KEYWORD_GC, 4, 1, 20000);
    take_up(&f, 1000, ONE, request);
    begin(&f, 1000, ONE, request);
    collect(&f, 1200, 1400);
    sample(&f, 1300, ONE, 100); /* in the collection */
    sample(&f, 1500, ONE, 100);
    leave(&f, 3000, ONE, "futex_wait_queue");
    told_text(&f, "E");
    told_event(&f, 5000, ONE, 80, 1);
    take_up(&f, 6000, ONE, none);
    take_up(&f, 9000, TWO, inner);
    numbers(&f, 9200, TWO, 81, (const uint32_t[4]){ 0 });
    leave(&f, 9500, TWO, "exit_to_user_mode_loop");
    numbers(&f, 9900, TWO, 91, (const uint32_t[4]){ 0 });
    leave(&f, 9950, TWO, "__x64_sys_sched_yield");
    take_up(&f, 10000, TWO, request);
    leave(&f, 10100, TWO, NULL);
    sample(&f, 10200, TWO, 100);
    end(&f, 11000, TWO, request);
    take_up(&f, 11000, TWO, none);
    collect(&f, 11500, 11600); /* behind it */
    sample(&f, 12000, TWO, 5000);
    http_spans_init(&spans, &f.b.trace, false, 0, 0);
    span_accounts_init(&accounts, &spans.table, &f.b.trace);
    assert_int_equal(accounts.count, 1);
    const struct span_account *row = &accounts.rows[0];
    check_times(row, (const uint64_t[THREAD_STATES]){ [THREAD_RAN] = 1800 + 1000 + 500 + 50 + 100 + 800,
                                                      [THREAD_BLOCKED] = 2000,
                                                      [THREAD_LOCK] = 400,
                                                      [THREAD_READY] = 50,
                                                      [THREAD_OFF] = 100,
                                                      [THREAD_GC] = 200 });
    assert_int_equal(row->away_ns, 3000);
    assert_int_equal(row->unknown_ns, 0);
    assert_int_equal(row->times.sampled_ns, 200);
    assert_int_equal(row->times.exceptions, 1);
    assert_int_equal(row->collections, 1);
    assert_int_equal(row->stretches, 3);
    assert_int_equal(row->known[SPAN_THREADS_TOLD], 1);
    assert_true(accounts.has_cpu && accounts.has_switches && accounts.has_locks);
    assert_false(accounts.has_allocations);
    check_parts(&accounts, &spans.table.rows[0]);
    span_accounts_done(&accounts);
    http_spans_done(&spans);
    told_fixture_end(&f);
}

enum { PARTS = 10 };

/* The one request of a fixture that has told all it has to tell: as a whole, and in equal parts. */
static void only_account_in_parts(struct told_fixture *f, struct span_account *whole,
                                  struct span_account parts[PARTS])
{
    struct http_spans spans;
    struct span_accounts accounts;
    http_spans_init(&spans, &f->b.trace, false, 0, 0);
    span_accounts_init(&accounts, &spans.table, &f->b.trace);
    assert_int_equal(accounts.count, 1);
    const struct span_row *span = &spans.table.rows[0];
    span_accounts_parts(&accounts, &span, 1, PARTS, parts);
    *whole = accounts.rows[0];
    span_accounts_done(&accounts);
    http_spans_done(&spans);
}

/* The CPU was taken from it, and a sample later it has it: the sample stands for the time before it. */
static void test_course(void **state)
{
    (void)state;
    struct told_fixture f;
    struct span_account whole, parts[PARTS];
    told_fixture_begin(&f);
    take_up(&f, 10000, ONE, request);
    begin(&f, 10000, ONE, request);
    leave(&f, 11000, ONE, "exit_to_user_mode_loop");
    sample(&f, 19000, ONE, 4000);
    end(&f, 20000, ONE, request);
    take_up(&f, 20000, ONE, none);
    only_account_in_parts(&f, &whole, parts);
    for (size_t i = 0; i < PARTS; i++)
        check_times(&parts[i], i == 0 || i >= 6 ? (const uint64_t[THREAD_STATES]){ [THREAD_RAN] = 1000 }
                                                : (const uint64_t[THREAD_STATES]){ [THREAD_READY] = 1000 });
    told_fixture_end(&f);
}

/* Samples come each millisecond; for 30 ms of its life there is none, and no word of a switch. */
static void test_lost_switch(void **state)
{
    (void)state;
    struct told_fixture f;
    struct span_account whole, parts[PARTS];
    told_fixture_begin(&f);
    take_up(&f, 10 * MS, ONE, request);
    begin(&f, 10 * MS, ONE, request);
    leave(&f, 11 * MS, ONE, "futex_wait_queue");
    sample(&f, 20 * MS, ONE, 1 * MS);
    sample(&f, 50 * MS, ONE, 1 * MS);
    end(&f, 60 * MS, ONE, request);
    take_up(&f, 60 * MS, ONE, none);
    only_account_in_parts(&f, &whole, parts);
    check_times(&whole, (const uint64_t[THREAD_STATES]){
                            [THREAD_RAN] = 11 * MS, [THREAD_BLOCKED] = 9 * MS, [THREAD_UNKNOWN] = 30 * MS });
    check_times(&parts[9], (const uint64_t[THREAD_STATES]){ [THREAD_RAN] = 5 * MS });
    check_times(&parts[4], (const uint64_t[THREAD_STATES]){ [THREAD_UNKNOWN] = 5 * MS });
    told_fixture_end(&f);
}

static struct span_account only_account(struct told_fixture *f)
{
    struct span_account whole, parts[PARTS];
    only_account_in_parts(f, &whole, parts);
    return whole;
}

/* Between events of the same activity its thread is assumed to be in it; samples of the CPU say it ran. */
static void test_assumed(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    begin(&f, 1000, ONE, request);
    sample(&f, 2000, ONE, 1500);
    source_event(&f, "Shop", "Paid", 1, 4000, ONE, request);
    source_event(&f, "Shop", "Paid", 1, 6000, ONE, other);
    end(&f, 9000, ONE, request);
    struct span_account row = only_account(&f);
    check_times(&row, (const uint64_t[THREAD_STATES]){ [THREAD_RAN] = 1500, [THREAD_UNKNOWN] = 1500 });
    assert_int_equal(row.unknown_ns, 5000);
    assert_int_equal(row.away_ns, 0);
    assert_int_equal(row.known[SPAN_THREADS_ASSUMED], 1);
    told_fixture_end(&f);
}

/* Two threads at once: what is not known of both is time of the request once. */
static void test_unknown_of_several(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    told_asked(&f, RUNTIME_KEYWORD_GC, 4, 1, 20000);
    take_up(&f, 10000, ONE, request);
    begin(&f, 10000, ONE, request);
    take_up(&f, 12000, TWO, request);
    collect(&f, 14000, 15000);
    sample(&f, 16000, ONE, 2000);
    sample(&f, 17000, TWO, 1000);
    take_up(&f, 18000, TWO, none);
    end(&f, 20000, ONE, request);
    take_up(&f, 20000, ONE, none);
    struct span_account row = only_account(&f); /* of 14 us of threads' time, and 9 of its own */
    check_times(&row, (const uint64_t[THREAD_STATES]){
                          [THREAD_RAN] = 3000, [THREAD_GC] = 2000, [THREAD_UNKNOWN] = 9000 * 11 / 14 });
    told_fixture_end(&f);
}

/* Of one thread it is known, so that nothing is unknown of the request's time but when both are. */
static void test_known_of_one(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    leave(&f, 9 * MS, TWO, "futex_wait_queue");
    take_up(&f, 10 * MS, ONE, request);
    begin(&f, 10 * MS, ONE, request);
    sample(&f, 20 * MS, ONE, 1 * MS);
    sample(&f, 55 * MS, ONE, 1 * MS); /* that it left the CPU was lost */
    take_up(&f, 30 * MS, TWO, request);
    leave(&f, 30 * MS, TWO, "futex_wait_queue");
    take_up(&f, 70 * MS, TWO, none);
    end(&f, 70 * MS, ONE, request);
    take_up(&f, 70 * MS, ONE, none);
    struct span_account row = only_account(&f);
    check_times(&row, (const uint64_t[THREAD_STATES]){
                          [THREAD_RAN] = 25 * MS, [THREAD_BLOCKED] = 40 * MS, [THREAD_UNKNOWN] = 10 * MS });
    told_fixture_end(&f);
}

static void test_unknown(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    begin(&f, 1000, ONE, request);
    sample(&f, 2000, ONE, 1000);
    end(&f, 9000, TWO, request);
    struct span_account row = only_account(&f);
    check_times(&row, (const uint64_t[THREAD_STATES]){ 0 });
    assert_int_equal(row.unknown_ns, 8000);
    assert_int_equal(row.known[SPAN_THREADS_UNKNOWN], 1);
    told_fixture_end(&f);
}

/* Without activities a request is known by its thread. */
static void test_by_thread(void **state)
{
    (void)state;
    struct told_fixture f;
    told_fixture_begin(&f);
    begin(&f, 1000, ONE, NULL);
    sample(&f, 2000, ONE, 1000);
    sample(&f, 3000, TWO, 1000);
    end(&f, 9000, ONE, NULL);
    struct span_account row = only_account(&f);
    check_times(&row, (const uint64_t[THREAD_STATES]){ [THREAD_RAN] = 1000, [THREAD_UNKNOWN] = 7000 });
    assert_int_equal(row.known[SPAN_THREADS_ASSUMED], 1);
    told_fixture_end(&f);
}

/* What samples say a thread ran is taken off what was taken for waiting, and never more than there is. */
static void test_settle(void **state)
{
    (void)state;
    struct thread_times times = { .ns = { [THREAD_RAN] = 100, [THREAD_BLOCKED] = 300, [THREAD_READY] = 100 },
                                  .sampled_ns = 200 };
    thread_times_settle(&times);
    assert_int_equal(times.ns[THREAD_RAN], 200);
    assert_int_equal(times.ns[THREAD_BLOCKED], 225);
    assert_int_equal(times.ns[THREAD_READY], 75);
    times.sampled_ns = 10000;
    thread_times_settle(&times);
    assert_int_equal(times.ns[THREAD_RAN], 500);
    assert_int_equal(times.ns[THREAD_BLOCKED] + times.ns[THREAD_READY], 0);
    times.sampled_ns = 0;
    thread_times_settle(&times);
    assert_int_equal(times.ns[THREAD_RAN], 500);
}

/* Names say what an activity was begun in; an event that shares another one's activity is in it. */
static void test_activities(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t ns;
    } expected[] = { { "Shop/Order > Shop/Pay", 600 },
                     { "Shop/Order > Shop/Log", 100 },
                     { "Shop/Order", 1000 },
                     { "Shop/Log", 100 },
                     { "Shop/Log", 250 } };
    uint64_t by_thread;
    struct told_fixture f;
    struct span_table table;
    told_fixture_begin(&f);
    source_event(&f, "Shop", "OrderStart", 1, 1000, ONE, request);
    source_event(&f, "Shop", "PayStart", 3, 1100, ONE, inner);
    source_event(&f, "Shop", "PayStop", 4, 1700, TWO, inner);
    source_event(&f, "Shop", "LogStart", 5, 1800, TWO, request);
    source_event(&f, "Shop", "LogStop", 6, 1900, TWO, request);
    source_event(&f, "Shop", "Restarted", 7, 1900, TWO, request);
    source_event(&f, "Shop", "OrderStop", 2, 2000, TWO, request);
    source_event(&f, "Shop", "OrderStop", 2, 2100, TWO, other); /* began before */
    source_event(&f, "Shop", "LogStart", 5, 2200, TWO, none);   /* in none: each on its thread */
    source_event(&f, "Shop", "LogStart", 5, 2250, ONE, none);
    source_event(&f, "Shop", "LogStop", 6, 2300, TWO, none);
    source_event(&f, "Shop", "LogStop", 6, 2500, ONE, NULL);
    source_event(&f, "Shop", "LogStart", 5, 2600, ONE, NULL);
    span_table_init(&table);
    assert_true(activity_spans_add(&table, &f.b.trace, 0, 0, &by_thread));
    span_table_seal(&table, &f.b.trace);
    assert_int_equal(table.count, ARRAY_LEN(expected));
    for (size_t i = 0; i < table.count; i++) {
        assert_string_equal(intern_text(&table.texts, table.rows[i].name), expected[i].name);
        assert_string_equal(intern_text(&table.texts, table.rows[i].kind), "activity");
        assert_int_equal(span_ns(&table.rows[i]), expected[i].ns);
    }
    assert_int_equal(table.unbegun, 1);
    assert_int_equal(table.unfinished, 1);
    assert_int_equal(by_thread, 3);
    for (size_t i = 0; i < table.count; i++)
        assert_int_equal(table.rows[i].on_one_thread, i >= 3);
    span_table_done(&table);
    told_fixture_end(&f);
}

/* An activity's end can have another name, if it has no begin of its own. */
static void test_other_names(void **state)
{
    (void)state;
    uint64_t by_thread;
    struct told_fixture f;
    struct span_table table;
    told_fixture_begin(&f);
    source_event(&f, "Shop", "OrderStart", 1, 1000, ONE, request);
    source_event(&f, "Shop", "PackStart", 2, 1100, ONE, inner);
    source_event(&f, "Shop", "LogStop", 6, 1200, ONE, inner); /* began before */
    source_event(&f, "Bank", "PaidStop", 7, 1300, ONE, inner);
    source_event(&f, "Shop", "ShippedStop", 3, 1400, TWO, inner);
    source_event(&f, "Shop", "LogStart", 5, 1500, TWO, other);
    source_event(&f, "Shop", "OrderStop", 4, 2000, TWO, request);
    span_table_init(&table);
    activity_spans_add(&table, &f.b.trace, 0, 0, &by_thread);
    span_table_seal(&table, &f.b.trace);
    assert_int_equal(table.count, 2);
    assert_string_equal(intern_text(&table.texts, table.rows[0].name), "Shop/Order > Shop/Pack");
    assert_int_equal(span_ns(&table.rows[0]), 300);
    assert_int_equal(span_ns(&table.rows[1]), 1000);
    assert_int_equal(table.unbegun, 2);
    assert_int_equal(table.unfinished, 1);
    span_table_done(&table);
    told_fixture_end(&f);
}

/* An id of three bytes and their checksum. */
static void put_id(uint32_t three, uint8_t out[ID_BYTES])
{
    uint32_t words[4] = { three, 0, 0, three + 0x599d99ad };
    for (unsigned i = 0; i < ID_BYTES; i++)
        out[i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

/*
 * .NET 10 leaves the number out of the paths of a twelfth, and so they have one id; what is begun in them
 * looks like a sixteenth. The begins tell.
 */
static void test_told_parents(void **state)
{
    (void)state;
    static const char *const expected[] = { "Shop/Conn", "Shop/Conn > Shop/Order",
                                            "Shop/Conn > Shop/Order > Shop/Pay", "Shop/Conn > Shop/Query",
                                            "Shop/Conn > Shop/Query > Shop/Pay" };
    static const char *const names[] = { "Shop/Conn", "Order", "Query" };
    uint8_t conn[ID_BYTES], late[ID_BYTES], within[ID_BYTES];
    struct told_fixture f;
    struct task_spans spans;
    struct span_accounts accounts;
    put_id(0x11, conn);
    put_id(0xc011, late);
    put_id(0x10c011, within);
    const struct span in_conn = span_of(conn, ID_BYTES), in_late = span_of(late, ID_BYTES);
    told_fixture_begin(&f);
    source_event(&f, "Shop", "ConnStart", 1, 1000, ONE, conn);
    take_up(&f, 1000, ONE, conn);
    for (uint32_t i = 1; i <= 2; i++) {
        char start[32], stop[32];
        snprintf(start, sizeof start, "%sStart", names[i]);
        snprintf(stop, sizeof stop, "%sStop", names[i]);
        event_beside(&f, "Shop", start, 10 * i, 1000 + i * 100, ONE, late, in_conn);
        take_up(&f, 1000 + i * 100, ONE, late);
        event_beside(&f, "Shop", "PayStart", 5, 1010 + i * 100, ONE, within, in_late);
        take_up(&f, 1010 + i * 100, ONE, within);
        source_event(&f, "Shop", "PayStop", 6, 1060 + i * 100, ONE, within);
        take_up(&f, 1060 + i * 100, ONE, late);
        source_event(&f, "Shop", stop, 10 * i + 1, 1090 + i * 100, ONE, late);
        take_up(&f, 1090 + i * 100, ONE, conn);
    }
    source_event(&f, "Shop", "ConnStop", 2, 1300, ONE, conn);
    take_up(&f, 1300, ONE, none);
    task_spans_init(&spans, &f.b.trace, false, 0, 0);
    span_accounts_init(&accounts, &spans.table, &f.b.trace);
    assert_int_equal(spans.table.count, ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const char *name = intern_text(&spans.table.texts, spans.table.rows[i].name);
        bool found = false;
        for (size_t k = 0; k < ARRAY_LEN(expected); k++)
            found |= strcmp(name, expected[k]) == 0;
        if (!found)
            fail_msg("there is no %s", name);
        assert_int_equal(accounts.rows[i].away_ns, 0); /* a thread was in it from its begin to its end */
    }
    span_accounts_done(&accounts);
    task_spans_done(&spans);
    told_fixture_end(&f);
}

/* An event of a DiagnosticSource's, which describes itself; `named` is its second field. */
static void diagnostic_event(struct told_fixture *f, const char *event, const char *named, const char *name,
                             uint64_t time_ns, const uint8_t *activity)
{
    enum { TEXT16 = 18 };
    struct buffer fields;
    buffer_init(&fields, 256);
    buffer_u32le(&fields, 2);
    buffer_u32le(&fields, TEXT16);
    utf16_append(&fields, "SourceName");
    buffer_u16le(&fields, 0);
    buffer_u32le(&fields, TEXT16);
    utf16_append(&fields, named);
    buffer_u16le(&fields, 0);
    struct trace_event_type type = { .provider = trace_add_string(&f->b.trace, DIAGNOSTIC_SOURCE_PROVIDER),
                                     .name = trace_add_string(&f->b.trace, event),
                                     .fields = trace_add_span(&f->b.trace, buffer_span(&fields)),
                                     .event_id = (uint32_t)strlen(event) + (uint32_t)strlen(named),
                                     .pointer_size = 8 };
    told_text(f, "Shop.Web");
    told_text(f, name);
    struct trace_event row = { .time_ns = time_ns,
                               .type = trace_builder_event_type(&f->b, &type),
                               .process = trace_builder_process_start(&f->b, f->pid, 0),
                               .thread = trace_builder_thread(&f->b, f->pid, ONE, 0) };
    trace_push_event(&f->b.trace, &row, buffer_span(&f->payload));
    trace_push_event_activity(&f->b.trace, span_of(activity, ID_BYTES), (struct span){ 0 });
    buffer_clear(&f->payload);
    buffer_done(&fields);
}

/* They are called what the program calls them, not by the provider that tells of all of them. */
static void test_diagnostic_sources(void **state)
{
    (void)state;
    static const char *const expected[] = { "Shop.Web/order > Shop.Web/pay", "Shop.Web/order",
                                            "Shop.Web/Out" };
    struct told_fixture f;
    struct span_table table;
    uint64_t by_thread;
    told_fixture_begin(&f);
    diagnostic_event(&f, "ActivityStart", "ActivityName", "order", 1000, request);
    diagnostic_event(&f, "ActivityStart", "ActivityName", "pay", 1100, inner);
    diagnostic_event(&f, "ActivityStop", "ActivityName", "pay", 1200, inner);
    diagnostic_event(&f, "ActivityStop", "ActivityName", "order", 1300, request);
    diagnostic_event(&f, "Activity1Start", "EventName", "Out.Start", 2000, other);
    diagnostic_event(&f, "Activity1Stop", "EventName", "Out.Stop", 2100, other);
    span_table_init(&table);
    assert_true(activity_spans_add(&table, &f.b.trace, 0, 0, &by_thread));
    span_table_seal(&table, &f.b.trace);
    assert_int_equal(table.count, ARRAY_LEN(expected));
    for (size_t i = 0; i < table.count; i++)
        assert_string_equal(intern_text(&table.texts, table.rows[i].name), expected[i]);
    assert_int_equal(table.unbegun + table.unfinished, 0);
    span_table_done(&table);
    told_fixture_end(&f);
}

/* More of one activity at once than there are lanes: those left out are counted, and not known. */
static void test_limit(void **state)
{
    (void)state;
    enum { SPANS = SPAN_LANES_MAX + 10 };
    struct told_fixture f;
    struct span_table table;
    uint64_t by_thread;
    struct span_accounts accounts;
    char name[32];
    told_fixture_begin(&f);
    take_up(&f, 500, ONE, request);
    for (unsigned i = 0; i < SPANS; i++) {
        snprintf(name, sizeof name, "Order%uStart", i);
        source_event(&f, "Shop", name, 2 * i + 1, 1000 + i, ONE, request);
        snprintf(name, sizeof name, "Order%uStop", i);
        source_event(&f, "Shop", name, 2 * i + 2, 9000 + i, ONE, request);
    }
    span_table_init(&table);
    assert_true(activity_spans_add(&table, &f.b.trace, 0, 0, &by_thread));
    span_table_seal(&table, &f.b.trace);
    span_accounts_init(&accounts, &table, &f.b.trace);
    assert_int_equal(accounts.count, SPANS);
    assert_int_equal(accounts.left_out, 10);
    assert_int_equal(accounts.total.known[SPAN_THREADS_TOLD], SPAN_LANES_MAX);
    assert_int_equal(accounts.total.known[SPAN_THREADS_UNKNOWN], 10);
    assert_int_equal(accounts.total.unknown_ns, 10 * 8000);
    assert_int_equal(accounts.rows[0].stretches, 1);
    assert_int_equal(accounts.rows[SPANS - 1].stretches, 0);
    span_accounts_done(&accounts);
    span_table_done(&table);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_thrown_again),
        cmocka_unit_test(test_course),
        cmocka_unit_test(test_lost_switch),
        cmocka_unit_test(test_assumed),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_unknown_of_several),
        cmocka_unit_test(test_known_of_one),
        cmocka_unit_test(test_by_thread),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_activities),
        cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_told_parents),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_diagnostic_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
