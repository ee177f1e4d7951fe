#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/own.h"
#include "nettrace_told.h"

/* A stream of one thread with all kinds of blocks, written by hand. */
static const uint8_t worked[] = {
    0x4e, 0x65, 0x74, 0x74, 0x72, 0x61, 0x63, 0x65, 0x00, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x37, 0x00, 0x00, 0x01, 0xe9, 0x07, 0x03, 0x00, 0x02, 0x00, 0x12, 0x00, 0x09, 0x00,
    0x1e, 0x00, 0x0f, 0x00, 0xfa, 0x00, 0x00, 0x10, 0xa5, 0xd4, 0xe8, 0x00, 0x00, 0x00, 0x00, 0xca, 0x9a,
    0x3b, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x09, 0x50, 0x72, 0x6f,
    0x63, 0x65, 0x73, 0x73, 0x49, 0x64, 0x04, 0x34, 0x32, 0x34, 0x32, 0x0f, 0x00, 0x00, 0x06, 0x0d, 0x00,
    0x01, 0x02, 0x92, 0x21, 0x03, 0x93, 0x21, 0x01, 0x04, 0x6d, 0x61, 0x69, 0x6e, 0x24, 0x00, 0x00, 0x03,
    0x00, 0x00, 0x20, 0x00, 0x01, 0x01, 0x50, 0x07, 0x01, 0x45, 0x02, 0x00, 0x03, 0x00, 0x01, 0x6e, 0x15,
    0x04, 0x00, 0x01, 0x76, 0x13, 0x09, 0x0b, 0x00, 0x08, 0x04, 0x03, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x1c, 0x00, 0x00, 0x05, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00,
    0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x7f, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x7f, 0x00, 0x00,
    0x22, 0x00, 0x00, 0x08, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x02, 0x03,
    0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x84, 0x88, 0x77, 0x66, 0x55,
    0x44, 0x33, 0x22, 0x11, 0x3a, 0x00, 0x00, 0x02, 0x14, 0x00, 0x01, 0x00, 0x64, 0x10, 0xa5, 0xd4, 0xe8,
    0x00, 0x00, 0x00, 0xb4, 0x10, 0xa5, 0xd4, 0xe8, 0x00, 0x00, 0x00, 0xdf, 0x01, 0x00, 0x01, 0x03, 0x01,
    0x01, 0xe4, 0xa0, 0x94, 0xa5, 0x8d, 0x1d, 0x01, 0x0c, 0xac, 0x02, 0x02, 0x00, 0x05, 0x00, 0x00, 0x00,
    0x06, 0x00, 0x00, 0x00, 0x90, 0x50, 0x00, 0x07, 0x01, 0x01, 0x00, 0x09, 0x00, 0x00, 0x00, 0x12, 0x00,
    0x00, 0x04, 0xc8, 0x10, 0xa5, 0xd4, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
    0x00, 0x01, 0x02, 0x02, 0x00, 0x00, 0x07, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00
};

enum { WORKED_FIRST = 232 /* the first event's header */, WORKED_POINT = 270 };

static const char worked_text[] =
    "info v6 2025-3-18 f1000000000 p8 pid4242;thread 4243 of 4242 main;type 1 P/7 E v6:1 op0 k10 l4 v0 f13 "
    "p0;"
    "event 1 p4242 t4243 #1 @1000000000100 s16 a16 sorted ac0202000500000006000000;"
    "event 1 p4242 t4243 #2 @1000000000180 s16 a0 01010009000000;point @1000000000200;";

static void test_worked(void **state)
{
    (void)state;
    for (size_t step = 0; step < 40; step++) {
        bool ok, ended;
        struct error err;
        AUTO_FREE char *text = read_all(span_of(worked, sizeof worked), step, &ok, &ended, &err);
        assert_true(ok && ended);
        assert_string_equal(text, worked_text);
    }
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof worked; size++) {
        bool ok, ended;
        struct error err;
        AUTO_FREE char *text = read_all(span_of(worked, size), 0, &ok, &ended, &err);
        assert_true(ok && !ended);
        assert_memory_equal(text, worked_text, strlen(text)); /* what is whole, and nothing else */
    }
}

static void test_every_bit_flipped(void **state)
{
    (void)state;
    uint8_t bytes[sizeof worked];
    for (size_t bit = 0; bit < 8 * sizeof worked; bit++) {
        bool ok, ended;
        struct error err = { 0 };
        memcpy(bytes, worked, sizeof worked);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        AUTO_FREE char *text = read_all(span_of(bytes, sizeof bytes), 0, &ok, &ended, &err);
        assert_true(text && (ok || err.what[0]));
    }
}

/* Bytes of the worked stream replaced by others. */
struct change {
    size_t off;
    const char *bytes;
    size_t size;
};

static void test_changed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct change change;
        const char *told; /* part of what is told, or of the error */
        bool ok;
    } cases[] = {
        { "a later minor version", { 16, "\7", 1 }, "point @", true },
        { "another major version", { 12, "\7", 1 }, "nettrace version 7", false },
        { "an unknown kind of block", { 82, "\x63", 1 }, "p4242 t0 #1", true },
        { "numbers that jump", { WORKED_FIRST + 2, "\4", 1 }, "lost t1 4;event 1 p4242 t4243 #5", true },
        { "the point is ahead",
          { WORKED_POINT + 21, "\5", 1 },
          "#2 @1000000000180 s16 a0 01010009000000;lost t1 3;",
          true },
        { "the thread's end is ahead",
          { sizeof worked - 5, "\6", 1 },
          "point @1000000000200;lost t1 4;",
          true },
        { "a thread that is not listed", { WORKED_FIRST + 5, "\x2a", 1 }, "p4242 t0 #1", true },
        { "labels that are not there", { 174, "\5", 1 }, "#1 @1000000000100 s16 a0", true },
        { "a label of an unknown kind", { 182, "\x7f", 1 }, "LabelList", false },
        { "a thread's row past the block", { 83, "\x7f", 1 }, "a Thread block", false },
        { "a type's row past the block", { 104, "\x7f", 1 }, "Metadata block", false },
        { "a second trace block", { 82, "\1", 1 }, "out of place", false },
    };
    uint8_t bytes[sizeof worked];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool ok, ended;
        struct error err = { 0 };
        memcpy(bytes, worked, sizeof worked);
        memcpy(bytes + cases[i].change.off, cases[i].change.bytes, cases[i].change.size);
        AUTO_FREE char *text = read_all(span_of(bytes, sizeof bytes), 0, &ok, &ended, &err);
        if (ok != cases[i].ok || !strstr(ok ? text : err.what, cases[i].told))
            fail_msg("%s: %s %s", cases[i].name, text, err.what);
    }
}

/* The point forgets what it says it does: what comes behind it refers to nothing. */
static void test_point_forgets(void **state)
{
    (void)state;
    static const struct {
        uint8_t flags;
        const char *told;
    } cases[] = {
        { 0, "point @1000000000200;event 1 p4242 t4243 #3 @1000000000300 s0 a0" },
        { 1, "point @1000000000200;lost t1 2;event 1 p4242 t0 #3 @1000000000300 s0 a0" },
        { 2, "point @1000000000200;" },
    };
    /* type 1; number + 1; thread 1 on both counts; a stack and labels from before the point; 300 */
    static const uint8_t event[] = { 0x21, 0, 0, 2,    20,   0,    1,    0,    0,    0,    0,    0,    0,
                                     0,    0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xdf, 1,
                                     2,    1, 3, 1,    1,    0xac, 0xa2, 0x94, 0xa5, 0x8d, 0x1d };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool ok, ended;
        struct error err = { 0 };
        struct buffer stream;
        buffer_init(&stream, 4096);
        buffer_append(&stream, worked, 292); /* up to the point's end */
        stream.data[282] = cases[i].flags;
        buffer_append(&stream, event, sizeof event);
        buffer_append(&stream, "\1\0\0\0\0\0", 6);
        stream.data[292] = (uint8_t)(sizeof event - 4 + 2);
        AUTO_FREE char *text = read_all(buffer_span(&stream), 0, &ok, &ended, &err);
        if (!ok || !ended || !strstr(text, cases[i].told))
            fail_msg("%zu: %s %s", i, text, err.what);
        buffer_done(&stream);
    }
}

/* Headers of fixed size, without padding between events of odd sizes. */
static void test_plain_headers(void **state)
{
    (void)state;
    struct buffer stream, block;
    bool ok, ended;
    struct error err = { 0 };
    buffer_init(&stream, 4096);
    buffer_init(&block, 4096);
    buffer_append(&stream, worked, 208); /* up to the events */
    buffer_append(&block, worked + 212, 20);
    block.data[2] = 0; /* flags */
    for (uint32_t sequence = 1; sequence <= 2; sequence++) {
        buffer_u32le(&block, 4 + 4 + 8 + 8 + 4 + 4 + 8 + 4 + 4 + 3);
        buffer_u32le(&block, 1);
        buffer_u32le(&block, sequence);
        buffer_u64le(&block, 1);
        buffer_u64le(&block, 1);
        buffer_u32le(&block, UINT32_MAX);
        buffer_u32le(&block, 1);
        buffer_u64le(&block, 1000000000100);
        buffer_u32le(&block, sequence - 1); /* labels */
        buffer_u32le(&block, 3);
        buffer_append(&block, "\7\0\0", 3);
    }
    buffer_u32le(&stream, (uint32_t)block.size | 2u << 24);
    buffer_append(&stream, block.data, block.size);
    buffer_u32le(&stream, 0);
    AUTO_FREE char *text = read_all(buffer_span(&stream), 0, &ok, &ended, &err);
    assert_true(ok && ended);
    assert_non_null(strstr(text, "event 1 p4242 t4243 #1 @1000000000100 s16 a0 sorted 070000;"
                                 "event 1 p4242 t4243 #2 @1000000000100 s16 a16 sorted 070000;"));
    buffer_done(&stream);
    buffer_done(&block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked),
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_every_bit_flipped),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_point_forgets),
        cmocka_unit_test(test_plain_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
