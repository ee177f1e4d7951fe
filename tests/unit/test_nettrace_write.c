/* What is written as a nettrace file is what is read from it again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "import/nettrace_import.h"
#include "render/nettrace.h"
#include "render/nettrace_stream.h"
#include "trace/facts.h"

static void import_bytes(struct trace_builder *b, struct span file)
{
    static const struct import_options everything;
    struct byte_stream stream;
    struct error err;
    trace_builder_init(b, 64);
    byte_stream_over(&stream, file, 1 << 20);
    if (!nettrace_import(&stream, &everything, b, &err))
        fail_msg("%s", err.what);
    byte_stream_close(&stream);
}

static void write_trace(const struct trace *t, struct buffer *file)
{
    struct output out;
    struct error err;
    buffer_init(file, 64 << 20);
    output_over_buffer(&out, file);
    if (!nettrace_write(t, &out, &err))
        fail_msg("%s", err.what);
    assert_true(output_close(&out, &err));
}

static const char *frame_name(const struct trace *t, uint32_t stack)
{
    const struct trace_location *row = &t->locations.rows[t->stacks.rows[stack].location];
    return trace_string(t, t->functions.rows[row->function].name);
}

static void check_stacks(const struct trace *a, uint32_t x, const struct trace *b, uint32_t y)
{
    for (; x >= STACK_ROOTS && y >= STACK_ROOTS; x = a->stacks.rows[x].parent, y = b->stacks.rows[y].parent)
        assert_string_equal(frame_name(a, x), frame_name(b, y));
    assert_int_equal(x, y);
}

static void check_events(const struct trace *a, const struct trace *b)
{
    size_t before = 0;
    for (size_t i = 1, k = 1; i < a->events.count; i++, k++) {
        const struct trace_event *x = &a->events.rows[i], *y = NULL;
        assert_true(x->time_ns >= before);
        before = x->time_ns;
        assert_true(k < b->events.count);
        y = &b->events.rows[k];
        const struct trace_event_type *p = &a->event_types.rows[x->type], *q = &b->event_types.rows[y->type];
        assert_int_equal(x->time_ns, y->time_ns);
        assert_string_equal(trace_string(a, p->provider), trace_string(b, q->provider));
        assert_int_equal(p->event_id, q->event_id);
        assert_int_equal(p->version, q->version);
        assert_int_equal(p->keywords, q->keywords);
        assert_int_equal(p->level, q->level);
        assert_true(span_equals(trace_event_payload(a, x), trace_event_payload(b, y)));
        assert_int_equal(a->threads.rows[x->thread].tid, b->threads.rows[y->thread].tid);
        check_stacks(a, x->stack, b, y->stack);
    }
}

/* A file of a runtime is written again; its events are sorted by time then. */
static void test_again(void **state)
{
    (void)state;
    static uint8_t bytes[128 << 10];
    struct trace_builder first, second, third;
    struct buffer once, twice;
    FILE *file = fopen(GOLDEN_DIR "/nettrace/primes.nettrace", "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    import_bytes(&first, span_of(bytes, size));
    write_trace(&first.trace, &once);
    import_bytes(&second, buffer_span(&once));
    write_trace(&second.trace, &twice);
    import_bytes(&third, buffer_span(&twice));
    assert_true(second.trace.complete);
    assert_int_equal(second.trace.samples.count, 150);
    for (size_t i = 0; i < 150; i++) {
        assert_int_equal(first.trace.samples.time_ns[i], second.trace.samples.time_ns[i]);
        assert_int_equal(first.trace.samples.weight[i], second.trace.samples.weight[i]);
        check_stacks(&first.trace, first.trace.samples.stack[i], &second.trace,
                     second.trace.samples.stack[i]);
    }
    uint64_t lost[2] = { 0 };
    for (size_t i = 1; i < first.trace.losses.count; i++)
        lost[0] += first.trace.losses.rows[i].count;
    for (size_t i = 1; i < second.trace.losses.count; i++)
        lost[1] += second.trace.losses.rows[i].count;
    assert_int_equal(lost[0], lost[1]);
    check_events(&second.trace, &third.trace);
    trace_builder_done(&first);
    trace_builder_done(&second);
    trace_builder_done(&third);
    buffer_done(&once);
    buffer_done(&twice);
}

static uint32_t add_function(struct trace_builder *b, const char *name, const char *module,
                             enum code_kind kind)
{
    return trace_builder_function(b, &(struct trace_function){ .name = trace_add_string(&b->trace, name),
                                                               .module = trace_add_string(&b->trace, module),
                                                               .kind = (uint8_t)kind });
}

/* Samples of a CPU: who did not run between two of them is said to be elsewhere, and only then. */
static void test_cpu_samples(void **state)
{
    (void)state;
    struct trace_builder b, read;
    struct buffer file;
    trace_builder_init(&b, 64);
    uint32_t thread = trace_builder_thread(&b, 10, 11, 1);
    const uint32_t functions[] = { add_function(&b, "_start", "libc.so.6", CODE_NATIVE),
                                   add_function(&b, "Ns.Type`1[System.__Canon]::Run(int32)", "App", CODE_JIT),
                                   add_function(&b, "void f<A::B>(int)", "libx.so", CODE_NATIVE) };
    uint32_t stack = trace_builder_named_stack(&b, functions, ARRAY_LEN(functions));
    static const uint64_t times[] = { 1000, 1100, 1200, 1900 };
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        trace_push_sample(&b.trace.samples, times[i], thread, stack, 100, SAMPLE_CPU, 0);
    trace_push_sample(&b.trace.samples, 1950, trace_builder_thread(&b, 20, 21, 1), stack, 100, SAMPLE_CPU, 0);
    uint32_t others;
    assert_int_equal(nettrace_process(&b.trace, &others), b.trace.threads.rows[thread].process);
    assert_int_equal(others, 1);
    write_trace(&b.trace, &file);
    import_bytes(&read, buffer_span(&file));
    const struct trace *t = &read.trace;
    static const struct {
        uint64_t time_ns, weight;
        bool in_code;
    } wanted[] = { { 1000, 100, true },  { 1100, 100, true }, { 1200, 100, true },
                   { 1300, 600, false }, { 1900, 100, true }, { 2000, 1000000, false } };
    assert_int_equal(t->samples.count, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_int_equal(t->samples.time_ns[i], wanted[i].time_ns);
        assert_int_equal(t->samples.weight[i], wanted[i].weight);
        assert_int_equal(t->samples.stack[i] >= STACK_ROOTS, wanted[i].in_code);
    }
    uint32_t leaf = t->samples.stack[0], caller = t->stacks.rows[leaf].parent;
    assert_string_equal(frame_name(t, leaf), "void f<A::B>(int)");
    assert_string_equal(frame_name(t, caller), "Ns.Type`1[System.__Canon]::Run(int32)");
    assert_string_equal(frame_name(t, t->stacks.rows[caller].parent), "_start");
    const struct trace_location *row = &t->locations.rows[t->stacks.rows[caller].location];
    assert_string_equal(trace_string(t, t->functions.rows[row->function].module), "App");
    trace_builder_done(&b);
    trace_builder_done(&read);
    buffer_done(&file);
}

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

static void test_full_sink(void **state)
{
    (void)state;
    struct trace_builder b;
    trace_builder_init(&b, 64);
    uint32_t thread = trace_builder_thread(&b, 10, 11, 1);
    trace_push_sample(&b.trace.samples, 5, thread, STACK_WHOLE, 100, SAMPLE_CPU, 0);
    for (size_t ceiling = 0; ceiling < 100; ceiling += 33) {
        struct buffer memory;
        struct output out;
        struct error err = { 0 };
        buffer_init(&memory, ceiling);
        output_over_buffer(&out, &memory);
        bool ok = nettrace_write(&b.trace, &out, &err);
        ok = output_close(&out, ok ? &err : NULL) && ok;
        assert_false(ok);
        assert_int_equal(err.kind, ERROR_LIMIT);
        buffer_done(&memory);
    }
    trace_builder_done(&b);
}

static void test_nothing(void **state)
{
    (void)state;
    struct trace_builder b;
    struct output out;
    struct buffer file;
    struct error err;
    trace_builder_init(&b, 64);
    buffer_init(&file, 1 << 20);
    output_over_buffer(&out, &file);
    assert_false(nettrace_write(&b.trace, &out, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
    output_close(&out, NULL);
    trace_builder_done(&b);
    buffer_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),       cmocka_unit_test(test_cpu_samples),
        cmocka_unit_test(test_many_stacks), cmocka_unit_test(test_full_sink),
        cmocka_unit_test(test_deep_stacks), cmocka_unit_test(test_large_type),
        cmocka_unit_test(test_changes),     cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
