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
#include "base/utf16.h"
#include "clr/provider_names.h"
#include "import/nettrace_import.h"
#include "read/nettrace.h"
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

/* The sampler's events of a stream, as readers see them that know nothing of clrperf. */
struct seen_samples {
    struct {
        uint64_t time_ns;
        uint32_t tid, state;
        size_t frames;
    } rows[16];
    size_t count;
};

static bool on_seen_type(void *user, struct nettrace_type *type, struct error *err)
{
    (void)user;
    (void)err;
    type->mark = utf16_equals_ascii(type->provider, RUNTIME_SAMPLER_PROVIDER);
    return true;
}

static bool on_seen_event(void *user, const struct nettrace_event *event, struct error *err)
{
    struct seen_samples *seen = user;
    (void)err;
    if (!event->type->mark)
        return true;
    assert_true(seen->count < ARRAY_LEN(seen->rows));
    assert_true(event->payload.size >= 4);
    seen->rows[seen->count].time_ns = event->time_ns;
    seen->rows[seen->count].tid = (uint32_t)event->thread_id;
    seen->rows[seen->count].state = load_u32le(event->payload.data);
    seen->rows[seen->count++].frames = event->stack.size / 8;
    return true;
}

static void read_samples(struct span file, struct seen_samples *seen)
{
    struct error err;
    struct nettrace_reader *reader = nettrace_reader_new(
        &(struct nettrace_sink){ .user = seen, .on_type = on_seen_type, .on_event = on_seen_event });
    if (!nettrace_reader_feed(reader, file, &err))
        fail_msg("%s", err.what);
    assert_true(nettrace_reader_ended(reader));
    nettrace_reader_free(reader);
}

/* A frame that nobody could name, of which it is known where it is. */
static uint32_t add_unnamed(struct trace_builder *b, uint32_t thread)
{
    static const uint64_t addr = 0x5123;
    uint32_t process = b->trace.threads.rows[thread].process;
    uint32_t image = trace_builder_image(b, span_of("[code heap]", 11), IMAGE_JIT, 0, 0, 0);
    trace_builder_mapping(b, process, 0x5000, 0x1000, 0, image, 1);
    return trace_builder_stack(b, process, &addr, 1, true, 1930, STACK_WHOLE);
}

static void check_unnamed(const struct trace *t)
{
    uint32_t stack = t->samples.stack[t->samples.count - 1];
    const struct trace_location *row = &t->locations.rows[t->stacks.rows[stack].location];
    const struct trace_image *image = &t->images.rows[t->mappings.rows[row->mapping].image];
    assert_int_equal(row->function, 0);
    assert_int_equal(row->addr, 0x5123);
    assert_int_equal(image->kind, IMAGE_JIT);
    assert_string_equal(trace_string(t, image->path), "[code heap]");
}

/* A capture of CPU samples of threads 11 and 12 in process 10, and one of another process. */
static uint32_t add_cpu_samples(struct trace_builder *b)
{
    uint32_t thread = trace_builder_thread(b, 10, 11, 1), other = trace_builder_thread(b, 10, 12, 1);
    const uint32_t functions[] = { add_function(b, "_start", "libc.so.6", CODE_NATIVE),
                                   add_function(b, "Ns.Type`1[System.__Canon]::Run(int32)", "App", CODE_JIT),
                                   add_function(b, "void f<A::B>(int)", "libx.so", CODE_RUNTIME),
                                   add_function(b, "do_syscall_64", "[kernel]", CODE_KERNEL) };
    b->trace.functions.rows[functions[1]].type_params = trace_add_string(&b->trace, "TKey");
    uint32_t stack = trace_builder_named_stack(b, functions, ARRAY_LEN(functions));
    uint32_t run = b->trace.stacks.rows[b->trace.stacks.rows[stack].parent].parent;
    b->trace.locations.rows[b->trace.stacks.rows[run].location].tier = TIER_OSR;
    b->trace.locations.rows[b->trace.stacks.rows[run].location].resolver = RESOLVER_MEMORY;
    b->trace.locations.rows[b->trace.stacks.rows[b->trace.stacks.rows[run].parent].location].tier = 200;
    static const uint64_t times[] = { 1000, 1100, 1200, 1900 };
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        trace_push_sample(&b->trace.samples, times[i], thread, stack, 100 + i, SAMPLE_CPU, (uint16_t)i);
    trace_push_sample(&b->trace.samples, 1910, other, STACK_BROKEN, 90, SAMPLE_CPU, 3);
    trace_push_sample(&b->trace.samples, 1920, other, STACK_WHOLE, 90, SAMPLE_CPU, 3);
    trace_push_sample(&b->trace.samples, 1930, other, add_unnamed(b, other), 90, SAMPLE_CPU, 3);
    trace_push_sample(&b->trace.samples, 1950, trace_builder_thread(b, 20, 21, 1), stack, 100, SAMPLE_CPU, 0);
    return thread;
}

/* What reads wall time only, as others do: who did not run between two samples is said to be elsewhere. */
static void test_cpu_samples(void **state)
{
    (void)state;
    static const struct {
        uint64_t time_ns;
        uint32_t tid, state;
        size_t frames;
    } wanted[] = { { 1000, 11, 2, 4 }, { 1100, 11, 2, 4 }, { 1200, 11, 2, 4 }, { 1302, 11, 1, 0 },
                   { 1900, 11, 2, 4 }, { 1910, 12, 2, 1 }, { 1920, 12, 2, 0 }, { 1930, 12, 2, 1 },
                   { 2003, 11, 1, 0 }, { 2020, 12, 1, 0 } };
    struct trace_builder b;
    struct buffer file;
    trace_builder_init(&b, 64);
    uint32_t thread = add_cpu_samples(&b), others;
    assert_int_equal(nettrace_process(&b.trace, &others), b.trace.threads.rows[thread].process);
    assert_int_equal(others, 1);
    write_trace(&b.trace, &file);
    struct seen_samples seen = { 0 };
    read_samples(buffer_span(&file), &seen);
    assert_int_equal(seen.count, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_int_equal(seen.rows[i].time_ns, wanted[i].time_ns);
        assert_int_equal(seen.rows[i].tid, wanted[i].tid);
        assert_int_equal(seen.rows[i].state, wanted[i].state);
        assert_int_equal(seen.rows[i].frames, wanted[i].frames);
    }
    trace_builder_done(&b);
    buffer_done(&file);
}

static void check_samples(const struct trace *a, const struct trace *b)
{
    const struct trace_samples *x = &a->samples, *y = &b->samples;
    assert_int_equal(y->count, 7); /* not that of the other process */
    for (size_t i = 0; i < y->count; i++) {
        assert_int_equal(x->time_ns[i], y->time_ns[i]);
        assert_int_equal(x->weight[i], y->weight[i]);
        assert_int_equal(x->cpu[i], y->cpu[i]);
        assert_int_equal(y->kind[i], SAMPLE_CPU);
        assert_int_equal(a->threads.rows[x->thread[i]].tid, b->threads.rows[y->thread[i]].tid);
        check_stacks(a, x->stack[i], b, y->stack[i]);
    }
}

static void check_run(const struct trace *t)
{
    uint32_t leaf = t->samples.stack[0], f = t->stacks.rows[leaf].parent;
    const struct trace_location *run = &t->locations.rows[t->stacks.rows[t->stacks.rows[f].parent].location];
    const struct trace_function *function = &t->functions.rows[run->function];
    assert_string_equal(trace_string(t, function->name), "Ns.Type`1[System.__Canon]::Run(int32)");
    assert_string_equal(trace_string(t, function->module), "App");
    assert_string_equal(trace_string(t, function->type_params), "TKey");
    assert_int_equal(function->kind, CODE_JIT);
    assert_int_equal(run->tier, TIER_OSR);
    assert_int_equal(run->resolver, RESOLVER_MEMORY);
    assert_int_equal(t->functions.rows[t->locations.rows[t->stacks.rows[leaf].location].function].kind,
                     CODE_KERNEL);
    assert_int_equal(t->functions.rows[t->locations.rows[t->stacks.rows[f].location].function].kind,
                     CODE_RUNTIME);
}

static void add_facts(struct trace_builder *b, uint32_t process)
{
    struct trace *t = &b->trace;
    trace_set_fact(t, FACT_EVENT, "cpu-clock");
    trace_set_fact(t, FACT_UNIT, "ns");
    trace_set_fact(t, FACT_RATE_HZ, "199");
    trace_set_fact(t, FACT_DURATION_NS, "12345");
    trace_set_fact(t, FACT_STARTED_MONOTONIC_NS, "990");
    trace_set_fact(t, FACT_STARTED_REALTIME_NS, "1700000000123456789");
    trace_set_fact(t, FACT_HOST, "h\xc3\xb6st");
    trace_set_fact(t, FACT_FORMAT, "perf.data");
    trace_set_fact(t, FACT_NOTES, "one; two");
    t->processes.rows[process].runtime_version = trace_add_string(t, "10.0.12");
    trace_builder_thread_name(b, 10, 12, span_of("w\xc3\xb6rker", 7), 2);
    trace_builder_loss(b, LOSS_RING, process, 5, 6, 7);
    uint32_t id = trace_push(&t->subscriptions);
    t->subscriptions.rows[id] = (struct trace_subscription){
        .process = process, .provider = trace_add_string(t, "P"), .keywords = 3, .level = 4, .to_ns = 9
    };
}

static void check_facts(const struct trace *t)
{
    static const char *const facts[][2] = {
        { FACT_EVENT, "cpu-clock" },  { FACT_UNIT, "ns" },
        { FACT_RATE_HZ, "199" },      { FACT_DURATION_NS, "12345" },
        { FACT_HOST, "h\xc3\xb6st" }, { FACT_STARTED_MONOTONIC_NS, "990" },
        { FACT_FORMAT, "nettrace" },  { FACT_STARTED_REALTIME_NS, "1700000000123456789" },
        { FACT_NOTES, "one; two" },
    };
    for (size_t i = 0; i < ARRAY_LEN(facts); i++)
        assert_string_equal(trace_fact_value(t, facts[i][0]), facts[i][1]);
    assert_null(trace_fact_value(t, FACT_WALL_EVENT));
    assert_int_equal(t->events.count, 1);
    assert_int_equal(t->losses.count, 2);
    assert_int_equal(t->losses.rows[1].reason, LOSS_RING);
    assert_int_equal(t->losses.rows[1].count, 7);
    assert_int_equal(t->subscriptions.count, 2);
    assert_string_equal(trace_string(t, t->subscriptions.rows[1].provider), "P");
    assert_int_equal(t->subscriptions.rows[1].keywords, 3);
    assert_int_equal(t->subscriptions.rows[1].to_ns, 9);
    const struct trace_thread *thread = &t->threads.rows[t->samples.thread[4]];
    assert_string_equal(trace_string(t, thread->name), "w\xc3\xb6rker");
    assert_string_equal(trace_string(t, t->processes.rows[thread->process].runtime_version), "10.0.12");
}

/* What a capture of CPU samples says comes back, also the second time. */
static void test_cpu_samples_again(void **state)
{
    (void)state;
    struct trace_builder b, once, twice;
    struct buffer file, again;
    trace_builder_init(&b, 64);
    uint32_t thread = add_cpu_samples(&b);
    add_facts(&b, b.trace.threads.rows[thread].process);
    write_trace(&b.trace, &file);
    import_bytes(&once, buffer_span(&file));
    write_trace(&once.trace, &again);
    import_bytes(&twice, buffer_span(&again));
    check_samples(&b.trace, &once.trace);
    check_samples(&b.trace, &twice.trace);
    check_unnamed(&once.trace);
    check_unnamed(&twice.trace);
    check_run(&once.trace);
    check_run(&twice.trace);
    check_facts(&once.trace);
    check_facts(&twice.trace);
    trace_builder_done(&b);
    trace_builder_done(&once);
    trace_builder_done(&twice);
    buffer_done(&file);
    buffer_done(&again);
}

/* Folded stacks know neither process nor thread nor time. */
static void test_folded(void **state)
{
    (void)state;
    struct trace_builder b, read;
    struct buffer file;
    trace_builder_init(&b, 64);
    uint32_t thread = trace_builder_thread(&b, 0, 0, 0);
    const uint32_t functions[] = { add_function(&b, "main", "", CODE_UNKNOWN),
                                   add_function(&b, "work", "", CODE_UNKNOWN) };
    uint32_t stack = trace_builder_named_stack(&b, functions, 2);
    trace_push_sample(&b.trace.samples, 0, thread, stack, 7, SAMPLE_CPU, 0);
    trace_push_sample(&b.trace.samples, 0, thread, b.trace.stacks.rows[stack].parent, 5, SAMPLE_CPU, 0);
    trace_set_fact(&b.trace, FACT_UNIT, "samples");
    write_trace(&b.trace, &file);
    import_bytes(&read, buffer_span(&file));
    assert_int_equal(read.trace.samples.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(read.trace.samples.weight[i], b.trace.samples.weight[i]);
        check_stacks(&b.trace, b.trace.samples.stack[i], &read.trace, read.trace.samples.stack[i]);
    }
    assert_string_equal(trace_fact_value(&read.trace, FACT_UNIT), "samples");
    assert_string_equal(trace_fact_value(&read.trace, FACT_DURATION_NS), "0");
    trace_builder_done(&b);
    trace_builder_done(&read);
    buffer_done(&file);
}

/* A capture of events only has no facts about samples, nor other events when it is read again. */
static void test_no_samples(void **state)
{
    (void)state;
    struct trace_builder b, read;
    struct buffer file;
    trace_builder_init(&b, 64);
    uint32_t process = trace_builder_process_start(&b, 10, 1);
    uint32_t type = trace_builder_event_type(
        &b, &(struct trace_event_type){ .provider = trace_add_string(&b.trace, "P"), .event_id = 1 });
    trace_push_event(&b.trace, &(struct trace_event){ .time_ns = 995, .type = type, .process = process },
                     span_of("x", 1));
    add_facts(&b, process);
    write_trace(&b.trace, &file);
    import_bytes(&read, buffer_span(&file));
    assert_null(trace_fact_value(&read.trace, FACT_EVENT));
    assert_null(trace_fact_value(&read.trace, FACT_RATE_HZ));
    assert_string_equal(trace_fact_value(&read.trace, FACT_DURATION_NS), "12345");
    assert_int_equal(read.trace.samples.count, 0);
    assert_int_equal(read.trace.events.count, 2);
    trace_builder_done(&b);
    trace_builder_done(&read);
    buffer_done(&file);
}

/* Cut at any byte it is read as far as it goes, without a sample that is none. */
static void test_cpu_samples_cut(void **state)
{
    (void)state;
    static const struct import_options everything;
    struct trace_builder b;
    struct buffer file;
    trace_builder_init(&b, 64);
    uint32_t thread = add_cpu_samples(&b);
    add_facts(&b, b.trace.threads.rows[thread].process);
    write_trace(&b.trace, &file);
    for (size_t size = 0; size < file.size; size++) {
        struct trace_builder cut;
        struct byte_stream stream;
        trace_builder_init(&cut, 64);
        byte_stream_over(&stream, span_of(file.data, size), 1 << 20);
        if (nettrace_import(&stream, &everything, &cut, NULL)) {
            assert_true(cut.trace.samples.count == 0 || cut.trace.samples.count == 7);
            assert_false(cut.trace.complete);
        }
        for (size_t i = 0; i < cut.trace.samples.count; i++)
            assert_int_equal(cut.trace.samples.kind[i], SAMPLE_CPU);
        byte_stream_close(&stream);
        trace_builder_done(&cut);
    }
    trace_builder_done(&b);
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
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_cpu_samples),
        cmocka_unit_test(test_many_stacks),
        cmocka_unit_test(test_full_sink),
        cmocka_unit_test(test_deep_stacks),
        cmocka_unit_test(test_large_type),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_cpu_samples_again),
        cmocka_unit_test(test_no_samples),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_cpu_samples_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
