#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nettrace_sample.h"
#include "base/own.h"
#include "nettrace_told.h"
#include "read/nettrace.h"

/* A stream with a described event, stacks, a sequence point and the end tag, decoded by hand. */
static const uint8_t worked[] = {
    'N', 'e', 't', 't', 'r', 'a', 'c', 'e', 0x14, 0, 0, 0, '!', 'F', 'a', 's', 't', 'S', 'e', 'r', 'i', 'a',
    'l', 'i', 'z', 'a', 't', 'i', 'o', 'n', '.', '1',
    /* Trace */
    0x05, 0x05, 0x01, 4, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 'T', 'r', 'a', 'c', 'e', 0x06, 0xe9, 0x07, 0x03,
    0x00, 0x02, 0x00, 0x12, 0x00, 0x09, 0x00, 0x1e, 0x00, 0x0f, 0x00, 0xfa, 0x00, 0x00, 0x10, 0xa5, 0xd4,
    0xe8, 0, 0, 0, 0x00, 0xca, 0x9a, 0x3b, 0, 0, 0, 0, 8, 0, 0, 0, 0x92, 0x10, 0, 0, 4, 0, 0, 0, 0x40, 0x42,
    0x0f, 0x00, 0x06,
    /* MetadataBlock: provider "P", event 7 "E", opcode 1, one field a: int[] */
    0x05, 0x05, 0x01, 2, 0, 0, 0, 2, 0, 0, 0, 0x0d, 0, 0, 0, 'M', 'e', 't', 'a', 'd', 'a', 't', 'a', 'B', 'l',
    'o', 'c', 'k', 0x06, 0x6c, 0, 0, 0, 0x00, 0x14, 0, 0x01, 0, 0x64, 0x10, 0xa5, 0xd4, 0xe8, 0, 0, 0, 0x64,
    0x10, 0xa5, 0xd4, 0xe8, 0, 0, 0, 0xc6, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0xff, 0xff, 0xff, 0xff, 0x0f,
    0x92, 0x21, 0xe4, 0xa0, 0x94, 0xa5, 0x8d, 0x1d, 0x43, 1, 0, 0, 0, 'P', 0, 0, 0, 7, 0, 0, 0, 'E', 0, 0, 0,
    0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x01, 0x01, 0x14, 0, 0, 0,
    0x02, 1, 0, 0, 0, 0x10, 0, 0, 0, 'a', 0, 0, 0, 0x13, 0, 0, 0, 0x09, 0, 0, 0, 0x06,
    /* StackBlock: 1 is empty, 2 has two addresses */
    0x05, 0x05, 0x01, 2, 0, 0, 0, 2, 0, 0, 0, 0x0a, 0, 0, 0, 'S', 't', 'a', 'c', 'k', 'B', 'l', 'o', 'c', 'k',
    0x06, 0x20, 0, 0, 0, 0x00, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x00, 0x10, 0, 0, 0x00,
    0x7f, 0, 0, 0x00, 0x20, 0, 0, 0x00, 0x7f, 0, 0, 0x06,
    /* EventBlock: [5, 6], then [7, 8] */
    0x05, 0x05, 0x01, 2, 0, 0, 0, 2, 0, 0, 0, 0x0a, 0, 0, 0, 'E', 'v', 'e', 'n', 't', 'B', 'l', 'o', 'c', 'k',
    0x06, 0x3a, 0, 0, 0, 0x00, 0x14, 0, 0x01, 0, 0x64, 0x10, 0xa5, 0xd4, 0xe8, 0, 0, 0, 0xb4, 0x10, 0xa5,
    0xd4, 0xe8, 0, 0, 0, 0xcf, 0x01, 0x00, 0x92, 0x21, 0x03, 0x92, 0x21, 0x02, 0xe4, 0xa0, 0x94, 0xa5, 0x8d,
    0x1d, 0x0a, 2, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0x00, 0x50, 2, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0x06,
    /* SPBlock: thread 4242 got to 2 */
    0x05, 0x05, 0x01, 2, 0, 0, 0, 2, 0, 0, 0, 0x07, 0, 0, 0, 'S', 'P', 'B', 'l', 'o', 'c', 'k', 0x06, 0x18, 0,
    0, 0, 0x00, 0x00, 0xc8, 0x10, 0xa5, 0xd4, 0xe8, 0, 0, 0, 1, 0, 0, 0, 0x92, 0x10, 0, 0, 0, 0, 0, 0, 2, 0,
    0, 0, 0x06, 0x01
};

static const char worked_text[] =
    "info v4 2025-3-18 f1000000000 p8 pid4242;type 1 P/7 E v6:0 op1 k10 l4 v0 f4 p20;"
    "event 1 p4242 t4242 #1 @1000000000100 s16 a0 sorted 02000500000006000000;"
    "event 1 p4242 t4242 #2 @1000000000180 s16 a0 02000700000008000000;point @1000000000200;";

static void test_any_chunking(void **state)
{
    (void)state;
    for (size_t step = 0; step <= sizeof worked; step++) {
        bool ok, ended;
        struct error err = { 0 };
        AUTO_FREE char *text = read_all(span_of(worked, sizeof worked), step, &ok, &ended, &err);
        if (!ok || !ended || strcmp(text, worked_text) != 0)
            fail_msg("pieces of %zu: %s %s", step, err.what, text);
    }
}

/* Whatever came whole before the cut is delivered, and a cut is no error: live streams just stop. */
static void test_cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof worked; size++) {
        bool ok, ended;
        struct error err = { 0 };
        AUTO_FREE char *text = read_all(span_of(worked, size), 0, &ok, &ended, &err);
        if (!ok || ended || strncmp(text, worked_text, strlen(text)) != 0)
            fail_msg("cut at %zu: %s %s", size, err.what, text);
        if (size >= 399)
            assert_non_null(strstr(text, "#2"));
        else
            assert_null(strstr(text, "event"));
    }
}

static void test_every_byte_changed(void **state)
{
    (void)state;
    for (size_t at = 0; at < sizeof worked; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            uint8_t copy[sizeof worked];
            memcpy(copy, worked, sizeof copy);
            copy[at] ^= (uint8_t)(1u << bit);
            const struct nettrace_sink sink = { 0 };
            struct nettrace_reader *r = nettrace_reader_new(&sink);
            struct error err = { 0 };
            if (!feed(r, span_of(copy, sizeof copy), 0, &err)) {
                assert_int_not_equal(err.kind, ERROR_NONE);
                struct error again = { 0 }; /* and it stays so */
                assert_false(nettrace_reader_feed(r, span_of(copy, 1), &again));
                assert_string_equal(again.what, err.what);
            }
            nettrace_reader_free(r);
        }
}

static void test_refused_starts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        enum error_kind kind;
        const char *what;
    } cases[] = {
        { "not a trace at all", 18, ERROR_INPUT, "no event stream" },
        { "Nettrace\0\0\0\0\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32, ERROR_UNSUPPORTED,
          "nettrace version 7" },
        { "Nettrace\x14\0\0\0!FastSerialization.2", 32, ERROR_INPUT, "no event stream" },
        { "Nettrace\x14\0\0\0!FastSerialization.1\7", 33, ERROR_INPUT,
          "byte 7 where an object should begin" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct nettrace_sink sink = { 0 };
        struct nettrace_reader *r = nettrace_reader_new(&sink);
        struct error err = { 0 };
        assert_false(feed(r, span_of(cases[i].bytes, cases[i].size), 0, &err));
        assert_int_equal(err.kind, cases[i].kind);
        assert_non_null(strstr(err.what, cases[i].what));
        nettrace_reader_free(r);
    }
}

static void test_losses(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t sequences[4]; /* of events, 0 ends */
        uint32_t reached;      /* by the sequence point */
        uint64_t lost;
    } cases[] = {
        { "none", { 1, 2, 3 }, 3, 0 },          { "in the middle", { 1, 2, 7 }, 7, 4 },
        { "before the first", { 5, 6 }, 6, 4 }, { "after the last", { 1, 2 }, 10, 8 },
        { "all of a thread", { 0 }, 9, 9 },     { "a thread id used again", { 1, 2, 1, 2 }, 2, 0 },
        { "a number twice", { 1, 1 }, 1, 0 },   { "a point that lags", { 1, 2, 3 }, 2, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        buffer_init(&b, 1 << 16);
        sample_begin(&b, 1000000000, 8);
        sample_type(&b, 1, "P", 7, 0);
        struct sample_event events[4];
        size_t count = 0;
        for (; count < 4 && cases[i].sequences[count]; count++)
            events[count] = (struct sample_event){
                .type = 1, .sequence = cases[i].sequences[count], .thread = 9, .ticks = 100 + count
            };
        sample_events(&b, events, count);
        sample_point(&b, 500, 9, cases[i].reached);
        sample_end(&b);
        const struct nettrace_sink sink = { 0 };
        struct nettrace_reader *r = nettrace_reader_new(&sink);
        struct error err;
        assert_true(feed(r, buffer_span(&b), 0, &err));
        const struct nettrace_counts *c = nettrace_reader_counts(r);
        if (c->lost != cases[i].lost || c->events != count)
            fail_msg("%s: %llu lost", cases[i].name, (unsigned long long)c->lost);
        nettrace_reader_free(r);
        buffer_done(&b);
    }
}

static void test_odd_clocks(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 1 << 16);
    sample_begin(&b, 0, 8); /* a frequency of zero */
    sample_type(&b, 1, "P", 7, 0);
    const struct sample_event events[] = {
        { .type = 1, .sequence = 1, .thread = 9, .stack = 5, .ticks = 500 },
        { .type = 1, .sequence = 2, .thread = 9, .stack = 5, .ticks = 400 }, /* back */
        { .type = 2, .sequence = 3, .thread = 9, .ticks = 600 },             /* never described */
    };
    sample_events(&b, events, ARRAY_LEN(events));
    const struct nettrace_sink sink = { 0 };
    struct nettrace_reader *r = nettrace_reader_new(&sink);
    struct error err;
    assert_true(feed(r, buffer_span(&b), 0, &err));
    assert_int_equal(nettrace_reader_counts(r)->time_breaks, 2);
    assert_int_equal(nettrace_reader_counts(r)->untyped, 1);
    assert_int_equal(nettrace_reader_counts(r)->stackless, 2);
    assert_int_equal(nettrace_reader_info(r)->frequency, 1000000000);
    nettrace_reader_free(r);
    buffer_done(&b);
}

static void test_ticks_become_ns(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 1 << 16);
    sample_begin(&b, 10000000, 8);
    sample_type(&b, 1, "P", 7, 0);
    const struct sample_event event = { .type = 1, .sequence = 1, .thread = 9, .ticks = UINT64_C(1) << 55 };
    sample_events(&b, &event, 1);
    bool ok, ended;
    struct error err;
    AUTO_FREE char *text = read_all(buffer_span(&b), 0, &ok, &ended, &err);
    assert_true(ok);
    assert_non_null(strstr(text, "@3602879701896396800 "));
    buffer_done(&b);
}

/* Later runtimes may add kinds of blocks and longer block headers. */
static void test_unknown_blocks_are_skipped(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 1 << 16);
    sample_begin(&b, 1000000000, 8);
    sample_block(&b, "NewBlock", span_of("abc", 3));
    sample_type(&b, 1, "P", 7, 0);
    sample_end(&b);
    bool ok, ended;
    struct error err;
    AUTO_FREE char *text = read_all(buffer_span(&b), 5, &ok, &ended, &err);
    assert_true(ok && ended);
    assert_non_null(strstr(text, "type 1 P/7"));
    buffer_done(&b);
}

static void test_a_block_too_large(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 1 << 16);
    sample_begin(&b, 1000000000, 8);
    sample_object_start(&b, "EventBlock", 2);
    buffer_u32le(&b, NETTRACE_BLOCK_MAX + 1);
    bool ok, ended;
    struct error err = { 0 };
    AUTO_FREE char *text = read_all(buffer_span(&b), 0, &ok, &ended, &err);
    assert_false(ok);
    assert_int_equal(err.kind, ERROR_LIMIT);
    (void)text;
    buffer_done(&b);
}

/* What is beyond our bounds is counted, and what comes behind is read. */
static void test_bounds(void **state)
{
    (void)state;
    struct buffer b, stacks, point;
    struct error err;
    buffer_init(&b, 4 << 20);
    buffer_init(&stacks, 4096);
    buffer_init(&point, 4 << 20);
    sample_begin(&b, 1000000000, 8);
    sample_type(&b, NETTRACE_METADATA_MAX - 1, "P", 7, 0);
    sample_type(&b, NETTRACE_METADATA_MAX, "P", 7, 0); /* 1 */
    buffer_u32le(&stacks, NETTRACE_STACKS_MAX - 1);
    buffer_u32le(&stacks, 3);
    for (unsigned i = 0; i < 3; i++) { /* 2 and 3 */
        buffer_u32le(&stacks, 8);
        buffer_u64le(&stacks, 0x1000);
    }
    sample_block(&b, "StackBlock", buffer_span(&stacks));
    const struct sample_event events[] = {
        { .type = NETTRACE_METADATA_MAX - 1, .sequence = 1, .thread = 1, .stack = NETTRACE_STACKS_MAX - 1 },
        { .type = NETTRACE_METADATA_MAX - 1, .sequence = 2, .thread = 1, .stack = NETTRACE_STACKS_MAX },
    };
    sample_events(&b, events, ARRAY_LEN(events));
    buffer_u64le(&point, 500);
    buffer_u32le(&point, NETTRACE_THREADS_MAX + 2);
    for (uint64_t i = 0; i < NETTRACE_THREADS_MAX + 2; i++) { /* 4 and 5; thread 1 is known */
        buffer_u64le(&point, i + 1);
        buffer_u32le(&point, 2);
    }
    sample_block(&b, "SPBlock", buffer_span(&point));
    sample_end(&b);
    const struct nettrace_sink sink = { 0 };
    struct nettrace_reader *r = nettrace_reader_new(&sink);
    if (!feed(r, buffer_span(&b), 0, &err))
        fail_msg("%s", err.what);
    const struct nettrace_counts *c = nettrace_reader_counts(r);
    assert_true(nettrace_reader_ended(r));
    assert_int_equal(c->limits, 5);
    assert_int_equal(c->events, 2);
    assert_int_equal(c->stackless, 1);
    nettrace_reader_free(r);
    buffer_done(&b);
    buffer_done(&stacks);
    buffer_done(&point);
}

/* NetPerf 3, and nettrace 4 with headers that are not compressed. */
static void append_fixed_event(struct buffer *block, bool netperf, uint32_t type, struct span payload)
{
    struct buffer e;
    buffer_init(&e, 4096);
    buffer_u32le(&e, type);
    if (netperf) {
        buffer_u32le(&e, 9);
        buffer_u64le(&e, 1234);
    } else {
        buffer_u32le(&e, 1); /* sequence */
        buffer_u64le(&e, 9);
        buffer_u64le(&e, 9);
        buffer_u32le(&e, UINT32_MAX);
        buffer_u32le(&e, 0);
        buffer_u64le(&e, 1234);
    }
    for (unsigned i = 0; i < 4; i++)
        buffer_u64le(&e, 0); /* activities */
    buffer_u32le(&e, (uint32_t)payload.size);
    buffer_append(&e, payload.data, payload.size);
    if (netperf) {
        buffer_u32le(&e, 8);
        buffer_u64le(&e, 0x7f0000001000);
    }
    while (e.size % 4)
        buffer_u8(&e, 0);
    buffer_u32le(block, (uint32_t)e.size);
    buffer_append(block, e.data, e.size);
    buffer_done(&e);
}

static void append_type_payload(struct buffer *out)
{
    buffer_u32le(out, 1);
    sample_utf16z(out, "P");
    buffer_u32le(out, 7);
    sample_utf16z(out, "");
    buffer_u64le(out, 0);
    for (unsigned i = 0; i < 3; i++)
        buffer_u32le(out, 0);
}

static void test_netperf(void **state)
{
    (void)state;
    struct buffer nettrace, b, block, type;
    buffer_init(&nettrace, 4096);
    buffer_init(&b, 1 << 16);
    buffer_init(&block, 4096);
    buffer_init(&type, 4096);
    sample_begin(&nettrace, 1000000000, 8);
    buffer_append(&b, nettrace.data + 8, nettrace.size - 8); /* no "Nettrace" in front */
    append_type_payload(&type);
    append_fixed_event(&block, true, 0, buffer_span(&type));
    append_fixed_event(&block, true, 1, span_of("\x11\x22", 2));
    sample_block(&b, "EventBlock", buffer_span(&block));
    sample_end(&b);
    for (size_t size = 0; size <= b.size; size++) {
        bool ok, ended;
        struct error err = { 0 };
        AUTO_FREE char *text = read_all(span_of(b.data, size), 0, &ok, &ended, &err);
        assert_true(ok);
        assert_int_equal(ended, size == b.size);
        if (ended)
            assert_non_null(strstr(text, "info v3"));
        if (ended)
            assert_non_null(strstr(text, " t9 #0 @1234 s8 a0 sorted 1122;"));
    }
    buffer_done(&nettrace);
    buffer_done(&b);
    buffer_done(&block);
    buffer_done(&type);
}

static void test_plain_headers(void **state)
{
    (void)state;
    struct buffer b, block;
    buffer_init(&b, 1 << 16);
    buffer_init(&block, 4096);
    sample_begin(&b, 1000000000, 8);
    sample_type(&b, 1, "P", 7, 0);
    buffer_u16le(&block, 24); /* longer than we know */
    buffer_u16le(&block, 0);
    buffer_u64le(&block, 0);
    buffer_u64le(&block, UINT64_MAX);
    buffer_u32le(&block, 0xdeadbeef);
    append_fixed_event(&block, false, 1, span_of("\x11\x22", 2));
    append_fixed_event(&block, false, 1 | 1u << 31, span_of("\x33", 1));
    sample_block(&b, "EventBlock", buffer_span(&block));
    bool ok, ended;
    struct error err = { 0 };
    AUTO_FREE char *text = read_all(buffer_span(&b), 0, &ok, &ended, &err);
    assert_true(ok);
    assert_non_null(
        strstr(text, "event 1 p4242 t9 #1 @1234 s0 a0 sorted 1122;event 1 p4242 t9 #1 @1234 s0 a0 33;"));
    buffer_done(&b);
    buffer_done(&block);
}

/* What is whole is taken from where it is; what is asked for is enough to get on. */
static void test_taken_where_it_is(void **state)
{
    (void)state;
    const struct nettrace_sink sink = { 0 };
    struct nettrace_reader *r = nettrace_reader_new(&sink);
    struct error err = { 0 };
    size_t at = 0, taken;
    while (!nettrace_reader_ended(r)) {
        size_t wanted = nettrace_reader_wanted(r);
        assert_true(wanted >= 1 && wanted <= sizeof worked - at);
        assert_true(nettrace_reader_take(r, span_of(worked + at, wanted), &taken, &err));
        assert_int_equal(taken, wanted);
        at += taken;
    }
    assert_int_equal(at, sizeof worked);
    nettrace_reader_free(r);
    r = nettrace_reader_new(&sink);
    assert_true(nettrace_reader_take(r, span_of(worked, sizeof worked - 5), &taken, &err));
    assert_true(taken < sizeof worked - 5 && taken + nettrace_reader_wanted(r) > sizeof worked - 5);
    nettrace_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_chunking),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_refused_starts),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_odd_clocks),
        cmocka_unit_test(test_ticks_become_ns),
        cmocka_unit_test(test_unknown_blocks_are_skipped),
        cmocka_unit_test(test_a_block_too_large),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_netperf),
        cmocka_unit_test(test_plain_headers),
        cmocka_unit_test(test_taken_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
