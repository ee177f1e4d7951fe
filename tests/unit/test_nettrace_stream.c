/* Streams with more of everything than a block of the format holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "nettrace_round.h"
#include "render/nettrace_stream.h"
#include "trace/facts.h"

/* A stream into memory, and the one type of its events. */
static uint32_t begin_stream(struct nettrace_stream *s, struct output *out, struct buffer *file)
{
    buffer_init(file, 256 << 20);
    output_over_buffer(out, file);
    nettrace_stream_begin(
        s, &(struct nettrace_stream_head){ .start_ns = 1, .pointer_size = 8, .process_id = 5 }, out);
    return nettrace_stream_add_type(s, &(struct nettrace_stream_type){ .provider = "P", .name = "E" });
}

/* More stacks than ids live between two sequence points. */
static void test_many_stacks(void **state)
{
    (void)state;
    enum { STACKS = 300000 };
    struct nettrace_stream s;
    struct output out;
    struct buffer file;
    struct trace_builder b;
    uint32_t type = begin_stream(&s, &out, &file);
    for (uint64_t i = 0; i < STACKS; i++) {
        nettrace_stream_add_event(&s, &(struct nettrace_stream_event){ .type = type,
                                                                       .stack = nettrace_stream_add_stack(
                                                                           &s, &(uint64_t){ 0x1000 + i }, 1),
                                                                       .time_ns = 10 + i,
                                                                       .thread_id = 7 });
        if (nettrace_stream_wants_point(&s))
            nettrace_stream_add_point(&s, 10 + i, 0);
    }
    assert_true(nettrace_stream_end(&s, NULL));
    assert_true(output_close(&out, NULL));
    import_bytes(&b, buffer_span(&file));
    assert_int_equal(b.trace.events.count, STACKS + 1);
    for (uint32_t i = 1; i < b.trace.events.count; i++) {
        const struct trace_stack *row = &b.trace.stacks.rows[b.trace.events.rows[i].stack];
        assert_int_equal(b.trace.locations.rows[row->location].addr, 0x1000 + i - 1);
    }
    assert_null(trace_fact_value(&b.trace, FACT_NOTES));
    trace_builder_done(&b);
    buffer_done(&file);
}

/* Deep stacks, each of one small event: more bytes than a block of our reader has, and than it keeps. */
static void test_deep_stacks(void **state)
{
    (void)state;
    enum { STACKS = 10000, FRAMES = 1000 };
    static uint64_t frames[FRAMES];
    struct nettrace_stream s;
    struct output out;
    struct buffer file;
    struct trace_builder b;
    uint32_t type = begin_stream(&s, &out, &file);
    for (uint64_t i = 0; i < STACKS; i++) {
        frames[0] = 0x1000 + i;
        uint32_t stack = nettrace_stream_add_stack(&s, frames, FRAMES);
        nettrace_stream_add_event(&s, &(struct nettrace_stream_event){
                                          .type = type, .stack = stack, .time_ns = 10 + i, .thread_id = 7 });
        if (nettrace_stream_wants_point(&s))
            nettrace_stream_add_point(&s, 10 + i, 0);
    }
    assert_true(nettrace_stream_end(&s, NULL));
    assert_true(output_close(&out, NULL));
    assert_true(file.size > 64 << 20);
    import_bytes(&b, buffer_span(&file));
    assert_null(trace_fact_value(&b.trace, FACT_NOTES));
    assert_int_equal(b.trace.events.count, STACKS + 1);
    for (uint32_t i = 1; i < b.trace.events.count; i++) {
        const struct trace_stack *row = &b.trace.stacks.rows[b.trace.events.rows[i].stack];
        assert_int_equal(b.trace.locations.rows[row->location].addr, 0x1000 + i - 1);
    }
    trace_builder_done(&b);
    buffer_done(&file);
}

/* What fits no block is no silent gap. */
static void test_large_type(void **state)
{
    (void)state;
    enum { BYTES = 17 << 20 };
    struct nettrace_stream s;
    struct output out;
    struct buffer file;
    struct error err = { 0 };
    char *name = calloc(BYTES + 1, 1);
    assert_non_null(name);
    memset(name, 'n', BYTES);
    buffer_init(&file, 256 << 20);
    output_over_buffer(&out, &file);
    nettrace_stream_begin(
        &s, &(struct nettrace_stream_head){ .start_ns = 1, .pointer_size = 8, .process_id = 5 }, &out);
    nettrace_stream_add_type(&s, &(struct nettrace_stream_type){ .provider = "P", .name = name });
    assert_false(nettrace_stream_end(&s, &err));
    assert_int_equal(err.kind, ERROR_LIMIT);
    output_close(&out, NULL);
    free(name);
    buffer_done(&file);
}

/* Headers say only what changed: threads, stacks, sizes and activities that come, stay and go. */
static void test_changes(void **state)
{
    (void)state;
    static const uint8_t ids[2][16] = { { 1 }, { 2 } };
    static const struct {
        uint8_t thread, stack, payload, activity, related; /* activities from 1; 0: none */
    } cases[] = { { 7, 1, 0, 0, 0 }, { 7, 1, 0, 1, 0 }, { 7, 0, 3, 1, 2 }, { 8, 0, 3, 0, 2 },
                  { 7, 1, 3, 2, 2 }, { 7, 1, 3, 2, 2 }, { 8, 1, 0, 0, 0 }, { 8, 0, 1, 1, 1 } };
    struct nettrace_stream s;
    struct output out;
    struct buffer file;
    struct trace_builder b;
    buffer_init(&file, 1 << 20);
    output_over_buffer(&out, &file);
    nettrace_stream_begin(
        &s, &(struct nettrace_stream_head){ .start_ns = 1, .pointer_size = 8, .process_id = 5 }, &out);
    uint32_t type =
        nettrace_stream_add_type(&s, &(struct nettrace_stream_type){ .provider = "P", .name = "E" });
    const uint32_t stacks[] = { nettrace_stream_add_stack(&s, NULL, 0),
                                nettrace_stream_add_stack(&s, &(uint64_t){ 0x1000 }, 1) };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct nettrace_stream_event e = { .type = type,
                                           .stack = stacks[cases[i].stack],
                                           .time_ns = 10 + i,
                                           .thread_id = cases[i].thread,
                                           .payload = span_of("abc", cases[i].payload) };
        if (cases[i].activity)
            e.activity = span_of(ids[cases[i].activity - 1], 16);
        if (cases[i].related)
            e.related_activity = span_of(ids[cases[i].related - 1], 16);
        nettrace_stream_add_event(&s, &e);
    }
    assert_true(nettrace_stream_end(&s, NULL));
    assert_true(output_close(&out, NULL));
    import_bytes(&b, buffer_span(&file));
    const struct trace *t = &b.trace;
    assert_int_equal(t->events.count, ARRAY_LEN(cases) + 1);
    assert_int_equal(t->losses.count, 1);
    for (uint32_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct trace_event *e = &t->events.rows[i + 1];
        const struct trace_event_activity *a = trace_event_activity(t, i + 1);
        assert_int_equal(t->threads.rows[e->thread].tid, cases[i].thread);
        assert_int_equal(e->stack >= STACK_ROOTS, cases[i].stack);
        assert_int_equal(e->payload_bytes, cases[i].payload);
        assert_int_equal(a ? a->id[0] : 0, cases[i].activity);
        assert_int_equal(a ? a->related[0] : 0, cases[i].related);
    }
    trace_builder_done(&b);
    buffer_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_stacks),
        cmocka_unit_test(test_deep_stacks),
        cmocka_unit_test(test_large_type),
        cmocka_unit_test(test_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
