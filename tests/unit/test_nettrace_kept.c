/* What a nettrace file keeps of a capture for clrperf, and what others read of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/utf16.h"
#include "clr/provider_names.h"
#include "nettrace_round.h"
#include "read/nettrace.h"
#include "trace/facts.h"

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
        &b, &(struct trace_event_type){ .provider = trace_add_string(&b.trace, "P"),
                                        .event_id = 1,
                                        .keywords = UINT64_MAX }); /* all, as an event source's errors have */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_samples),     cmocka_unit_test(test_cpu_samples_again),
        cmocka_unit_test(test_cpu_samples_cut), cmocka_unit_test(test_folded),
        cmocka_unit_test(test_no_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
