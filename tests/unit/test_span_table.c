#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/http_spans.h"
#include "analyse/span_table.h"
#include "analyse/task_spans.h"
#include "told_fixture.h"

enum { THREAD = 10, OTHER = 11, PAYLOAD_MAX = 64 };

static const uint8_t *key(uint8_t number)
{
    static uint8_t bytes[16];
    memset(bytes, number, sizeof bytes);
    return bytes;
}

static void add(struct span_table *table, const char *name, uint64_t start_ns, uint64_t ns)
{
    struct span_row row = { .start_ns = start_ns,
                            .name = intern_cstr(&table->texts, name),
                            .status = SPAN_STATUS_NONE };
    span_table_begin(table, key(1), 1, &row);
    assert_true(span_table_end(table, key(1), 1, start_ns + ns));
}

static void test_groups(void **state)
{
    (void)state;
    struct span_table table;
    struct span_groups groups;
    struct trace t;
    trace_init(&t);
    span_table_init(&table);
    for (uint64_t i = 100; i > 0; i--) /* 1 to 100 ns, in no order */
        add(&table, i % 2 ? "odd" : "even", 1000 * i, i * 7 % 101);
    assert_false(span_table_end(&table, key(9), 1, 5));
    span_table_begin(&table, key(7), 1, &(struct span_row){ .start_ns = 5 });
    span_table_begin(&table, key(7), 1, &(struct span_row){ .start_ns = 6 }); /* the end was lost */
    span_table_begin(&table, key(7), 2, &(struct span_row){ .start_ns = 7 }); /* of another process */
    span_table_seal(&table, &t);
    assert_int_equal(table.count, 100);
    assert_int_equal(table.unfinished, 3);
    assert_int_equal(table.unbegun, 1);
    span_groups_init(&groups, &table);
    assert_int_equal(groups.count, 2);
    assert_true(groups.rows[0].total_ns >= groups.rows[1].total_ns);
    assert_int_equal(groups.rows[0].total_ns + groups.rows[1].total_ns, 5050);
    for (size_t i = 0; i < 2; i++) {
        const struct span_group *g = &groups.rows[i];
        assert_int_equal(g->count, 50);
        uint64_t before = 0;
        for (double share = 0; share <= 1; share += 0.1) {
            uint64_t ns = span_ns(span_group_at(&groups, g, share));
            assert_true(ns >= before);
            before = ns;
        }
    }
    span_groups_done(&groups);
    span_table_done(&table);
    trace_done(&t);
}

/* The nearest rank: of ten, nine last no longer than the ninth. */
static void test_percentiles(void **state)
{
    (void)state;
    static const struct {
        double share;
        uint64_t ns;
    } cases[] = { { 0, 10 }, { 0.1, 10 }, { 0.5, 50 }, { 0.9, 90 }, { 0.91, 100 }, { 1, 100 } };
    struct span_table table;
    struct span_groups groups;
    span_table_init(&table);
    for (uint64_t i = 1; i <= 10; i++)
        add(&table, "one", i, i * 10);
    span_groups_init(&groups, &table);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(span_ns(span_group_at(&groups, &groups.rows[0], cases[i].share)), cases[i].ns);
    span_groups_done(&groups);
    span_table_done(&table);
}

/* Many that come and go, with one that stays. */
static void test_many(void **state)
{
    (void)state;
    struct span_table table;
    span_table_init(&table);
    span_table_begin(&table, key(200), 5, &(struct span_row){ .start_ns = 1 });
    for (uint64_t i = 0; i < 10000; i++)
        add(&table, "x", i, 1);
    assert_true(table.open_count < 5000);
    assert_true(span_table_end(&table, key(200), 5, 10));
    assert_int_equal(table.count, 10001);
    span_table_done(&table);
}

/* Those that share a key end in the order they began, unless it is known when each does. */
static void test_beside(void **state)
{
    (void)state;
    static const struct {
        uint64_t due_ns[3];     /* begun at 10, 20, 30 */
        uint64_t started_ns[3]; /* of those that end at 100, 200, 300 */
    } cases[] = {
        { { 0, 0, 0 }, { 10, 20, 30 } },
        { { 190, 290, 90 }, { 30, 10, 20 } },
        { { 290, 90, 95 }, { 30, 20, 10 } }, /* two were due: the later one ends, the other is late */
        { { 290, 0, 90 }, { 30, 20, 10 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span_table table;
        span_table_init(&table);
        for (uint64_t k = 0; k < 3; k++)
            span_table_begin_beside(
                &table, key(1), 1,
                &(struct span_row){ .start_ns = 10 * (k + 1), .due_ns = cases[i].due_ns[k] });
        for (uint64_t k = 0; k < 3; k++) {
            struct span_row *due = span_table_find_due(&table, key(1), 1, 100 * (k + 1));
            assert_int_equal(due->start_ns, cases[i].started_ns[k]);
            assert_true(span_table_end(&table, key(1), 1, 100 * (k + 1)));
            assert_int_equal(table.rows[k].start_ns, cases[i].started_ns[k]);
        }
        assert_false(span_table_end(&table, key(1), 1, 400));
        assert_int_equal(table.unfinished, 0);
        span_table_done(&table);
    }
}

/* More at once than are kept are given up. */
static void test_beside_many(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    struct span_table table;
    struct trace t;
    trace_init(&t);
    span_table_init(&table);
    for (uint64_t i = 0; i < MANY; i++)
        span_table_begin_beside(&table, key(1), 1, &(struct span_row){ .start_ns = i, .due_ns = i + 10 });
    assert_int_equal(span_table_find_next(&table, key(1), 1, 15)->due_ns, 15);
    size_t ended = 0;
    while (span_table_end(&table, key(1), 1, 10000))
        ended++;
    span_table_seal(&table, &t);
    assert_int_equal(ended + table.unfinished, MANY);
    assert_true(ended > 100);
    span_table_done(&table);
    trace_done(&t);
}

static const uint8_t activity[3][16] = { { 1 }, { 2 }, { 0 } };

static uint32_t described_type(struct told_fixture *f, const char *provider, uint32_t id, struct span fields)
{
    struct trace_event_type type = { .provider = trace_add_string(&f->b.trace, provider),
                                     .name = trace_add_string(&f->b.trace, "Request"),
                                     .event_id = id,
                                     .fields = trace_add_span(&f->b.trace, fields),
                                     .pointer_size = 8 };
    return trace_builder_event_type(&f->b, &type);
}

/* Fields of text, as an event source describes them. */
static void describe(struct buffer *out, const char *const *names, size_t count)
{
    enum { TYPE_TEXT = 18 };
    buffer_u32le(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        buffer_u32le(out, TYPE_TEXT);
        utf16_append(out, names[i]);
        buffer_u16le(out, 0);
    }
}

enum { NO_ACTIVITY = 2 };

static void request(struct told_fixture *f, uint32_t type, uint64_t time_ns, uint32_t tid, unsigned which)
{
    struct trace_event row = { .time_ns = time_ns,
                               .type = type,
                               .process = trace_builder_process_start(&f->b, f->pid, 0),
                               .thread = trace_builder_thread(&f->b, f->pid, tid, 0) };
    trace_push_event(&f->b.trace, &row, buffer_span(&f->payload));
    trace_push_event_activity(&f->b.trace, span_of(activity[which], 16), (struct span){ 0 });
    buffer_clear(&f->payload);
}

static const char HOSTING[] = "Microsoft.AspNetCore.Hosting",
                  KESTREL[] = "Microsoft-AspNetCore-Server-Kestrel";

/* A type of events with texts in it; `fields` has its description afterwards. */
static uint32_t event_type(struct told_fixture *f, struct buffer *fields, const char *provider,
                           uint32_t event_id, const char *const *names, uint32_t count)
{
    buffer_clear(fields);
    describe(fields, names, count);
    return described_type(f, provider, event_id, buffer_span(fields));
}

static void test_http(void **state)
{
    (void)state;
    struct told_fixture f;
    struct http_spans spans;
    struct buffer fields;
    told_fixture_begin(&f);
    buffer_init(&fields, 1 << 10);
    uint32_t begin = event_type(&f, &fields, HOSTING, 3, (const char *const[]){ "method", "path" }, 2);
    uint32_t end = described_type(&f, HOSTING, 4, (struct span){ 0 });
    told_text(&f, "GET");
    told_text(&f, "/orders/12?page=2");
    request(&f, begin, 1000, THREAD, 0);
    told_text(&f, "POST");
    told_text(&f, "/orders");
    request(&f, begin, 1100, OTHER, 1);
    request(&f, end, 1900, THREAD, 1); /* on another thread than it began */
    request(&f, end, 2000, OTHER, 0);
    request(&f, end, 2100, OTHER, 0); /* nothing began */
    http_spans_init(&spans, &f.b.trace, false, 0, 0);
    assert_true(spans.any);
    assert_int_equal(spans.table.count, 2);
    assert_int_equal(spans.table.unbegun, 1);
    assert_string_equal(intern_text(&spans.table.texts, spans.table.rows[0].name), "POST /orders");
    assert_string_equal(intern_text(&spans.table.texts, spans.table.rows[1].name), "GET /orders/12");
    assert_string_equal(intern_text(&spans.table.texts, spans.table.rows[1].group), "GET /orders/{id}");
    assert_string_equal(intern_text(&spans.table.texts, spans.table.rows[1].kind), "server");
    assert_int_equal(span_ns(&spans.table.rows[0]), 800);
    assert_int_equal(span_ns(&spans.table.rows[1]), 1000);
    http_spans_done(&spans);
    buffer_done(&fields);
    told_fixture_end(&f);
}

/* Requests of one connection beyond the tenth have one id; Kestrel numbers them. */
static void test_http_of_one_id(void **state)
{
    (void)state;
    static const char *const paths[] = { "/slow", "/quick" };
    struct told_fixture f;
    struct http_spans spans;
    struct buffer fields;
    told_fixture_begin(&f);
    buffer_init(&fields, 1 << 10);
    uint32_t begin = event_type(&f, &fields, HOSTING, 3, (const char *const[]){ "method", "path" }, 2);
    uint32_t end = described_type(&f, HOSTING, 4, (struct span){ 0 });
    uint32_t served = event_type(&f, &fields, KESTREL, 3, (const char *const[]){ "requestId" }, 1);
    uint32_t done = described_type(&f, KESTREL, 4, buffer_span(&fields));
    for (unsigned i = 0; i < 2; i++) {
        told_text(&f, "GET");
        told_text(&f, paths[i]);
        request(&f, begin, 1000 + 100 * i, THREAD, 0);
        told_text(&f, paths[i]);
        struct trace_event row = { .time_ns = 1010 + 100 * i,
                                   .type = served,
                                   .process = trace_builder_process_start(&f.b, f.pid, 0),
                                   .thread = trace_builder_thread(&f.b, f.pid, THREAD, 0) };
        trace_push_event(&f.b.trace, &row, buffer_span(&f.payload));
        trace_push_event_activity(&f.b.trace, span_of(activity[1], 16), span_of(activity[0], 16));
        buffer_clear(&f.payload);
    }
    for (unsigned i = 0; i < 2; i++) { /* the second one ends first */
        told_text(&f, paths[1 - i]);
        request(&f, done, 1500 + 400 * i, OTHER, 1);
        request(&f, end, 1520 + 400 * i, OTHER, 0);
    }
    http_spans_init(&spans, &f.b.trace, false, 0, 0);
    assert_int_equal(spans.table.count, 2);
    assert_int_equal(spans.table.unfinished + spans.table.unbegun, 0);
    assert_string_equal(intern_text(&spans.table.texts, spans.table.rows[0].name), "GET /quick");
    assert_int_equal(span_ns(&spans.table.rows[0]), 420);
    assert_int_equal(span_ns(&spans.table.rows[1]), 920);
    http_spans_done(&spans);
    buffer_done(&fields);
    told_fixture_end(&f);
}

/* Without activities threads are no good, and Kestrel's numbers are. */
static void test_http_without_activity(void **state)
{
    (void)state;
    struct told_fixture f;
    struct http_spans spans;
    struct buffer fields;
    told_fixture_begin(&f);
    buffer_init(&fields, 1 << 10);
    uint32_t begin = event_type(&f, &fields, HOSTING, 3, (const char *const[]){ "method", "path" }, 2);
    uint32_t end = described_type(&f, HOSTING, 4, (struct span){ 0 });
    const char *const told[] = { "requestId", "method", "path" };
    uint32_t served = event_type(&f, &fields, KESTREL, 3, told, 3);
    uint32_t done = described_type(&f, KESTREL, 4, buffer_span(&fields));
    told_text(&f, "GET");
    told_text(&f, "/orders");
    request(&f, begin, 1000, THREAD, NO_ACTIVITY);
    request(&f, end, 2000, THREAD, NO_ACTIVITY); /* of another one */
    http_spans_init(&spans, &f.b.trace, false, 0, 0);
    assert_int_equal(spans.table.count, 1);
    assert_int_equal(spans.by_thread, 1);
    http_spans_done(&spans);
    for (unsigned i = 0; i < 2; i++) {
        told_text(&f, "number");
        told_text(&f, "GET");
        told_text(&f, "/orders");
        request(&f, i ? done : served, 1010 + 2000 * i, i ? OTHER : THREAD, NO_ACTIVITY);
    }
    http_spans_init(&spans, &f.b.trace, false, 0, 0);
    assert_int_equal(spans.table.count, 1);
    assert_int_equal(span_ns(&spans.table.rows[0]), 2000);
    assert_int_equal(spans.by_thread, 0);
    http_spans_done(&spans);
    buffer_done(&fields);
    told_fixture_end(&f);
}

static void test_http_client(void **state)
{
    (void)state;
    enum { TYPE_TEXT = 18, TYPE_INT = 9 };
    static const struct {
        const char *name;
        uint32_t type;
    } described[] = {
        { "scheme", TYPE_TEXT }, { "host", TYPE_TEXT }, { "port", TYPE_INT }, { "pathAndQuery", TYPE_TEXT }
    };
    struct told_fixture f;
    struct http_spans spans;
    struct buffer fields;
    told_fixture_begin(&f);
    buffer_init(&fields, 1 << 10);
    buffer_u32le(&fields, 4);
    for (size_t i = 0; i < 4; i++) {
        buffer_u32le(&fields, described[i].type);
        utf16_append(&fields, described[i].name);
        buffer_u16le(&fields, 0);
    }
    uint32_t begin = described_type(&f, "System.Net.Http", 1, buffer_span(&fields));
    uint32_t failed = described_type(&f, "System.Net.Http", 3, (struct span){ 0 });
    buffer_clear(&fields);
    buffer_u32le(&fields, 1);
    buffer_u32le(&fields, TYPE_INT);
    utf16_append(&fields, "statusCode");
    buffer_u16le(&fields, 0);
    uint32_t end = described_type(&f, "System.Net.Http", 2, buffer_span(&fields));
    for (unsigned i = 0; i < 2; i++) {
        told_text(&f, "https");
        told_text(&f, "localhost");
        buffer_u32le(&f.payload, i ? 443 : 8443);
        told_text(&f, "/cart?user=1");
        request(&f, begin, 1000 + i, THREAD, i);
    }
    request(&f, failed, 1500, THREAD, 0);
    buffer_u32le(&f.payload, 200);
    request(&f, end, 2000, THREAD, 1);
    buffer_u32le(&f.payload, (uint32_t)-1);
    request(&f, end, 2100, THREAD, 0);
    http_spans_init(&spans, &f.b.trace, false, 0, 0);
    assert_int_equal(spans.table.count, 2);
    const struct span_row *good = &spans.table.rows[0], *bad = &spans.table.rows[1];
    assert_string_equal(intern_text(&spans.table.texts, good->name), "https://localhost/cart");
    assert_string_equal(intern_text(&spans.table.texts, bad->name), "https://localhost:8443/cart");
    assert_string_equal(intern_text(&spans.table.texts, bad->kind), "client");
    assert_true(good->status == 200 && !good->failed);
    assert_true(bad->status == SPAN_STATUS_NONE && bad->failed);
    http_spans_done(&spans);
    buffer_done(&fields);
    told_fixture_end(&f);
}

/* A field of 4 bytes for each name. */
static void describe_numbers(struct buffer *out, const char *const *names, size_t count)
{
    enum { TYPE_INT = 9 };
    buffer_u32le(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        buffer_u32le(out, TYPE_INT);
        utf16_append(out, names[i]);
        buffer_u16le(out, 0);
    }
}

static void task_event(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t id, uint32_t task,
                       uint32_t behavior)
{
    struct buffer fields;
    buffer_init(&fields, 1 << 10);
    describe_numbers(&fields, (const char *const[]){ "TaskID", "Behavior" }, 2);
    uint32_t type = described_type(f, "System.Threading.Tasks.TplEventSource", id, buffer_span(&fields));
    buffer_u32le(&f->payload, task);
    buffer_u32le(&f->payload, behavior);
    request(f, type, time_ns, tid, 0);
    buffer_done(&fields);
}

static void test_tasks(void **state)
{
    (void)state;
    static const char *const kinds[] = { "queued", "wait", "await", "run" };
    static const uint64_t durations[] = { 100, 50, 70, 400 };
    struct told_fixture f;
    struct task_spans spans;
    told_fixture_begin(&f);
    task_event(&f, 1000, THREAD, 7, 5, 0);
    task_event(&f, 1100, OTHER, 8, 5, 0);
    task_event(&f, 1200, THREAD, 10, 5, 1); /* the thread blocks */
    task_event(&f, 1210, OTHER, 10, 5, 2);
    task_event(&f, 1250, THREAD, 11, 5, 0);
    task_event(&f, 1280, OTHER, 11, 5, 0);
    task_event(&f, 1500, OTHER, 9, 5, 0);
    task_event(&f, 1600, OTHER, 9, 6, 0); /* began before */
    task_event(&f, 1700, OTHER, 7, 0, 0); /* no task */
    task_spans_init(&spans, &f.b.trace, false, 0, 0);
    assert_int_equal(spans.table.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(intern_text(&spans.table.texts, spans.table.rows[i].kind), kinds[i]);
        assert_int_equal(span_ns(&spans.table.rows[i]), durations[i]);
    }
    assert_int_equal(spans.table.unbegun, 1);
    assert_int_equal(spans.malformed, 1);
    task_spans_done(&spans);
    told_fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),         cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_beside),
        cmocka_unit_test(test_beside_many),    cmocka_unit_test(test_http),
        cmocka_unit_test(test_http_of_one_id), cmocka_unit_test(test_http_without_activity),
        cmocka_unit_test(test_http_client),    cmocka_unit_test(test_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
