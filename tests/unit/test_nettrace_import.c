#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../nettrace_sample.h"
#include "../trace_ids.h"
#include "base/own.h"
#include "golden_file.h"
#include "import/import.h"
#include "import/nettrace_import.h"
#include "import/thread_time.h"
#include "trace/facts.h"

#define RUNTIME "Microsoft-Windows-DotNETRuntime"
#define RUNDOWN "Microsoft-Windows-DotNETRuntimeRundown"
#define SAMPLER "Microsoft-DotNETCore-SampleProfiler"

enum { SAMPLE = 1, LOAD, UNLOAD, EXISTS, OTHER, BEGINS };

struct result {
    struct trace_builder b;
    struct error err;
    bool ok;
};

static void import_with(struct result *r, struct span file, const struct import_options *options)
{
    struct byte_stream stream;
    *r = (struct result){ 0 };
    trace_builder_init(&r->b, 64);
    byte_stream_over(&stream, file, 1 << 20);
    r->ok = nettrace_import(&stream, options, &r->b, &r->err);
    byte_stream_close(&stream);
}

static void import_bytes(struct result *r, struct span file)
{
    static const struct import_options everything;
    import_with(r, file, &everything);
}

static void result_done(struct result *r)
{
    trace_builder_done(&r->b);
}

static const char *note(const struct result *r)
{
    const char *notes = trace_fact_value(&r->b.trace, FACT_NOTES);
    return notes ? notes : "";
}

static void put_stacks(struct buffer *out, uint32_t first_id, const uint64_t (*stacks)[2], size_t count)
{
    struct buffer block;
    buffer_init(&block, 4096);
    buffer_u32le(&block, first_id);
    buffer_u32le(&block, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        buffer_u32le(&block, 16);
        buffer_u64le(&block, stacks[i][0]);
        buffer_u64le(&block, stacks[i][1]);
    }
    sample_block(out, "StackBlock", buffer_span(&block));
    buffer_done(&block);
}

/* One event about the method Ns.Type::`name` at an address. */
static void put_method(struct buffer *out, uint32_t type, uint32_t sequence, uint64_t ticks, uint64_t addr,
                       const char *name)
{
    struct buffer payload;
    buffer_init(&payload, 4096);
    sample_method(&payload, addr, 0x100, 0x8 | 4 << 7, "Ns.Type", name, "void  ()");
    sample_events(out, &(struct sample_event){ type, sequence, 9, 0, ticks, buffer_span(&payload) }, 1);
    buffer_done(&payload);
}

/* Each thread's are numbered from the number of its first on. */
static void put_samples(struct buffer *out, const struct sample_event *samples, size_t count)
{
    struct sample_event events[16];
    static const uint8_t managed[4] = { 2 };
    for (size_t i = 0; i < count; i++) {
        events[i] = samples[i];
        events[i].payload = span_of(managed, sizeof managed);
        for (size_t before = 0; before < i; before++)
            events[i].sequence += samples[before].thread == samples[i].thread;
    }
    sample_events(out, events, count);
}

static void put_head(struct buffer *out)
{
    buffer_init(out, 1 << 20);
    sample_begin(out, 1000000000, 8);
    sample_type(out, SAMPLE, SAMPLER, 0, 0);
    sample_type(out, LOAD, RUNTIME, 143, 1);
    sample_type(out, UNLOAD, RUNTIME, 144, 1);
    sample_type(out, EXISTS, RUNDOWN, 144, 1);
    sample_type(out, OTHER, "Mine", 7, 0);
}

/* The name of a sample's leaf, or "". */
static const char *leaf_name(const struct trace *t, uint32_t stack)
{
    const struct trace_location *row = &t->locations.rows[t->stacks.rows[stack].location];
    return row->function ? trace_string(t, t->functions.rows[row->function].name) : "";
}

static void test_names_by_time(void **state)
{
    (void)state;
    static const uint64_t stacks[][2] = { { 0x5010, 0x9100 } };
    /* what lay at 0x5000 when each sample was taken; the listing of 0x9000 comes last of all */
    static const struct {
        uint64_t ticks;
        const char *leaf;
    } cases[] = {
        { 1100, "" }, /* before anything was known there */
        { 1300, "Ns.Type::First()" },
        { 1500, "" }, /* freed */
        { 1700, "Ns.Type::Second()" },
        { 1900, "Ns.Type::Second()" },
    };
    struct sample_event samples[ARRAY_LEN(cases)];
    struct buffer file;
    struct result r;
    put_head(&file);
    put_stacks(&file, 1, stacks, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        samples[i] = (struct sample_event){ SAMPLE, 1, 11, 1, cases[i].ticks, { 0 } };
    /* all before the methods, as another thread wrote them */
    put_samples(&file, samples, ARRAY_LEN(samples));
    put_method(&file, LOAD, 1, 1200, 0x5000, "First");
    put_method(&file, UNLOAD, 2, 1400, 0x5000, "First");
    put_method(&file, LOAD, 3, 1600, 0x5000, "Second");
    put_method(&file, EXISTS, 4, 2000, 0x5000, "Second");
    put_method(&file, EXISTS, 5, 2000, 0x9000, "Main");
    sample_end(&file);
    import_bytes(&r, buffer_span(&file));
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    assert_int_equal(t->samples.count, ARRAY_LEN(cases));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(t->samples.kind[i], SAMPLE_WALL);
        assert_string_equal(leaf_name(t, t->samples.stack[i]), cases[i].leaf);
        assert_string_equal(leaf_name(t, t->stacks.rows[t->samples.stack[i]].parent), "Ns.Type::Main()");
    }
    assert_true(t->complete);
    assert_string_equal(note(&r), "");
    result_done(&r);
    buffer_done(&file);
}

/* An address at the end of one method and the start of the next: the caller is the one before. */
static void test_leaf_and_caller(void **state)
{
    (void)state;
    static const uint64_t stacks[][2] = { { 0x5100, 0x5100 } };
    struct buffer file;
    struct result r;
    put_head(&file);
    put_stacks(&file, 1, stacks, 1);
    put_samples(&file, (struct sample_event[]){ { SAMPLE, 1, 11, 1, 1100, { 0 } } }, 1);
    sample_events(&file, &(struct sample_event){ OTHER, 1, 12, 1, 1200, { 0 } }, 1);
    put_method(&file, EXISTS, 1, 2000, 0x5000, "Caller");
    put_method(&file, EXISTS, 2, 2000, 0x5100, "Leaf");
    sample_end(&file);
    import_bytes(&r, buffer_span(&file));
    const struct trace *t = &r.b.trace;
    assert_true(r.ok);
    assert_string_equal(leaf_name(t, t->samples.stack[0]), "Ns.Type::Leaf()");
    assert_string_equal(leaf_name(t, t->stacks.rows[t->samples.stack[0]].parent), "Ns.Type::Caller()");
    const struct trace_event *event = NULL;
    for (size_t i = 1; i < t->events.count; i++)
        if (t->event_types.rows[t->events.rows[i].type].event_id == 7)
            event = &t->events.rows[i];
    assert_non_null(event);
    assert_string_equal(leaf_name(t, event->stack), "Ns.Type::Caller()");
    assert_int_equal(t->threads.rows[event->thread].tid, 12);
    assert_int_equal(t->event_types.rows[event->type].keywords, 0x30);
    result_done(&r);
    buffer_done(&file);
}

/* Threads 1 to 3 in rounds 100 apart; 2 is gone after the second, 3 comes with the third. */
static void test_weights(void **state)
{
    (void)state;
    static const uint64_t stacks[][2] = { { 0x5010, 0x5020 } };
    static const struct {
        uint32_t tid;
        uint64_t ticks, weight;
    } cases[] = {
        { 1, 1000, 100 }, { 2, 1010, 100 }, { 1, 1100, 105 },     { 2, 1110, 95 /* to the next round */ },
        { 1, 1205, 100 }, { 3, 1206, 101 }, { 1, 1305, 1000000 }, { 3, 1307, 1000000 },
    };
    struct sample_event samples[ARRAY_LEN(cases)];
    struct buffer file;
    struct result r;
    put_head(&file);
    put_stacks(&file, 1, stacks, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        samples[i] = (struct sample_event){ SAMPLE, 1, cases[i].tid, 1, cases[i].ticks, { 0 } };
    put_samples(&file, samples, ARRAY_LEN(samples));
    sample_end(&file);
    import_bytes(&r, buffer_span(&file));
    assert_true(r.ok);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(r.b.trace.samples.weight[i], cases[i].weight);
    assert_non_null(strstr(trace_fact_value(&r.b.trace, FACT_WALL_STATES), "managed 2000601 native 0"));
    result_done(&r);
    buffer_done(&file);
}

static enum import_want wants_nothing(const void *user, const char *provider, uint32_t event_id)
{
    (void)user;
    (void)provider;
    (void)event_id;
    return IMPORT_NOTHING;
}

/* A capture is as long whatever is wanted of it. */
static void test_duration(void **state)
{
    (void)state;
    struct buffer file;
    struct result all, nothing;
    put_head(&file);
    sample_events(&file, &(struct sample_event){ OTHER, 1, 12, 0, 1200, span_of("abcd", 4) }, 1);
    put_method(&file, EXISTS, 1, 2000, 0x5000, "Main");
    sample_end(&file);
    import_with(&all, buffer_span(&file), &(struct import_options){ 0 });
    import_with(&nothing, buffer_span(&file), &(struct import_options){ .wants = wants_nothing });
    assert_true(all.ok && nothing.ok);
    assert_int_equal(nothing.b.trace.events.count, 1);
    const char *duration = trace_fact_value(&all.b.trace, FACT_DURATION_NS);
    assert_string_not_equal(duration, "0");
    assert_string_equal(trace_fact_value(&nothing.b.trace, FACT_DURATION_NS), duration);
    result_done(&all);
    result_done(&nothing);
    buffer_done(&file);
}

static uint64_t lasted_ns(const struct result *r)
{
    uint64_t ns = 0;
    assert_true(r->ok);
    trace_fact_number(&r->b.trace, FACT_DURATION_NS, &ns);
    return ns;
}

/* Nothing may happen for long before a recording is over: a rate would be that of its first moments. */
static void test_duration_of_quiet(void **state)
{
    (void)state;
    struct buffer without, with;
    struct result r;
    put_head(&without);
    sample_events(&without, &(struct sample_event){ OTHER, 1, 12, 0, 1200, { 0 } }, 1);
    sample_point(&without, 9000, 12, 1);
    sample_end(&without);
    import_bytes(&r, buffer_span(&without));
    assert_int_equal(lasted_ns(&r), 8000);
    result_done(&r);
    /* it takes a while to list the methods */
    put_head(&with);
    sample_type(&with, BEGINS, RUNDOWN, 148, 1);
    sample_events(&with, &(struct sample_event){ OTHER, 1, 12, 0, 1200, { 0 } }, 1);
    sample_events(&with, &(struct sample_event){ BEGINS, 1, 9, 0, 6000, { 0 } }, 1);
    put_method(&with, EXISTS, 2, 8000, 0x5000, "Main");
    sample_point(&with, 9000, 9, 2);
    sample_end(&with);
    for (unsigned i = 0; i < 2; i++) {
        import_with(&r, buffer_span(&with), &(struct import_options){ .wants = i ? wants_nothing : NULL });
        assert_int_equal(lasted_ns(&r), 5000);
        result_done(&r);
    }
    buffer_done(&with);
    buffer_done(&without);
}

static enum import_want wants_samples(const void *user, const char *provider, uint32_t event_id)
{
    ++**(int *const *)user;
    (void)event_id;
    if (strcmp(provider, RUNDOWN) == 0)
        return IMPORT_COUNTS;
    return strcmp(provider, "Mine") == 0 ? IMPORT_EVENTS : IMPORT_NOTHING;
}

static void test_interest(void **state)
{
    (void)state;
    struct buffer file;
    struct result r;
    int asked = 0, *asked_at = &asked;
    put_head(&file);
    put_samples(&file, (struct sample_event[]){ { SAMPLE, 1, 11, 0, 1100, { 0 } } }, 1);
    sample_events(&file, &(struct sample_event){ OTHER, 1, 12, 0, 1200, span_of("abcd", 4) }, 1);
    put_method(&file, EXISTS, 1, 2000, 0x5000, "Main");
    sample_end(&file);
    import_with(&r, buffer_span(&file),
                &(struct import_options){ .wants = wants_samples, .user = &asked_at });
    assert_true(r.ok);
    assert_int_equal(asked, 5);
    assert_int_equal(r.b.trace.samples.count, 1);
    assert_int_equal(r.b.trace.events.count, 2);
    assert_int_equal(r.b.trace.events.rows[1].payload_bytes, 0);
    uint64_t counted = 0;
    for (size_t i = 1; i < r.b.trace.event_types.count; i++)
        counted += r.b.trace.event_types.rows[i].counted;
    assert_int_equal(counted, 1);
    assert_true(r.b.trace.course.slice_ns > 0);
    result_done(&r);
    buffer_done(&file);
}

static void test_losses(void **state)
{
    (void)state;
    struct buffer file;
    struct result r;
    put_head(&file);
    sample_events(&file, &(struct sample_event){ OTHER, 6, 12, 0, 1200, { 0 } }, 1); /* 5 before it */
    sample_point(&file, 1300, 12, 8);                                                /* 2 behind it */
    sample_events(&file, &(struct sample_event){ OTHER, 10, 12, 0, 1400, { 0 } }, 1);
    sample_end(&file);
    import_bytes(&r, buffer_span(&file));
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    assert_int_equal(t->losses.count, 3);
    assert_int_equal(t->losses.rows[1].count, 7);
    assert_int_equal(t->losses.rows[1].reason, LOSS_RUNTIME);
    assert_int_equal(t->losses.rows[1].to_ns, 1300);
    assert_int_equal(t->losses.rows[2].count, 1);
    result_done(&r);
    buffer_done(&file);
}

/* A block whose content is no content: what comes behind it is read, and the user is told. */
static void test_damaged_block(void **state)
{
    (void)state;
    static const uint8_t header[] = { 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0 };
    static const struct {
        const char *name, *bytes;
        size_t size;
    } cases[] = {
        { "cut in a header", "\xcf\x05", 2 },
        { "longer than the block", "\x81\x05\x10\x7f", 4 },
        { "outside its time", "\x41\x05\xff\xff\xff\xff\xff\xff\x7f", 9 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer file, block;
        struct result r;
        put_head(&file);
        buffer_init(&block, 64);
        buffer_append(&block, header, sizeof header);
        buffer_append(&block, cases[i].bytes, cases[i].size);
        sample_block(&file, "EventBlock", buffer_span(&block));
        sample_events(&file, &(struct sample_event){ OTHER, 1, 12, 0, 1200, { 0 } }, 1);
        sample_end(&file);
        import_bytes(&r, buffer_span(&file));
        assert_true(r.ok);
        assert_int_equal(r.b.trace.events.count, 2);
        assert_int_equal(r.b.trace.gaps.count, 2);
        assert_false(r.b.trace.complete);
        assert_non_null(strstr(note(&r), "is damaged"));
        result_done(&r);
        buffer_done(&block);
        buffer_done(&file);
    }
}

/* An event that two keywords bring says that one of them was asked for; another event may say which. */
static void test_keywords_asked(void **state)
{
    (void)state;
    static const struct {
        uint64_t of_events[3], asked;
    } cases[] = {
        { { 0x10001, 0x1, 0x8 }, 0x9 },
        { { 0x10001, 0x8, 0x8 }, 0x10009 },
        { { 0x10001, 0x6, 0x10000 }, 0x10006 },
        { { 0xf00000000001, 0xf00000000003, 0 }, 0xf00000000001 },
        { { 0xf00000000001, 0xf00000000006, 0 }, 0xf00000000007 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer file;
        struct result r;
        buffer_init(&file, 1 << 20);
        sample_begin(&file, 1000000000, 8);
        for (uint32_t k = 0; k < 3; k++) {
            sample_type_of(&file, k + 1, "Some", k + 1, 1, cases[i].of_events[k]);
            sample_events(&file, &(struct sample_event){ k + 1, k + 1, 9, 0, 1000 + k, { 0 } }, 1);
        }
        sample_end(&file);
        import_bytes(&r, buffer_span(&file));
        assert_true(r.ok);
        assert_int_equal(r.b.trace.subscriptions.count, 2);
        assert_int_equal(r.b.trace.subscriptions.rows[1].keywords, cases[i].asked);
        result_done(&r);
        buffer_done(&file);
    }
}

/* A file may have any number of providers; a type of which nothing was told says nothing. */
static void test_many_providers(void **state)
{
    enum { PROVIDERS = 4200, SUBSCRIPTIONS_MAX = 4096 };
    (void)state;
    struct buffer file;
    struct result r;
    char provider[16];
    buffer_init(&file, 1 << 20);
    sample_begin(&file, 1000000000, 8);
    for (uint32_t i = 1; i <= PROVIDERS; i++) {
        snprintf(provider, sizeof provider, "Provider%u", i);
        sample_type(&file, i, provider, 1, 1);
        if (i > 1)
            sample_events(&file, &(struct sample_event){ i, i - 1, 9, 0, 1000 + i, { 0 } }, 1);
    }
    sample_end(&file);
    import_bytes(&r, buffer_span(&file));
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    assert_int_equal(t->events.count - 1, PROVIDERS - 1);
    assert_int_equal(t->subscriptions.count - 1, SUBSCRIPTIONS_MAX);
    assert_string_equal(trace_string(t, t->subscriptions.rows[1].provider), "Provider2");
    assert_non_null(strstr(note(&r), "more than 4096 providers"));
    result_done(&r);
    buffer_done(&file);
}

/* Nettrace 6. */

static void put_block_v6(struct buffer *out, uint8_t kind, struct buffer *content)
{
    buffer_u32le(out, (uint32_t)content->size | (uint32_t)kind << 24);
    buffer_append(out, content->data, content->size);
    buffer_clear(content);
}

static void put_text_v6(struct buffer *out, const char *text)
{
    buffer_varuint(out, strlen(text));
    buffer_string(out, text);
}

/* `id`, provider and event id; no name, no fields; version 1. */
static void put_type_v6(struct buffer *out, uint32_t id, const char *provider, uint32_t event_id)
{
    struct buffer row;
    buffer_init(&row, 4096);
    buffer_varuint(&row, id);
    put_text_v6(&row, provider);
    buffer_varuint(&row, event_id);
    put_text_v6(&row, "");
    buffer_u16le(&row, 0);
    buffer_u16le(&row, 2);
    buffer_append(&row, "\x09\x01", 2);
    buffer_u16le(out, (uint16_t)row.size);
    buffer_append(out, row.data, row.size);
    buffer_done(&row);
}

static void put_thread_v6(struct buffer *out, uint8_t index, uint8_t pid, uint8_t tid, char name)
{
    const uint8_t row[] = { index, 2, pid, 3, tid, 1 /* name */, 1, (uint8_t)name };
    buffer_u16le(out, sizeof row);
    buffer_append(out, row, sizeof row);
}

static void put_event_v6(struct buffer *out, uint32_t type, uint8_t thread, uint32_t sequence, uint64_t ticks,
                         uint8_t stack, struct span payload)
{
    buffer_u32le(out, (uint32_t)(4 + 4 + 8 + 8 + 4 + 4 + 8 + 4 + 4 + payload.size));
    buffer_u32le(out, type);
    buffer_u32le(out, sequence);
    buffer_u64le(out, thread);
    buffer_u64le(out, thread);
    buffer_u32le(out, UINT32_MAX);
    buffer_u32le(out, stack);
    buffer_u64le(out, ticks);
    buffer_u32le(out, 0);
    buffer_u32le(out, (uint32_t)payload.size);
    buffer_append(out, payload.data, payload.size);
}

static void put_method_v6(struct buffer *out, uint8_t thread, uint32_t sequence, const char *name)
{
    struct buffer payload;
    buffer_init(&payload, 4096);
    sample_method(&payload, 0x5000, 0x100, 0x8, "Ns.Type", name, "void  ()");
    put_event_v6(out, EXISTS, thread, sequence, 2000, 0, buffer_span(&payload));
    buffer_done(&payload);
}

/* The same address in two processes is two methods; an event of nobody belongs to none. */
static void test_two_processes(void **state)
{
    (void)state;
    static const uint8_t managed[4] = { 2 };
    struct span payload = span_of(managed, sizeof managed);
    struct buffer file, block;
    struct result r;
    buffer_init(&file, 1 << 16);
    buffer_init(&block, 1 << 16);
    buffer_append(&file, "Nettrace\0\0\0\0\6\0\0\0\0\0\0\0", 20);
    for (unsigned i = 0; i < 8; i++)
        buffer_u16le(&block, (uint16_t)(i + 1));
    buffer_u64le(&block, 1000);
    buffer_u64le(&block, 1000000000);
    buffer_u32le(&block, 8);
    buffer_u32le(&block, 0); /* no process of the stream's own */
    put_block_v6(&file, 1, &block);
    put_thread_v6(&block, 1, 10, 11, 'a');
    put_thread_v6(&block, 2, 20, 21, 'b');
    put_block_v6(&file, 6, &block);
    buffer_u16le(&block, 0);
    put_type_v6(&block, SAMPLE, SAMPLER, 0);
    put_type_v6(&block, EXISTS, RUNDOWN, 144);
    put_type_v6(&block, OTHER, "Mine", 7);
    put_block_v6(&file, 3, &block);
    buffer_u32le(&block, 1);
    buffer_u32le(&block, 1);
    buffer_u32le(&block, 8);
    buffer_u64le(&block, 0x5010);
    put_block_v6(&file, 5, &block);
    buffer_append(&block, (const uint8_t[]){ 20, 0, 0, 0 }, 4);
    buffer_u64le(&block, 0);
    buffer_u64le(&block, 1 << 20);
    put_event_v6(&block, SAMPLE, 1, 1, 1100, 1, payload);
    put_event_v6(&block, SAMPLE, 2, 1, 1100, 1, payload);
    put_event_v6(&block, OTHER, 3, 1, 1200, 1, payload); /* a thread that was never listed */
    put_method_v6(&block, 1, 2, "First");
    put_method_v6(&block, 2, 2, "Second");
    put_block_v6(&file, 2, &block);
    put_block_v6(&file, 0, &block);
    import_bytes(&r, buffer_span(&file));
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    assert_true(t->complete);
    assert_string_equal(note(&r), "");
    assert_int_equal(t->samples.count, 2);
    assert_string_equal(leaf_name(t, t->samples.stack[0]), "Ns.Type::First()");
    assert_string_equal(leaf_name(t, t->samples.stack[1]), "Ns.Type::Second()");
    const struct trace_thread *second = &t->threads.rows[t->samples.thread[1]];
    assert_int_equal(second->tid, 21);
    assert_int_equal(t->processes.rows[second->process].pid, 20);
    assert_string_equal(trace_string(t, second->name), "b");
    size_t of_nobody = 0;
    for (size_t i = 1; i < t->events.count; i++)
        of_nobody += !t->events.rows[i].process && !t->events.rows[i].thread && !t->events.rows[i].stack;
    assert_int_equal(of_nobody, 1);
    assert_int_equal(t->subscriptions.count, 3); /* nobody's event does not say what these were asked */
    for (size_t i = 1; i < t->subscriptions.count; i++) {
        const struct trace_subscription *row = &t->subscriptions.rows[i];
        assert_string_equal(trace_string(t, row->provider), SAMPLER);
        assert_int_equal(t->processes.rows[row->process].pid, 10 * i);
    }
    result_done(&r);
    buffer_done(&block);
    buffer_done(&file);
}

static const char *const goldens[] = { "nettrace/primes.netperf", "nettrace/primes.nettrace",
                                       "nettrace/primes-v6.nettrace" };

static void test_real_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct result r;
        struct buffer file = golden_file_load(goldens[i]);
        import_bytes(&r, buffer_span(&file));
        assert_true(r.ok);
        const struct trace *t = &r.b.trace;
        const struct trace_process *process = &t->processes.rows[1];
        assert_int_equal(t->samples.count, 150);
        assert_string_equal(trace_string(t, process->name), "primes");
        assert_string_equal(trace_string(t, process->runtime_version), "10.0.12");
        bool is_v6 = strcmp(goldens[i], "nettrace/primes-v6.nettrace") == 0;
        assert_int_equal(
            strncmp(trace_string(t, t->threads.rows[t->samples.thread[0]].name), "thread ", 7) == 0, is_v6);
        assert_true(t->complete);
        size_t named = 0;
        for (size_t at = 0; at < t->samples.count; at++)
            named += strcmp(leaf_name(t, t->samples.stack[at]), "") != 0;
        assert_int_equal(named, 150);
        result_done(&r);
        buffer_done(&file);
    }
}

/* What a capture of ours has as events becomes the same samples. */
static void test_samples_of_events(void **state)
{
    (void)state;
    struct result r;
    struct buffer file = golden_file_load("nettrace/primes.nettrace");
    import_bytes(&r, buffer_span(&file));
    struct trace *t = &r.b.trace;
    uint64_t weights[150];
    uint32_t stacks[150];
    AUTO_FREE char *states = strdup(trace_fact_value(t, FACT_WALL_STATES));
    memcpy(weights, t->samples.weight, sizeof weights);
    memcpy(stacks, t->samples.stack, sizeof stacks);
    thread_time_from_events(t); /* there are samples already */
    assert_int_equal(t->samples.count, 150);
    t->samples.count = 0;
    t->facts.count = 1;
    thread_time_from_events(t);
    assert_int_equal(t->samples.count, 150);
    assert_memory_equal(weights, t->samples.weight, sizeof weights);
    assert_memory_equal(stacks, t->samples.stack, sizeof stacks);
    assert_string_equal(trace_fact_value(t, FACT_WALL_STATES), states);
    result_done(&r);
    buffer_done(&file);
}

static const char *process_of(const struct trace *t, size_t sample)
{
    const struct trace_thread *thread = &t->threads.rows[t->samples.thread[sample]];
    return trace_string(t, t->processes.rows[thread->process].name);
}

/* What dotnet-trace collect-linux writes: samples of CPU time, and names that come with them. */
static void test_machine(void **state)
{
    (void)state;
    static const struct {
        const char *process, *leaf;
        uint64_t weight_ms;
        enum stack_end end;
    } samples[] = {
        { "app", "Shop.Cart::Burn(int32)", 1, STACK_WHOLE },
        { "app", "do_read", 1, STACK_WHOLE },
        { "app", "", 2, STACK_WHOLE },
        { "first", "start_thread", 1, STACK_WHOLE },
        { "second", "do_read", 1, STACK_WHOLE },
        { "app", "", 1, STACK_BROKEN },
    };
    struct result r;
    struct buffer file = golden_file_load("nettrace/machine.nettrace");
    import_bytes(&r, buffer_span(&file));
    assert_true(r.ok);
    const struct trace *t = &r.b.trace;
    assert_int_equal(t->samples.count, ARRAY_LEN(samples));
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        assert_string_equal(process_of(t, i), samples[i].process);
        assert_string_equal(leaf_name(t, t->samples.stack[i]), samples[i].leaf);
        assert_int_equal(t->samples.weight[i], samples[i].weight_ms * 1000000);
        assert_int_equal(trace_builder_stack_end(&r.b, t->samples.stack[i]), samples[i].end);
        assert_int_equal(t->samples.kind[i], SAMPLE_CPU);
    }
    const struct trace_location *burn = &t->locations.rows[t->stacks.rows[t->samples.stack[0]].location];
    assert_int_equal(burn->tier, TIER_1);
    assert_string_equal(trace_string(t, t->functions.rows[burn->function].module), "app");
    uint32_t libc = t->stacks.rows[t->stacks.rows[t->samples.stack[0]].parent].location;
    const struct trace_mapping *mapping = &t->mappings.rows[t->locations.rows[libc].mapping];
    assert_int_equal(mapping->end - mapping->start, 0x10000);
    assert_string_equal(trace_string(t, t->images.rows[mapping->image].build_id), "00ff11");
    assert_string_equal(trace_fact_value(t, FACT_RATE_HZ), "1000");
    assert_non_null(strstr(note(&r), "1 events about processes, mappings and symbols are malformed"));
    result_done(&r);
    buffer_done(&file);
}

/* Whatever is missing at the end: whole blocks before it are there, and the user is told. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct buffer file = golden_file_load(goldens[i]);
        size_t samples = 0;
        for (size_t size = 0; size < file.size; size += size < 600 || size > file.size - 200 ? 1 : 97) {
            struct result r;
            import_bytes(&r, span_of(file.data, size));
            assert_true(r.ok || r.err.kind == ERROR_INPUT);
            if (r.ok) {
                assert_false(r.b.trace.complete);
                assert_non_null(strstr(note(&r), "the file is cut at byte"));
                assert_true(r.b.trace.samples.count >= samples);
                samples = r.b.trace.samples.count;
            }
            result_done(&r);
        }
        assert_int_equal(samples, 150);
        buffer_done(&file);
    }
}

/* One bit is another one: an error, or something that can be shown. */
static void test_flipped_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct buffer file = golden_file_load(goldens[i]);
        for (size_t at = 0; at < file.size; at += at < 400 ? 1 : 53) {
            struct result r;
            uint8_t bit = (uint8_t)(1u << (at % 8));
            file.data[at] ^= bit;
            import_bytes(&r, buffer_span(&file));
            file.data[at] ^= bit;
            if (r.ok)
                assert_true(trace_ids_lead_somewhere(&r.b.trace));
            else
                assert_true(r.err.what[0]);
            result_done(&r);
        }
        buffer_done(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_by_time),
        cmocka_unit_test(test_leaf_and_caller),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_interest),
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_duration_of_quiet),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_damaged_block),
        cmocka_unit_test(test_keywords_asked),
        cmocka_unit_test(test_many_providers),
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_real_files),
        cmocka_unit_test(test_samples_of_events),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_flipped_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
