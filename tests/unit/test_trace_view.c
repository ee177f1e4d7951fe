#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cli/trace_view.h"

#define RUNTIME "Microsoft-Windows-DotNETRuntime"
#define HOSTING "Microsoft.AspNetCore.Hosting"
#define MS      UINT64_C(1000000)

struct seen {
    struct trace_view view;
    struct buffer out;
    uint32_t process, thread;
};

static void setup(struct seen *seen, const bool topics[TRACE_TOPICS])
{
    buffer_init(&seen->out, 1 << 20);
    trace_view_init(&seen->view, topics, 1000 * MS, &seen->out);
    seen->process = trace_builder_process_start(&seen->view.b, 7, 1);
    seen->thread = trace_builder_thread(&seen->view.b, 7, 9, 1);
}

static void teardown(struct seen *seen)
{
    trace_view_done(&seen->view);
    buffer_done(&seen->out);
}

static const char *text(struct seen *seen)
{
    buffer_u8(&seen->out, 0);
    seen->out.size--;
    return (const char *)seen->out.data;
}

struct kind {
    const char *provider, *name;
    uint32_t id, version;
    struct span fields;
};

static void tell(struct seen *seen, const struct kind *kind, uint64_t at_ms, const struct buffer *payload,
                 const uint8_t *activity)
{
    struct trace *t = &seen->view.b.trace;
    uint32_t type =
        trace_builder_event_type(&seen->view.b, &(struct trace_event_type){
                                                    .provider = trace_add_string(t, kind->provider),
                                                    .name = trace_add_string(t, kind->name),
                                                    .event_id = kind->id,
                                                    .version = kind->version,
                                                    .fields = trace_add_span(t, kind->fields),
                                                    .pointer_size = 8,
                                                    .description = EVENT_DESCRIBED_V5,
                                                });
    struct trace_event row = {
        .time_ns = at_ms * MS, .type = type, .process = seen->process, .thread = seen->thread
    };
    assert_true(trace_push_event(t, &row, payload ? buffer_span(payload) : (struct span){ 0 }));
    if (activity)
        trace_push_event_activity(t, span_of(activity, 16), (struct span){ 0 });
    trace_view_event(&seen->view);
}

static void put_text16(struct buffer *out, const char *ascii)
{
    do
        buffer_u16le(out, (uint8_t)*ascii);
    while (*ascii++);
}

static void runtime_event(struct seen *seen, uint32_t id, uint64_t at_ms, const uint32_t *words, size_t count)
{
    struct buffer payload;
    buffer_init(&payload, 256);
    for (size_t i = 0; i < count; i++)
        buffer_u32le(&payload, words[i]);
    buffer_u16le(&payload, 0);
    tell(seen, &(struct kind){ RUNTIME, "", id, 2, { 0 } }, at_ms, &payload, NULL);
    buffer_done(&payload);
}

static void collection(struct seen *seen, uint32_t number, uint32_t generation, uint64_t at_ms)
{
    runtime_event(seen, 9, at_ms, (const uint32_t[]){ 1, number }, 2);
    runtime_event(seen, 8, at_ms, NULL, 0);
    runtime_event(seen, 1, at_ms, (const uint32_t[]){ number, generation, 1, 0 }, 4);
    runtime_event(seen, 2, at_ms + 1, (const uint32_t[]){ number, generation }, 2);
    runtime_event(seen, 7, at_ms + 2, NULL, 0);
    runtime_event(seen, 3, at_ms + 2, NULL, 0);
}

static void test_collections(void **state)
{
    (void)state;
    struct seen seen;
    setup(&seen, (const bool[TRACE_TOPICS]){ [TRACE_GC] = true });
    for (uint32_t number = 1; number <= 1000; number++)
        collection(&seen, number, number % 10 == 0 ? 2 : 0, 10 * number);
    assert_non_null(strstr(text(&seen), "0.011 s  gc        #1 gen 0: paused 2 ms"));
    assert_non_null(strstr(text(&seen), "#1000 gen 2: paused 2 ms"));
    assert_non_null(strstr(text(&seen), "induced"));
    /* what is over is not kept */
    assert_int_equal(seen.view.b.trace.events.count, 1);
    buffer_clear(&seen.out);
    trace_view_summary(&seen.view, 10000 * MS, 3);
    assert_non_null(strstr(
        text(&seen), "collections  1 000: gen 0 900, gen 1 0, gen 2 100; paused 2.00 s in all, mean 2 ms"));
    assert_non_null(strstr(text(&seen), "at least 3 events"));
    teardown(&seen);
}

/* The end of a collection never comes: what waits for it is bounded. */
static void test_collection_without_end(void **state)
{
    (void)state;
    struct seen seen;
    setup(&seen, (const bool[TRACE_TOPICS]){ [TRACE_GC] = true });
    runtime_event(&seen, 1, 1, (const uint32_t[]){ 1, 2, 1, 1 }, 4);
    for (uint32_t number = 2; number < 8000; number++)
        collection(&seen, number, 0, 10 * number);
    assert_true(seen.view.b.trace.events.count < 5000);
    assert_int_equal(seen.view.sums.collections[0], 7998);
    teardown(&seen);
}

static void allocation(struct seen *seen, const char *type, uint64_t bytes, uint64_t at_ms, size_t cut)
{
    struct buffer payload;
    buffer_init(&payload, 4096);
    buffer_u32le(&payload, (uint32_t)bytes);
    buffer_u32le(&payload, 0);
    buffer_u16le(&payload, 0);
    buffer_u64le(&payload, bytes);
    buffer_u64le(&payload, 0x7f00);
    put_text16(&payload, type);
    buffer_u32le(&payload, 0);
    buffer_u64le(&payload, 0x7f10);
    buffer_u64le(&payload, 24);
    if (cut < payload.size)
        payload.size = cut;
    tell(seen, &(struct kind){ RUNTIME, "", 10, 4, { 0 } }, at_ms, &payload, NULL);
    buffer_done(&payload);
}

static void test_allocations(void **state)
{
    (void)state;
    struct seen seen;
    setup(&seen, (const bool[TRACE_TOPICS]){ [TRACE_ALLOC] = true });
    for (unsigned i = 0; i < 3; i++)
        allocation(&seen, "System.String", 1 << 20, 10, SIZE_MAX);
    allocation(&seen, "System.Byte[]", 8 << 20, 20, SIZE_MAX);
    for (size_t cut = 0; cut < 60; cut++) /* however little of it came */
        allocation(&seen, "System.String", 0, 30, cut);
    trace_view_tick(&seen.view, 1001 * MS);
    assert_string_equal(
        text(&seen),
        "    1.001 s  alloc     11.0 MiB: System.Byte[] 8.00 MiB, System.String 3.00 MiB,  0 B\n");
    buffer_clear(&seen.out);
    trace_view_tick(&seen.view, 3000 * MS);
    assert_int_equal(seen.out.size, 0); /* nothing came since */
    trace_view_summary(&seen.view, 3000 * MS, 0);
    assert_non_null(strstr(text(&seen), "allocated    11.0 MiB"));
    assert_int_equal(seen.view.b.trace.events.count, 1);
    teardown(&seen);
}

static void test_exceptions(void **state)
{
    (void)state;
    struct seen seen;
    struct buffer payload;
    setup(&seen, (const bool[TRACE_TOPICS]){ [TRACE_EXCEPTIONS] = true });
    buffer_init(&payload, 4096);
    put_text16(&payload, "Shop.OutOfStock");
    put_text16(&payload, "no\x1b[31m shoes");
    buffer_u64le(&payload, 0);
    buffer_u32le(&payload, 0x80131500);
    buffer_u16le(&payload, 0x10);
    buffer_u16le(&payload, 0);
    const struct kind thrown = { RUNTIME, "", 80, 1, { 0 } };
    tell(&seen, &thrown, 5, &payload, NULL);
    assert_non_null(strstr(text(&seen), "0.005 s  exception Shop.OutOfStock: no"));
    assert_non_null(strstr(text(&seen), "(thread 9)"));
    assert_null(strchr(text(&seen), 0x1b)); /* nothing of the target's drives the terminal */
    payload.size = 3;
    tell(&seen, &thrown, 6, &payload, NULL);
    assert_int_equal(seen.view.thrown.count, 2);
    buffer_done(&payload);
    teardown(&seen);
}

/* i32 count, then for each field: i32 type code, name. */
static struct buffer two_texts(const char *first, const char *second)
{
    enum { STRING = 18 };
    struct buffer fields;
    buffer_init(&fields, 256);
    buffer_u32le(&fields, 2);
    buffer_u32le(&fields, STRING);
    put_text16(&fields, first);
    buffer_u32le(&fields, STRING);
    put_text16(&fields, second);
    return fields;
}

static void test_requests(void **state)
{
    (void)state;
    static const uint8_t one[16] = { 1 }, other[16] = { 2 };
    struct seen seen;
    struct buffer fields = two_texts("method", "path"), payload;
    setup(&seen, (const bool[TRACE_TOPICS]){ [TRACE_HTTP] = true });
    buffer_init(&payload, 256);
    put_text16(&payload, "GET");
    put_text16(&payload, "/orders");
    const struct kind start = { HOSTING, "RequestStart", 3, 0, buffer_span(&fields) };
    const struct kind stop = { HOSTING, "RequestStop", 4, 0, { 0 } };
    tell(&seen, &start, 10, &payload, one);
    tell(&seen, &start, 11, &payload, other);
    tell(&seen, &stop, 30, NULL, one);
    assert_string_equal(text(&seen), "    0.030 s  http      GET /orders  20 ms\n");
    tell(&seen, &stop, 31, NULL, one);  /* ended already */
    tell(&seen, &stop, 31, NULL, NULL); /* nobody's */
    buffer_clear(&seen.out);
    trace_view_summary(&seen.view, 40 * MS, 0);
    assert_non_null(strstr(text(&seen), "requests     1; mean 20 ms, longest 20 ms; 1 still run"));
    assert_int_equal(seen.view.b.trace.event_activities.count, 1);
    buffer_done(&payload);
    buffer_done(&fields);
    teardown(&seen);
}

static void test_too_many_open_requests(void **state)
{
    (void)state;
    struct trace_requests requests = { 0 };
    struct trace_request request = { .text = "GET /" }, ended;
    for (uint32_t i = 0; i < TRACE_REQUESTS_OPEN_MAX + 5; i++) {
        memcpy(request.activity, &i, sizeof i);
        trace_requests_begin(&requests, &request);
    }
    assert_int_equal(requests.count, TRACE_REQUESTS_OPEN_MAX);
    uint8_t first[16] = { 0 };
    assert_false(trace_requests_end(&requests, first, false, 5, &ended));
    assert_false(trace_requests_end(&requests, request.activity, true, 5, &ended));
    assert_true(trace_requests_end(&requests, request.activity, false, 5, &ended));
    trace_requests_done(&requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collections), cmocka_unit_test(test_collection_without_end),
        cmocka_unit_test(test_allocations), cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_requests),    cmocka_unit_test(test_too_many_open_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
