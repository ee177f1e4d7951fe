#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/own.h"
#include "read/perf_record.h"

static void begin(struct buffer *b, uint32_t type, uint16_t misc)
{
    buffer_init(b, 1 << 20);
    buffer_u32le(b, type);
    buffer_u16le(b, misc);
    buffer_u16le(b, 0);
}

static struct span finish(struct buffer *b)
{
    b->data[6] = (uint8_t)b->size;
    b->data[7] = (uint8_t)(b->size >> 8);
    return buffer_span(b);
}

static void words(struct buffer *b, const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_u64le(b, values[i]);
}

static const struct perf_event_attr full_attr = {
    .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                   PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                   PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                   PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
                   PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
                   PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP,
    .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID,
    .sample_regs_user = 0x105,
    .sample_regs_intr = 0x1,
    .sample_id_all = 1,
};

static struct span full_sample(struct buffer *b)
{
    begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    words(b, (uint64_t[]){ 77, 0x401000, (uint64_t)12 << 32 | 11, 1000, 0xadd, 77, 5, 3, 250000 }, 9);
    words(b, (uint64_t[]){ 2, 9, 100, 77, 101, 78 }, 6);
    words(b, (uint64_t[]){ 4, PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER, 0x401000 }, 5);
    buffer_u32le(b, 4);
    buffer_u32le(b, 0x61626364);
    words(b, (uint64_t[]){ 1, 1, 2, 3 }, 4);
    words(b, (uint64_t[]){ PERF_SAMPLE_REGS_ABI_64, 21, 22, 23 }, 4);
    words(b, (uint64_t[]){ 16, 0x1111, 0x2222, 8 }, 4);
    words(b, (uint64_t[]){ 1, 2, 3, PERF_SAMPLE_REGS_ABI_64, 31, 0xfeed, 4242 }, 7);
    return finish(b);
}

static void test_every_sample_field(void **state)
{
    (void)state;
    struct buffer b;
    struct span bytes = full_sample(&b);
    struct perf_sample_layout layout = perf_sample_layout_of(&full_attr);
    struct perf_record r;
    struct error err;
    assert_true(perf_record_decode(bytes, &layout, &r, &err));
    const struct perf_sample *s = &r.sample;
    assert_int_equal(s->ip, 0x401000);
    assert_int_equal(s->who.pid, 11);
    assert_int_equal(s->who.tid, 12);
    assert_int_equal(s->who.time_ns, 1000);
    assert_int_equal(s->addr, 0xadd);
    assert_int_equal(s->who.id, 77);
    assert_int_equal(s->who.stream_id, 5);
    assert_int_equal(s->who.cpu, 3);
    assert_int_equal(s->period, 250000);
    assert_int_equal(s->callchain.size, 32);
    assert_int_equal(s->raw.size, 4);
    assert_int_equal(s->user_abi, PERF_SAMPLE_REGS_ABI_64);
    assert_int_equal(s->user_regs.size, 24);
    assert_int_equal(load_u64le(s->user_regs.data + 16), 23);
    assert_int_equal(s->user_stack.size, 8);
    assert_int_equal(s->user_stack_asked, 16);
    assert_int_equal(s->cgroup, 4242);
    assert_int_equal(perf_record_time_ns(bytes, &layout), 1000);
    assert_int_equal(perf_record_event_id(bytes, &layout), 77);
    buffer_done(&b);
}

static struct perf_event_attr stack_attr(void)
{
    struct perf_event_attr attr = { .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                                   PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                                    .sample_regs_user = 3,
                                    .sample_stack_user = 64 };
    return attr;
}

/* A sample whose stack holds 0, 1, 2, ...: `copied` of the 64 bytes that were asked for. */
static struct span stack_sample(struct buffer *b, uint64_t copied)
{
    begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    buffer_u64le(b, 0x401000);
    buffer_u32le(b, 11);
    buffer_u32le(b, 12);
    buffer_u64le(b, 1000);
    buffer_u64le(b, PERF_SAMPLE_REGS_ABI_64);
    buffer_u64le(b, 5);
    buffer_u64le(b, 6);
    buffer_u64le(b, 64);
    for (unsigned i = 0; i < 64; i++)
        buffer_u8(b, (uint8_t)i);
    buffer_u64le(b, copied);
    return finish(b);
}

static void test_stack_is_cut(void **state)
{
    static const struct {
        uint64_t copied, keep, stays; /* stays 64: the record is left alone */
    } rows[] = {
        { 64, 0, 0 },   { 64, 1, 8 },           { 64, 8, 8 },   { 64, 63, 64 },
        { 64, 64, 64 }, { 40, 17, 24 },         { 40, 40, 64 }, { 40, 33, 40 },
        { 0, 0, 64 },   { 64, UINT64_MAX, 64 }, { 64, 57, 64 }, { 64, UINT64_MAX - 7, 64 },
    };
    struct perf_event_attr attr = stack_attr();
    struct perf_sample_layout layout = perf_sample_layout_of(&attr);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buffer b;
        struct perf_record r, cut;
        uint8_t out[256];
        struct span bytes = stack_sample(&b, rows[i].copied);
        assert_true(perf_record_decode(bytes, &layout, &r, NULL));
        size_t size = perf_record_cut_stack(bytes, &r.sample, rows[i].keep, out);
        if (rows[i].stays == 64) {
            assert_true(size == 0 || size == bytes.size);
        } else {
            assert_int_equal(size, bytes.size - 64 + rows[i].stays);
            assert_true(perf_record_decode(span_of(out, size), &layout, &cut, NULL));
            assert_int_equal(cut.sample.user_stack.size, rows[i].stays);
            for (size_t k = 0; k < rows[i].stays; k++)
                assert_int_equal(cut.sample.user_stack.data[k], k);
            assert_int_equal(cut.sample.ip, 0x401000);
            assert_int_equal(load_u64le(cut.sample.user_regs.data + 8), 6);
        }
        buffer_done(&b);
    }
}

/* The record says it is shorter, and the bytes really end there: each cut must fail and read nothing behind.
 */
static void test_sample_cut_everywhere(void **state)
{
    (void)state;
    struct buffer b;
    struct span bytes = full_sample(&b);
    struct perf_sample_layout layout = perf_sample_layout_of(&full_attr);
    for (size_t size = 0; size < bytes.size; size++) {
        AUTO_FREE uint8_t *cut = malloc(size ? size : 1);
        memcpy(cut, bytes.data, size);
        if (size >= 8) {
            cut[6] = (uint8_t)size;
            cut[7] = (uint8_t)(size >> 8);
        }
        struct perf_record r = { .type = 4711 };
        struct error err;
        assert_false(perf_record_decode(span_of(cut, size), &layout, &r, &err));
        assert_int_equal(r.type, 4711);
        perf_record_time_ns(span_of(cut, size), &layout);
        perf_record_event_id(span_of(cut, size), &layout);
    }
    buffer_done(&b);
}

static void test_counts_that_wrap(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t sample_type, read_format, branch_type;
        uint64_t body[6];
        size_t count;
        bool ok;
    } cases[] = {
        { "callchain", PERF_SAMPLE_CALLCHAIN, 0, 0, { 2, 1, 2 }, 3, true },
        { "callchain + 1", PERF_SAMPLE_CALLCHAIN, 0, 0, { 3, 1, 2 }, 3, false },
        { "callchain * 8 is 0", PERF_SAMPLE_CALLCHAIN, 0, 0, { 1ull << 61, 1, 2 }, 3, false },
        { "callchain all ones", PERF_SAMPLE_CALLCHAIN, 0, 0, { UINT64_MAX, 1, 2 }, 3, false },
        { "branches", PERF_SAMPLE_BRANCH_STACK, 0, 0, { 1, 1, 2, 3 }, 4, true },
        { "branches with index", PERF_SAMPLE_BRANCH_STACK, 0, 1 << 17, { 1, 9, 1, 2, 3 }, 5, true },
        { "branches wrap", PERF_SAMPLE_BRANCH_STACK, 0, 0, { 0xaaaaaaaaaaaaaab, 1, 2, 3 }, 4, false },
        { "group", PERF_SAMPLE_READ, PERF_FORMAT_GROUP, 0, { 2, 1, 2 }, 3, true },
        { "group wraps", PERF_SAMPLE_READ, PERF_FORMAT_GROUP, 0, { 1ull << 61, 1, 2 }, 3, false },
        { "group of pairs", PERF_SAMPLE_READ, PERF_FORMAT_GROUP | PERF_FORMAT_ID, 0, { 2, 1, 2 }, 3, false },
        { "stack", PERF_SAMPLE_STACK_USER, 0, 0, { 8, 1, 8 }, 3, true },
        { "no stack", PERF_SAMPLE_STACK_USER, 0, 0, { 0 }, 1, true },
        { "stack used more than copied", PERF_SAMPLE_STACK_USER, 0, 0, { 8, 1, UINT64_MAX }, 3, true },
        { "stack too large", PERF_SAMPLE_STACK_USER, 0, 0, { UINT64_MAX - 7, 1, 8 }, 3, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        begin(&b, PERF_RECORD_SAMPLE, 0);
        words(&b, cases[i].body, cases[i].count);
        struct perf_event_attr attr = { .sample_type = cases[i].sample_type,
                                        .read_format = cases[i].read_format,
                                        .branch_sample_type = cases[i].branch_type };
        struct perf_sample_layout layout = perf_sample_layout_of(&attr);
        struct perf_record r;
        struct error err;
        if (perf_record_decode(finish(&b), &layout, &r, &err) != cases[i].ok)
            fail_msg("%s", cases[i].name);
        buffer_done(&b);
    }
}

/* Trailer: tid, time, id, stream, cpu, identifier. */
static const struct perf_event_attr trailed_attr = {
    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
    .sample_id_all = 1,
};

static void add_trailer(struct buffer *b)
{
    words(b, (uint64_t[]){ (uint64_t)22 << 32 | 21, 5000, 6, 99 }, 4);
}

static void test_other_records(void **state)
{
    (void)state;
    struct perf_sample_layout layout = perf_sample_layout_of(&trailed_attr);
    struct perf_record r;
    struct error err;
    struct buffer b;

    begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    words(&b,
          (uint64_t[]){ (uint64_t)22 << 32 | 21, 0x7f0000, 0x2000, 0x1000, (uint64_t)3 << 32 | 8, 1234, 5 },
          7);
    buffer_u32le(&b, 5);
    buffer_u32le(&b, 2);
    buffer_append(&b, "/lib/x.so\0\0\0\0\0\0", 16);
    add_trailer(&b);
    assert_true(perf_record_decode(finish(&b), &layout, &r, &err));
    assert_int_equal(r.mmap.addr, 0x7f0000);
    assert_int_equal(r.mmap.size_bytes, 0x2000);
    assert_int_equal(r.mmap.file_off, 0x1000);
    assert_int_equal(r.mmap.major, 8);
    assert_int_equal(r.mmap.minor, 3);
    assert_int_equal(r.mmap.inode, 1234);
    assert_int_equal(r.mmap.prot, 5);
    assert_int_equal(r.mmap.path.size, 9);
    assert_int_equal(r.who.time_ns, 5000);
    assert_int_equal(r.who.tid, 22);
    assert_int_equal(r.who.cpu, 6);
    assert_int_equal(r.who.id, 99);
    assert_int_equal(perf_record_time_ns(buffer_span(&b), &layout), 5000);
    assert_int_equal(perf_record_event_id(buffer_span(&b), &layout), 99);
    buffer_done(&b);

    begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | 1 << 14);
    words(&b, (uint64_t[]){ 1, 2, 3, 4, 0x1100000000000014, 0, 0x77 }, 7);
    words(&b, (uint64_t[]){ 5, 'x' }, 2);
    add_trailer(&b);
    assert_true(perf_record_decode(finish(&b), &layout, &r, &err));
    assert_int_equal(r.mmap.build_id.size, 20);
    assert_int_equal(r.mmap.inode, 0);
    assert_int_equal(r.mmap.path.size, 1);
    buffer_done(&b);

    begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
    words(&b, (uint64_t[]){ (uint64_t)22 << 32 | 21, 0x656d616e }, 2);
    add_trailer(&b);
    assert_true(perf_record_decode(finish(&b), &layout, &r, &err));
    assert_true(r.comm.is_exec);
    assert_int_equal(r.comm.name.size, 4);
    buffer_done(&b);

    begin(&b, PERF_RECORD_FORK, 0);
    words(&b, (uint64_t[]){ (uint64_t)1 << 32 | 2, (uint64_t)3 << 32 | 4, 600 }, 3);
    add_trailer(&b);
    assert_true(perf_record_decode(finish(&b), &layout, &r, &err));
    assert_int_equal(r.task.pid, 2);
    assert_int_equal(r.task.ppid, 1);
    assert_int_equal(r.task.tid, 4);
    assert_int_equal(r.task.ptid, 3);
    assert_int_equal(r.task.time_ns, 600);
    buffer_done(&b);

    begin(&b, PERF_RECORD_LOST, 0);
    words(&b, (uint64_t[]){ 99, 12 }, 2);
    add_trailer(&b);
    assert_true(perf_record_decode(finish(&b), &layout, &r, &err));
    assert_int_equal(r.lost.count, 12);
    assert_false(r.lost.is_sum);
    b.size -= 8;
    assert_false(perf_record_decode(finish(&b), &layout, &r, &err));
    buffer_done(&b);

    for (unsigned filtered = 0; filtered < 2; filtered++) {
        uint8_t trailer[64] = { 0 }; /* without a time */
        begin(&b, PERF_RECORD_LOST_SAMPLES, (uint16_t)(filtered << 15));
        words(&b, (uint64_t[]){ 12 }, 1);
        buffer_append(&b, trailer, layout.trailer_bytes);
        assert_true(perf_record_decode(finish(&b), &layout, &r, &err));
        assert_true(r.lost.is_sum);
        assert_int_equal(r.lost.count, filtered ? 0 : 12);
        buffer_done(&b);
    }
}

/* How many bytes a record's own fields take, at least. */
static const struct {
    uint32_t type;
    uint16_t misc;
    size_t bytes;
} least[] = {
    { PERF_RECORD_MMAP, 0, 32 },        { PERF_RECORD_MMAP2, 0, 64 },
    { PERF_RECORD_MMAP2, 1 << 14, 64 }, { PERF_RECORD_COMM, 0, 8 },
    { PERF_RECORD_FORK, 0, 24 },        { PERF_RECORD_EXIT, 0, 24 },
    { PERF_RECORD_LOST, 0, 16 },        { PERF_RECORD_LOST_SAMPLES, 0, 8 },
    { PERF_RECORD_THROTTLE, 0, 24 },    { PERF_RECORD_UNTHROTTLE, 0, 24 },
    { PERF_RECORD_SWITCH, 0, 0 },       { PERF_RECORD_SWITCH_CPU_WIDE, 0, 8 },
};

static void test_other_records_cut_everywhere(void **state)
{
    (void)state;
    struct perf_sample_layout layout = perf_sample_layout_of(&trailed_attr);
    for (size_t i = 0; i < ARRAY_LEN(least); i++) {
        size_t whole = 8 + least[i].bytes + layout.trailer_bytes;
        for (size_t size = 8; size <= whole; size++) {
            AUTO_FREE uint8_t *bytes = calloc(size, 1);
            struct perf_record r;
            bytes[0] = (uint8_t)least[i].type;
            bytes[4] = (uint8_t)least[i].misc;
            bytes[5] = (uint8_t)(least[i].misc >> 8);
            bytes[6] = (uint8_t)size;
            if (perf_record_decode(span_of(bytes, size), &layout, &r, NULL) != (size == whole))
                fail_msg("type %u of %zu bytes", least[i].type, size);
            perf_record_time_ns(span_of(bytes, size), &layout);
            perf_record_event_id(span_of(bytes, size), &layout);
        }
    }
}

static void test_callchains(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t chain[8];
        size_t count, max;
        size_t kernel, user;
        bool is_cut, is_user_deferred;
    } cases[] = {
        { "both", { PERF_CONTEXT_KERNEL, 1, 2, PERF_CONTEXT_USER, 3 }, 5, 8, 2, 1, false, false },
        { "user only", { PERF_CONTEXT_USER, 3, 4 }, 3, 8, 0, 2, false, false },
        { "no marker", { 0xffffffff81000000, 3, 4 }, 3, 8, 1, 2, false, false },
        { "guest", { PERF_CONTEXT_GUEST_KERNEL, 3, PERF_CONTEXT_USER, 4 }, 4, 8, 0, 1, false, false },
        { "hypervisor", { PERF_CONTEXT_HV, 3 }, 2, 8, 0, 0, false, false },
        { "full", { PERF_CONTEXT_KERNEL, 1, PERF_CONTEXT_USER, 3, 4 }, 5, 3, 1, 2, false, false },
        { "too many", { PERF_CONTEXT_KERNEL, 1, PERF_CONTEXT_USER, 3, 4 }, 5, 2, 1, 1, true, false },
        { "deferred", { PERF_CONTEXT_KERNEL, 1, (uint64_t)-640, 3 }, 4, 8, 1, 0, false, true },
        { "kernel behind user", { PERF_CONTEXT_USER, 1, PERF_CONTEXT_KERNEL, 3 }, 4, 8, 0, 1, false, false },
        { "empty", { 0 }, 0, 8, 0, 0, false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer b;
        buffer_init(&b, 1024);
        buffer_u8(&b, 0); /* unaligned on purpose */
        words(&b, cases[i].chain, cases[i].count);
        uint64_t into[8];
        struct span bytes = span_of(b.data + 1, b.size - 1);
        struct perf_callchain chain = perf_callchain_split(bytes, into, cases[i].max);
        if (chain.kernel_count != cases[i].kernel || chain.user_count != cases[i].user ||
            chain.is_cut != cases[i].is_cut || chain.is_user_deferred != cases[i].is_user_deferred)
            fail_msg("%s: %zu kernel, %zu user", cases[i].name, chain.kernel_count, chain.user_count);
        buffer_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample_field),
        cmocka_unit_test(test_stack_is_cut),
        cmocka_unit_test(test_sample_cut_everywhere),
        cmocka_unit_test(test_counts_that_wrap),
        cmocka_unit_test(test_other_records),
        cmocka_unit_test(test_other_records_cut_everywhere),
        cmocka_unit_test(test_callchains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
