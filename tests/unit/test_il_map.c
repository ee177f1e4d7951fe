#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../flat_memory.h"
#include "base/own.h"
#include "clr/jit_il_map.h"
#include "read/il_map.h"

enum { CODE_BYTES = 0x200, SAMPLE_POINTS = 6 };

/* The same six points in both forms. */
static const uint8_t nibbles[] = { 0x59, 0x00, 0x06, 0x21, 0x34, 0x92, 0x94, 0x22,
                                   0x20, 0xa2, 0x95, 0x24, 0x9f, 0x06, 0x02 };
static const uint8_t packed[] = { 0x69, 0x00, 0x96, 0x30, 0x02, 0x08, 0x09, 0x8c,
                                  0x0c, 0x54, 0x00, 0x62, 0x05, 0xd6, 0x39, 0x00 };
static const uint8_t two_bounds[] = { 0xfb, 0xff, 0xff, 0xff, 0xff, 0x97, 0x06, 0x00, 0x96, 0x30, 0x02,
                                      0x08, 0x09, 0x8c, 0x0c, 0x54, 0x00, 0x62, 0x05, 0xd6, 0x39, 0x00 };

/* With a bit more for each point, behind the short head and the long one. */
static const uint8_t headed[] = { 0x69, 0x00, 0x96, 0x30, 0x02, 0x10, 0x22, 0x30,
                                  0x62, 0xa0, 0x02, 0x20, 0xaa, 0xc0, 0x72, 0x0e };
static const uint8_t headed_long[] = { 0x90, 0x96, 0x01, 0xa9, 0x00, 0x00, 0x96, 0x30, 0x02, 0x10,
                                       0x22, 0x30, 0x62, 0xa0, 0x02, 0x20, 0xaa, 0xc0, 0x72, 0x0e };

static const struct {
    const char *name;
    enum il_map_form form;
    const uint8_t *bytes;
    size_t size;
} samples[] = {
    { "nibbles", IL_MAP_NIBBLES, nibbles, sizeof nibbles },
    { "packed", IL_MAP_PACKED, packed, sizeof packed },
    { "packed, two bounds", IL_MAP_PACKED, two_bounds, sizeof two_bounds },
    { "headed", IL_MAP_HEADED, headed, sizeof headed },
    { "headed, all parts", IL_MAP_HEADED, headed_long, sizeof headed_long },
};

static void test_find(void **state)
{
    (void)state;
    static const struct {
        uint32_t code_off, il_off;
    } answers[] = {
        { 0, IL_PROLOG },        { 3, IL_PROLOG }, { 4, 0 },     { 0xf, 0 },   { 0x10, IL_NO_MAPPING },
        { 0x24, IL_NO_MAPPING }, { 0x25, 9 },      { 0x1f2, 9 }, { 0x1f3, 9 }, { UINT32_MAX, 9 },
    };
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct il_map map;
        struct error err;
        if (!il_map_read(span_of(samples[s].bytes, samples[s].size), samples[s].form, CODE_BYTES, &map, &err))
            fail_msg("%s: %s", samples[s].name, err.what);
        assert_int_equal(map.count, SAMPLE_POINTS);
        for (size_t i = 0; i < ARRAY_LEN(answers); i++)
            if (il_map_find(map.points, map.count, answers[i].code_off) != answers[i].il_off)
                fail_msg("%s at 0x%x", samples[s].name, answers[i].code_off);
        il_map_done(&map);
    }
    assert_int_equal(il_map_find(NULL, 0, 7), IL_PROLOG);
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(samples); s++)
        for (size_t size = 0; size < samples[s].size; size++) {
            struct il_map map;
            if (il_map_read(span_of(samples[s].bytes, size), samples[s].form, CODE_BYTES, &map, NULL))
                fail_msg("%s cut at %zu", samples[s].name, size);
        }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum il_map_form form;
        uint8_t bytes[12];
        enum error_kind kind;
    } cases[] = {
        { "no bounds", IL_MAP_NIBBLES, { 0x00 }, ERROR_UNSUPPORTED },
        { "no points", IL_MAP_NIBBLES, { 0x01, 0x00 }, ERROR_INPUT },
        { "wider than 32 bits", IL_MAP_NIBBLES, { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f }, ERROR_INPUT },
        { "2^27 points", IL_MAP_NIBBLES, { 0x01, 0x99, 0x88, 0x88, 0x88, 0x08 }, ERROR_INPUT },
        { "64 bits for an offset", IL_MAP_PACKED, { 0x01, 0x01, 0x8f, 0x07 }, ERROR_INPUT },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct il_map map;
        struct error err;
        if (il_map_read(span_of(cases[i].bytes, sizeof cases[i].bytes), cases[i].form, CODE_BYTES, &map,
                        &err) ||
            err.kind != cases[i].kind)
            fail_msg("%s", cases[i].name);
    }
    struct il_map map;
    struct error err;
    /* the same map of a shorter method */
    assert_false(il_map_read(span_of(nibbles, sizeof nibbles), IL_MAP_NIBBLES, 0x1f2, &map, &err));
    assert_int_equal(err.kind, ERROR_INPUT);
}

/* What the JIT puts before the map. */
static void test_jit_start(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned major;
        uint8_t bytes[64];
        size_t size, start;
        bool ok;
    } cases[] = {
        { "3.1 has no flags", 3, { 0x59 }, 1, 0, true },
        { "11 has no flags", 11, { 0x3b }, 1, 0, true },
        { "plain", 8, { 0x00, 0x59 }, 2, 1, true },
        { "patch points of 9", 9, { [0] = 1, [9] = 2 }, 64, 1 + 32 + 8, true },
        { "patch points of 10", 10, { [0] = 1, [17] = 3 }, 64, 1 + 40 + 12, true },
        { "patch points of 6", 6, { [0] = 1, [1] = 1 }, 64, 1 + 20 + 4, true },
        { "rich", 10, { 2, 5, 0, 0, 0 }, 64, 10, true },
        { "patch points and rich", 8, { [0] = 3, [33] = 4 }, 64, 1 + 32 + 4 + 4, true },
        { "unknown flag", 8, { 4 }, 64, 0, false },
        { "more locals than bytes", 9, { [0] = 1, [12] = 0xff }, 64, 0, false },
        { "cut", 10, { 1 }, 20, 0, false },
        { "nothing", 8, { 0 }, 0, 0, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t start = 0;
        bool ok = jit_il_map_start(span_of(cases[i].bytes, cases[i].size), cases[i].major, &start);
        if (ok != cases[i].ok || (ok && start != cases[i].start))
            fail_msg("%s: %zu", cases[i].name, start);
    }
}

/* A method of runtime 8 in memory: the word before it leads to a header, that to its debug info, in the last
 * page. */
enum { BODY = 0x100, HEADER = 0x200, HEADER_COUNT = 8, HEADER_UNWINDS = 16, BYTES = 0x2000 };
#define BASE UINT64_C(0x7f0000000000)

static uint8_t bytes[BYTES];
static struct flat_memory flat = { BASE, bytes, BYTES };

static void put_nibble(size_t *at, unsigned value)
{
    bytes[*at / 2] |= (uint8_t)(value << (*at % 2 * 4));
    (*at)++;
}

/* Of up to 9 bits, as nibbles of three bits. */
static void put_number(size_t *at, uint32_t value)
{
    put_nibble(at, 8 | (value >> 6 & 7));
    put_nibble(at, 8 | (value >> 3 & 7));
    put_nibble(at, value & 7);
}

/* `points` of a byte of code and one of IL each, in the form with nibbles; returns where the info ends. */
static size_t put_map(size_t info, uint32_t points)
{
    size_t at = (info + 1) * 2; /* no flags */
    put_number(&at, 1);         /* bytes of bounds: only that there are some is looked at */
    put_number(&at, 0);
    at += at % 2;
    put_nibble(&at, 8 | points / 512 % 8);
    put_number(&at, points % 512);
    for (uint32_t i = 0; i < points; i++) {
        put_nibble(&at, i > 0); /* step */
        put_number(&at, i % 500 + 3);
        put_nibble(&at, 0);
    }
    return (at + 1) / 2;
}

static bool read_jitted(uint32_t points, struct il_map *out, struct error *err)
{
    static const struct runtime_layout layout = { .header = { .unwind_count = HEADER_COUNT,
                                                              .unwinds = HEADER_UNWINDS } };
    struct memory memory = { .read = flat_memory_read, .user = &flat };
    struct memory_pages pages;
    memset(bytes, 0, sizeof bytes);
    flat.size = put_map(HEADER + 0x100, points) / MEMORY_PAGE_BYTES * MEMORY_PAGE_BYTES + MEMORY_PAGE_BYTES;
    flat_memory_put64(&flat, BASE + BODY - 8, BASE + HEADER);
    flat_memory_put64(&flat, BASE + HEADER, BASE + HEADER + 0x100);
    flat_memory_put32(&flat, BASE + HEADER + HEADER_COUNT, 1);
    flat_memory_put32(&flat, BASE + HEADER + HEADER_UNWINDS + 4, CODE_BYTES);
    memory_pages_init(&pages, &memory, 1 << 20);
    bool ok = jit_il_map_read(&pages, &layout, 8, BASE + BODY, CODE_BYTES, out, err);
    memory_pages_done(&pages);
    return ok;
}

/* However long the map is, which only reading it tells. */
static void test_jit_read(void **state)
{
    (void)state;
    static const uint32_t counts[] = { 1, 200, 201, 400, 512 };
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct il_map map;
        struct error err;
        if (!read_jitted(counts[i], &map, &err))
            fail_msg("%u points: %s", counts[i], err.what);
        assert_int_equal(map.count, counts[i]);
        assert_int_equal(il_map_find(map.points, map.count, counts[i] - 1), (counts[i] - 1) % 500);
        il_map_done(&map);
    }
    struct il_map map;
    struct error err;
    assert_false(read_jitted(CODE_BYTES + 2, &map, &err)); /* more code than there is */
    assert_int_equal(err.kind, ERROR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),      cmocka_unit_test(test_cut),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_jit_start), cmocka_unit_test(test_jit_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
