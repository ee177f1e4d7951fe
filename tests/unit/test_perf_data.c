/*
 * The golden file is made by `generate perf-data 40 /opt/acme/workload 7 < /dev/null` (bench/generate.c).
 * Pipe and compressed forms are made from it here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "base/buffer.h"
#include "base/id_map.h"
#include "base/own.h"
#include "read/perf_data.h"
#include "read/perf_order.h"

enum { GOLDEN_SAMPLES = 40, GOLDEN_RECORDS = 43, DATA_SECTION_AT = 40 };

static struct span golden;

static int load_golden(void **state)
{
    (void)state;
    static uint8_t bytes[65536];
    AUTO_STREAM FILE *file = fopen(GOLDEN_DIR "/perf_data"
                                              "/small.perf.data",
                                   "rb");
    if (!file)
        return -1;
    golden = span_of(bytes, fread(bytes, 1, sizeof bytes, file));
    return golden.size ? 0 : -1;
}

enum { UNSETTLED_MAX = 4096 };

struct seen {
    uint64_t samples, records, last_ns, backwards, frames, events[4];
    struct span unsettled[UNSETTLED_MAX]; /* callchains that were handed out and must still be there */
    uint64_t hashes[UNSETTLED_MAX];
    size_t unsettled_count;
    uint64_t changed;
    char path[64];
};

static bool see(void *user, uint32_t event, const struct perf_record *r, struct error *err)
{
    struct seen *seen = user;
    (void)err;
    seen->records++;
    seen->events[event & 3] += r->type == PERF_RECORD_SAMPLE;
    if (r->type == PERF_RECORD_MMAP2)
        snprintf(seen->path, sizeof seen->path, "%.*s", (int)r->mmap.path.size,
                 (const char *)r->mmap.path.data);
    if (r->type != PERF_RECORD_SAMPLE)
        return true;
    uint64_t into[128];
    seen->frames += perf_callchain_split(r->sample.callchain, into, ARRAY_LEN(into)).user_count;
    seen->backwards += r->who.time_ns < seen->last_ns;
    seen->last_ns = r->who.time_ns;
    seen->samples++;
    if (seen->unsettled_count < UNSETTLED_MAX) {
        seen->unsettled[seen->unsettled_count] = r->sample.callchain;
        seen->hashes[seen->unsettled_count++] =
            hash_bytes(r->sample.callchain.data, r->sample.callchain.size);
    }
    return true;
}

static void settle(void *user)
{
    struct seen *seen = user;
    for (size_t i = 0; i < seen->unsettled_count; i++)
        seen->changed += hash_bytes(seen->unsettled[i].data, seen->unsettled[i].size) != seen->hashes[i];
    seen->unsettled_count = 0;
}

static bool read_bytes(struct span bytes, struct seen *seen, struct perf_data_stats *stats, struct error *err)
{
    struct byte_stream stream;
    struct perf_data p;
    *seen = (struct seen){ 0 };
    /* smaller than real ones: 30,000 of them are made here */
    byte_stream_over(&stream, bytes, 1 << 16);
    bool ok = perf_data_open(&p, &stream, err);
    if (ok) {
        ok = perf_data_read(&p, see, settle, seen, err);
        *stats = p.stats;
        assert_int_equal(seen->changed, 0);
        assert_int_equal(seen->unsettled_count, 0);
        perf_data_close(&p);
    }
    byte_stream_close(&stream);
    return ok;
}

static void check_whole(struct span bytes)
{
    struct seen seen;
    struct perf_data_stats stats = { 0 };
    struct error err;
    if (!read_bytes(bytes, &seen, &stats, &err))
        fail_msg("%s", err.what);
    assert_int_equal(seen.samples, GOLDEN_SAMPLES);
    assert_int_equal(seen.records, GOLDEN_RECORDS);
    assert_int_equal(seen.backwards, 0);
    assert_int_equal(stats.late, 0);
    assert_int_equal(stats.malformed, 0);
    assert_string_equal(stats.damage, "");
    assert_string_equal(seen.path, "/opt/acme/workload");
}

static void test_file(void **state)
{
    (void)state;
    struct byte_stream stream;
    struct perf_data p;
    struct error err;
    check_whole(golden);
    byte_stream_over(&stream, golden, PERF_DATA_WINDOW_BYTES);
    assert_true(perf_data_open(&p, &stream, &err));
    assert_int_equal(p.header.event_count, 1);
    assert_int_equal(p.header.id_count, 2);
    assert_string_equal(p.header.events[0].name, "cpu-clock");
    assert_string_equal(p.header.hostname, "bench");
    assert_string_equal(p.header.arch, "x86_64");
    assert_string_equal(p.header.command_line, "generate perf-data");
    assert_int_equal(p.header.cpus_online, 2);
    assert_int_equal(p.header.damaged_features, 0);
    perf_data_close(&p);
    byte_stream_close(&stream);
}

static uint64_t data_start(void)
{
    return load_u64le(golden.data + DATA_SECTION_AT);
}

/* Whole samples in the first `size` bytes of a file. */
static uint64_t whole_samples(const uint8_t *data, size_t size, size_t at)
{
    uint64_t samples = 0;
    while (size >= 8 && at <= size - 8) {
        size_t record = (size_t)(data[at + 6] | data[at + 7] << 8);
        if (record < 8 || record > size - at)
            break;
        samples += load_u32le(data + at) == PERF_RECORD_SAMPLE;
        at += record;
    }
    return samples;
}

static void check_cut(size_t size, bool is_killed)
{
    AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
    struct seen seen;
    struct perf_data_stats stats = { 0 };
    struct error err;
    memcpy(cut, golden.data, size);
    if (is_killed && size >= DATA_SECTION_AT + 16)
        memset(cut + DATA_SECTION_AT + 8, 0, 8);
    bool ok = read_bytes(span_of(cut, size), &seen, &stats, &err);
    if (size < data_start()) {
        if (ok && seen.samples)
            fail_msg("samples in %zu bytes", size);
        return;
    }
    uint64_t data_end = data_start() + load_u64le(golden.data + DATA_SECTION_AT + 8);
    uint64_t wanted = size < data_end ? whole_samples(cut, size, data_start()) : GOLDEN_SAMPLES;
    if (!ok || seen.samples != wanted)
        fail_msg("%zu bytes: %d, %d samples of %d", size, ok, (int)seen.samples, (int)wanted);
    assert_int_equal(stats.is_unfinished, is_killed);
    if (!is_killed)
        assert_int_equal(stats.is_cut, size < data_end);
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    for (size_t size = 0; size < golden.size; size++) {
        check_cut(size, false);
        check_cut(size, true);
    }
}

static void put_header(struct buffer *b, uint32_t type, size_t size)
{
    buffer_u32le(b, type);
    buffer_u16le(b, 0);
    buffer_u16le(b, (uint16_t)size);
}

/* The golden file's event and records as `perf record -o -` writes them. */
static void begin_pipe(struct buffer *b)
{
    uint64_t attrs_at = load_u64le(golden.data + 24);
    buffer_init(b, 1 << 20);
    buffer_string(b, "PERFILE2");
    buffer_u64le(b, 16);
    put_header(b, 64, 8 + 128 + 8);
    buffer_append(b, golden.data + attrs_at, 128);
    buffer_u64le(b, 100);
}

static struct span golden_data(void)
{
    return span_part(golden, data_start(), load_u64le(golden.data + DATA_SECTION_AT + 8));
}

static void test_pipe(void **state)
{
    (void)state;
    struct buffer b;
    begin_pipe(&b);
    buffer_append(&b, golden_data().data, golden_data().size);
    /* hardware trace and tracing data are followed by bytes that no record counts */
    put_header(&b, 71, 16);
    buffer_u64le(&b, 20);
    buffer_append(&b, "AUXAUXAUXAUXAUXAUXAU", 20);
    put_header(&b, 66, 12);
    buffer_u32le(&b, 5);
    buffer_append(&b, "trace\0\0\0", 8);
    put_header(&b, 68, 8);
    check_whole(buffer_span(&b));
    buffer_done(&b);
}

/* `part`: compressed bytes in one record; records of the inside end anywhere. */
static void compress_golden(struct buffer *b, size_t part)
{
    static uint8_t packed[65536];
    size_t size = ZSTD_compress(packed, sizeof packed, golden_data().data, golden_data().size, 3);
    assert_false(ZSTD_isError(size));
    begin_pipe(b);
    for (size_t at = 0; at < size; at += part) {
        size_t now = size - at < part ? size - at : part;
        put_header(b, 81, 8 + now);
        buffer_append(b, packed + at, now);
    }
    put_header(b, 68, 8);
}

static void test_compressed(void **state)
{
    (void)state;
    static const size_t parts[] = { 1, 7, 100, 1000, 60000 };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct buffer b;
        compress_golden(&b, parts[i]);
        check_whole(buffer_span(&b));
        buffer_done(&b);
    }
}

static void test_compressed_cut_everywhere(void **state)
{
    (void)state;
    struct buffer b;
    compress_golden(&b, 500);
    for (size_t size = 0; size < b.size; size++) {
        AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
        struct seen seen;
        struct perf_data_stats stats = { 0 };
        struct error err;
        memcpy(cut, b.data, size);
        if (read_bytes(span_of(cut, size), &seen, &stats, &err) && seen.samples > GOLDEN_SAMPLES)
            fail_msg("%zu bytes", size);
    }
    buffer_done(&b);
}

/* All compressed records are whole, but the last one inside is not. */
static void test_compressed_ends_within_a_record(void **state)
{
    (void)state;
    static uint8_t packed[65536];
    struct buffer b;
    struct seen seen;
    struct perf_data_stats stats = { 0 };
    for (size_t missing = 0; missing < 40; missing += 13) {
        size_t size =
            ZSTD_compress(packed, sizeof packed, golden_data().data, golden_data().size - missing, 3);
        assert_false(ZSTD_isError(size));
        begin_pipe(&b);
        put_header(&b, 81, 8 + size);
        buffer_append(&b, packed, size);
        assert_true(read_bytes(buffer_span(&b), &seen, &stats, NULL));
        assert_int_equal(stats.is_cut, missing != 0);
        buffer_done(&b);
    }
}

/* Many events may name the same ids in the file: all they name counts, or reading them takes minutes. */
static void test_shared_ids(void **state)
{
    (void)state;
    enum { EVENTS = 1024, ENTRY = 80, ATTRS_AT = 104, IDS_AT = ATTRS_AT + EVENTS * ENTRY, IDS_MAX = 1025 };
    for (uint64_t ids = IDS_MAX - 1; ids <= IDS_MAX; ids++) {
        struct buffer b;
        buffer_init(&b, 1 << 20);
        buffer_string(&b, "PERFILE2");
        const uint64_t header[] = { ATTRS_AT, ENTRY, ATTRS_AT, EVENTS * ENTRY, IDS_AT + 8 * IDS_MAX, 8 };
        for (size_t i = 0; i < (ATTRS_AT - 8) / 8; i++)
            buffer_u64le(&b, i < ARRAY_LEN(header) ? header[i] : 0);
        for (unsigned event = 0; event < EVENTS; event++) {
            for (unsigned i = 0; i < 8; i++)
                buffer_u64le(&b, 0);
            buffer_u64le(&b, IDS_AT);
            buffer_u64le(&b, 8 * ids);
        }
        for (unsigned i = 0; i < IDS_MAX; i++)
            buffer_u64le(&b, 7);
        put_header(&b, 68, 8);
        struct seen seen;
        struct perf_data_stats stats;
        struct error err = { 0 };
        bool ok = read_bytes(buffer_span(&b), &seen, &stats, &err);
        assert_int_equal(ok, ids < IDS_MAX);
        assert_true(ok || err.kind == ERROR_LIMIT);
        buffer_done(&b);
    }
}

static void test_compressed_damage(void **state)
{
    (void)state;
    struct seen seen;
    struct perf_data_stats stats = { 0 };
    struct error err;
    struct buffer b;

    begin_pipe(&b);
    put_header(&b, 81, 24);
    buffer_append(&b, "not zstd at all.", 16);
    assert_true(read_bytes(buffer_span(&b), &seen, &stats, &err));
    assert_non_null(strstr(stats.damage, "cannot be unpacked"));
    buffer_done(&b);

    /* 256 MiB of zeros: records of size 0 */
    size_t zeros_size = (size_t)1 << 28;
    AUTO_FREE uint8_t *zeros = calloc(zeros_size, 1);
    static uint8_t packed[65000];
    size_t size = ZSTD_compress(packed, sizeof packed, zeros, zeros_size, 3);
    assert_false(ZSTD_isError(size));
    begin_pipe(&b);
    put_header(&b, 81, 8 + size);
    buffer_append(&b, packed, size);
    assert_true(read_bytes(buffer_span(&b), &seen, &stats, &err));
    assert_string_not_equal(stats.damage, "");
    buffer_done(&b);

    /* the same of records that are whole: the ratio ends it */
    for (size_t at = 0; at < zeros_size; at += 32768) {
        zeros[at] = 68;
        zeros[at + 7] = 0x80;
    }
    size = ZSTD_compress(packed, sizeof packed, zeros, zeros_size, 3);
    assert_false(ZSTD_isError(size));
    begin_pipe(&b);
    put_header(&b, 81, 8 + size);
    buffer_append(&b, packed, size);
    assert_true(read_bytes(buffer_span(&b), &seen, &stats, &err));
    assert_non_null(strstr(stats.damage, "times their size"));
    buffer_done(&b);
}

static void test_hostile_headers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t at;
        uint64_t value;
        const char *wanted; /* in the error */
    } cases[] = {
        { "not perf", 0, 0, "not of version 2" },
        { "big-endian", 0, 0x5045524649454c32, "version 2" },
        { "attributes of 0 bytes", 16, 0, "attributes of 0 bytes" },
        { "attributes of too many bytes", 16, 1 << 20, "attributes of 1048576 bytes" },
        { "attributes elsewhere", 24, UINT64_MAX - 8, "wanted at offset" },
        { "too many attributes", 32, UINT64_MAX, "events, more than" },
        { "no attributes", 32, 0, "no events" },
        { "data in the header", 40, 8, "in its header" },
        { "ids elsewhere", 104 + 16 + 128, UINT64_MAX, "the ids of event" },
        { "too many ids", 104 + 16 + 136, UINT64_MAX, "the ids of event" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE uint8_t *copy = malloc(golden.size);
        struct seen seen;
        struct perf_data_stats stats = { 0 };
        struct error err = { 0 };
        memcpy(copy, golden.data, golden.size);
        memcpy(copy + cases[i].at, &cases[i].value, 8);
        if (read_bytes(span_of(copy, golden.size), &seen, &stats, &err) || !strstr(err.what, cases[i].wanted))
            fail_msg("%s: %s", cases[i].name, err.what);
    }
}

/* A record of size 0 ends the reading, and what came before stands. */
static void test_damage_in_the_middle(void **state)
{
    (void)state;
    AUTO_FREE uint8_t *copy = malloc(golden.size);
    memcpy(copy, golden.data, golden.size);
    size_t at = data_start();
    for (unsigned i = 0; i < 20; i++)
        at += (size_t)(copy[at + 6] | copy[at + 7] << 8);
    copy[at + 6] = copy[at + 7] = 0;
    struct seen seen;
    struct perf_data_stats stats = { 0 };
    struct error err;
    assert_true(read_bytes(span_of(copy, golden.size), &seen, &stats, &err));
    assert_int_equal(seen.records, 20);
    assert_int_equal(stats.damage_off, at);
    assert_true(stats.damage_bytes > 0);
    assert_non_null(strstr(stats.damage, "claims 0 bytes"));
}

static void put_two_event_sample(struct buffer *b, uint64_t id, uint64_t time_ns)
{
    put_header(b, PERF_RECORD_SAMPLE, 32);
    buffer_u64le(b, id);
    buffer_u64le(b, (uint64_t)2 << 32 | 1);
    buffer_u64le(b, time_ns);
}

static void test_two_events(void **state)
{
    (void)state;
    struct buffer b;
    buffer_init(&b, 1 << 16);
    buffer_string(&b, "PERFILE2");
    buffer_u64le(&b, 16);
    for (uint64_t event = 0; event < 2; event++) {
        put_header(&b, 64, 8 + 64 + 8);
        buffer_u32le(&b, PERF_TYPE_SOFTWARE);
        buffer_u32le(&b, 64);
        buffer_u64le(&b, event ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_CPU_CLOCK);
        buffer_u64le(&b, 1);
        buffer_u64le(&b, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
        for (unsigned i = 0; i < 4; i++)
            buffer_u64le(&b, 0);
        buffer_u64le(&b, 500 + event);
    }
    put_two_event_sample(&b, 500, 30);
    put_two_event_sample(&b, 501, 10);
    put_two_event_sample(&b, 501, 20);
    struct seen seen;
    struct perf_data_stats stats = { 0 };
    struct error err;
    assert_true(read_bytes(buffer_span(&b), &seen, &stats, &err));
    assert_int_equal(seen.events[0], 1);
    assert_int_equal(seen.events[1], 2);
    assert_int_equal(seen.backwards, 0);
    buffer_done(&b);
}

struct order_seen {
    uint64_t count, last_ns, backwards;
};

static void order_settle(void *user)
{
    (void)user;
}

static bool order_see(void *user, struct span record, uint64_t time_ns, struct error *err)
{
    struct order_seen *seen = user;
    (void)err;
    assert_int_equal(load_u64le(record.data), time_ns);
    seen->backwards += time_ns < seen->last_ns;
    seen->last_ns = time_ns;
    seen->count++;
    return true;
}

/* Two rings drained in turn, with rounds; waiting bytes are moved together on the way. */
static void test_order(void **state)
{
    (void)state;
    enum { ROUNDS = 300, PER_ROUND = 100, RECORD_BYTES = 400 };
    struct order_seen seen = { 0 };
    struct perf_order order;
    uint8_t record[RECORD_BYTES] = { 0 };
    perf_order_init(&order, 32 << 20, order_see, order_settle, &seen);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned ring = 0; ring < 2; ring++) {
            for (unsigned i = 0; i < PER_ROUND; i++) {
                uint64_t time_ns = 1 + (uint64_t)(round * PER_ROUND + i) * 10 + ring * 5;
                memcpy(record, &time_ns, sizeof time_ns);
                assert_true(perf_order_add(&order, span_of(record, sizeof record), time_ns, NULL));
            }
        }
        assert_true(perf_order_round(&order, NULL));
        assert_true(order.waiting.count - order.waiting.first <= 4 * PER_ROUND);
    }
    assert_true(perf_order_flush(&order, NULL));
    assert_int_equal(seen.count, 2 * ROUNDS * PER_ROUND);
    assert_int_equal(seen.backwards, 0);
    assert_int_equal(order.late, 0);
    perf_order_done(&order);
}

/* Without rounds, memory stays bounded and nothing is lost; order is kept as far as the ceiling reaches. */
static void test_order_ceiling(void **state)
{
    (void)state;
    enum { RECORDS = 10000, CEILING = 64 << 10 };
    struct order_seen seen = { 0 };
    struct perf_order order;
    uint8_t record[400] = { 0 };
    perf_order_init(&order, CEILING, order_see, order_settle, &seen);
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t time_ns = (i ^ 1) + 1;
        memcpy(record, &time_ns, sizeof time_ns);
        assert_true(perf_order_add(&order, span_of(record, sizeof record), time_ns, NULL));
        assert_true(order.waiting.live_bytes <= CEILING);
    }
    assert_true(perf_order_flush(&order, NULL));
    assert_int_equal(seen.count, RECORDS);
    assert_int_equal(seen.backwards, order.late);
    assert_int_equal(order.late, 0);
    perf_order_done(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_compressed_cut_everywhere),
        cmocka_unit_test(test_compressed_ends_within_a_record),
        cmocka_unit_test(test_compressed_damage),
        cmocka_unit_test(test_shared_ids),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_damage_in_the_middle),
        cmocka_unit_test(test_two_events),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_ceiling),
    };
    return cmocka_run_group_tests(tests, load_golden, NULL);
}
