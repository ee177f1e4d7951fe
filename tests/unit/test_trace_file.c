/* Captures that were written, cut, damaged and read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zstd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/own.h"
#include "trace/format.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

enum { PID = 4711, FLUSHES = 6, SAMPLES_PER_FLUSH = 50, CHAINS = 1024 };

#define START_NS 1000000000ull
#define STEP_NS  5000000ull

/* A capture in memory, and how many samples its first bytes hold after each flush. */
struct written {
    uint8_t *bytes;
    size_t size;
    uint64_t flushed_at[FLUSHES];
    size_t flushed_samples[FLUSHES];
};

static void add_process(struct trace_builder *b)
{
    uint32_t process = trace_builder_process_start(b, PID, 0);
    b->trace.processes.rows[process].name = trace_add_string(&b->trace, "webapi");
    trace_builder_changed(b, CHANGED_PROCESS, process);
    static const char libc[] = "/usr/lib/libc.so.6";
    uint32_t image = trace_builder_image(b, span_of(libc, sizeof libc - 1), IMAGE_ELF, 8, 1, 77);
    trace_builder_mapping(b, process, 0x7f0000000000, 0x100000, 0, image, 0);
    trace_set_fact(&b->trace, "host", "here");
    uint32_t subscription = trace_push(&b->trace.subscriptions);
    b->trace.subscriptions.rows[subscription] =
        (struct trace_subscription){ .process = process,
                                     .provider = trace_add_string(&b->trace, "Some-Provider"),
                                     .keywords = 0x8000000000000001,
                                     .level = 4,
                                     .from_ns = START_NS };
}

static void add_samples(struct trace_builder *b, size_t first)
{
    for (size_t i = first; i < first + SAMPLES_PER_FLUSH; i++) {
        uint64_t user[] = { 0x7f0000001000 + i % 37 * 16, 0x7f0000002000 + i % 5 * 64, 0x7f0000003000 };
        trace_builder_sample(b, &(struct raw_sample){
                                    .time_ns = START_NS + i * STEP_NS,
                                    .weight = STEP_NS,
                                    .user = user,
                                    .user_count = ARRAY_LEN(user),
                                    .pid = PID,
                                    .tid = PID + (uint32_t)(i % 3),
                                    .cpu = (uint16_t)(i % 2),
                                    .kind = SAMPLE_CPU,
                                    .end = STACK_WHOLE,
                                });
    }
}

/* Of every second sample's time, with payloads of 0 bytes and more. */
static void add_events(struct trace_builder *b, size_t first)
{
    uint32_t process = trace_builder_process(b, PID);
    for (size_t i = first; i < first + SAMPLES_PER_FLUSH; i += 2) {
        uint32_t type = trace_builder_event_type(
            b, &(struct trace_event_type){ .provider = trace_add_string(&b->trace, "Some-Provider"),
                                           .event_id = (uint32_t)(i % 3),
                                           .version = 2,
                                           .level = 5,
                                           .opcode = 1,
                                           .pointer_size = 4,
                                           .keywords = 0xf00000000001,
                                           .fields = trace_add_span(&b->trace, span_of("\1\0\0\0", 4)),
                                           .params = trace_add_string(&b->trace, "params") });
        const struct trace_event row = { .time_ns = START_NS + i * STEP_NS,
                                         .type = type,
                                         .process = process,
                                         .thread = trace_builder_find_thread(b, process, PID) };
        uint8_t payload[16];
        memset(payload, (int)i, sizeof payload);
        assert_true(trace_push_event(&b->trace, &row, span_of(payload, i % 16)));
        if (i % 8 == 0)
            trace_push_event_activity(&b->trace, span_of(payload, 16), span_of("", 0));
    }
}

/* A line of its own for each; of every other location only the method's is known. */
static struct trace_location with_line(struct trace_builder *b, size_t i, uint32_t function)
{
    struct trace_location row = b->trace.locations.rows[i];
    row.function = function;
    row.file = trace_add_string(&b->trace, "/src/main.cs");
    row.line = (uint32_t)i + 100;
    row.line_of_method = i % 2;
    return row;
}

/* At each location as many functions as its id, modulo 3, says. */
static void add_inlined(struct trace_builder *b, size_t location, uint32_t function)
{
    struct trace *t = &b->trace;
    t->locations.rows[location].inlined = (uint32_t)t->inlined.count;
    t->locations.rows[location].inlined_count = (uint8_t)(location % 3);
    for (size_t i = 0; i < location % 3; i++) {
        uint32_t id = trace_push(&t->inlined);
        t->inlined.rows[id] = (struct trace_inlined){ function, trace_add_string(t, "inline.h"),
                                                      (uint32_t)(location * 10 + i) };
    }
}

static void name_locations(struct trace_builder *b)
{
    uint32_t function = trace_builder_function(b, &(struct trace_function){
                                                      .name = trace_add_string(&b->trace, "main"),
                                                      .module = trace_add_string(&b->trace, "webapi"),
                                                      .kind = CODE_NATIVE,
                                                  });
    for (size_t i = 1; i < b->trace.locations.count; i++) {
        b->trace.locations.rows[i] = with_line(b, i, function);
        add_inlined(b, i, function);
    }
    b->trace.symbolized = true;
}

static void write_capture(struct written *out)
{
    int fd = memfd_create("capture", MFD_CLOEXEC);
    assert_true(fd >= 0);
    AUTO_FD int again = dup(fd);
    struct trace_builder b;
    struct trace_writer *w;
    struct error err;
    trace_builder_init(&b, CHAINS);
    assert_true(trace_writer_open(fd, &w, &err));
    add_process(&b);
    for (size_t i = 0; i < FLUSHES; i++) {
        add_samples(&b, i * SAMPLES_PER_FLUSH);
        add_events(&b, i * SAMPLES_PER_FLUSH);
        assert_true(trace_writer_flush(w, &b, &err));
        out->flushed_at[i] = trace_writer_bytes(w);
        out->flushed_samples[i] = (i + 1) * SAMPLES_PER_FLUSH;
    }
    b.trace.subscriptions.rows[1].to_ns = 2 * START_NS; /* ends after it was written */
    trace_builder_loss(&b, LOSS_RING, 0, START_NS, START_NS, 9);
    name_locations(&b);
    assert_true(trace_writer_close(w, &b, NULL, &err));
    trace_builder_done(&b);
    out->size = (size_t)lseek(again, 0, SEEK_END);
    out->bytes = mem_alloc(out->size, 1);
    assert_int_equal(pread(again, out->bytes, out->size, 0), out->size);
}

static bool load(const uint8_t *bytes, size_t size, struct trace *out)
{
    struct source file = source_over_span(span_of(bytes, size));
    struct error err;
    return trace_reader_load(&file, out, &err);
}

/* Nothing is invented: each sample is one that was written, in its place, and refers to what is there. */
static void check_samples(const struct trace *t)
{
    uint64_t before = 0;
    for (size_t i = 0; i < t->samples.count; i++) {
        uint64_t since = t->samples.time_ns[i] - START_NS;
        assert_int_equal(since % STEP_NS, 0);
        assert_true(since / STEP_NS < FLUSHES * SAMPLES_PER_FLUSH);
        assert_true(i == 0 || t->samples.time_ns[i] > before);
        before = t->samples.time_ns[i];
        assert_int_equal(t->samples.weight[i], STEP_NS);
        assert_true(t->samples.thread[i] < t->threads.count);
        assert_true(t->samples.stack[i] < t->stacks.count);
    }
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++)
        assert_true(t->stacks.rows[i].parent < i && t->stacks.rows[i].location < t->locations.count);
}

/* The same of events, with the payload each had. */
static void check_events(const struct trace *t)
{
    for (size_t i = 1; i < t->events.count; i++) {
        const struct trace_event *row = &t->events.rows[i];
        size_t at = (size_t)(row->time_ns - START_NS) / STEP_NS;
        struct span payload = trace_event_payload(t, row);
        assert_true(at % 2 == 0 && at < FLUSHES * SAMPLES_PER_FLUSH);
        assert_true(row->type < t->event_types.count && row->process < t->processes.count &&
                    row->thread < t->threads.count && row->stack < t->stacks.count);
        assert_int_equal(payload.size, at % 16);
        for (size_t k = 0; k < payload.size; k++)
            assert_int_equal(payload.data[k], (uint8_t)at);
        const struct trace_event_activity *activity = trace_event_activity(t, (uint32_t)i);
        assert_true(!activity || at % 8 == 0);
        for (size_t k = 0; activity && k < sizeof activity->id; k++)
            assert_true(activity->id[k] == (uint8_t)at && activity->related[k] == 0);
    }
}

/* What there is at a location is all there was. */
static void check_inlined(const struct trace *t)
{
    for (size_t i = 1; i < t->locations.count; i++) {
        const struct trace_location *row = &t->locations.rows[i];
        assert_true(row->inlined_count == 0 || row->inlined_count == i % 3);
        assert_true(row->inlined_count == 0 || row->inlined + row->inlined_count <= t->inlined.count);
        for (unsigned k = 0; k < row->inlined_count; k++) {
            const struct trace_inlined *inlined = &t->inlined.rows[row->inlined + k];
            assert_int_equal(inlined->line, i * 10 + k);
            assert_true(inlined->function < t->functions.count);
        }
    }
}

static int setup(void **state)
{
    struct written *w = mem_alloc(1, sizeof *w);
    write_capture(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct written *w = *state;
    free(w->bytes);
    free(w);
    return 0;
}

static void test_round_trip(void **state)
{
    const struct written *w = *state;
    struct trace t;
    assert_true(load(w->bytes, w->size, &t));
    assert_true(t.complete && t.symbolized);
    assert_int_equal(t.samples.count, FLUSHES * SAMPLES_PER_FLUSH);
    check_samples(&t);
    assert_int_equal(t.events.count, 1 + FLUSHES * SAMPLES_PER_FLUSH / 2);
    check_events(&t);
    assert_int_equal(t.event_types.count, 4);
    const struct trace_event *event = &t.events.rows[2];
    assert_string_equal(trace_string(&t, t.event_types.rows[event->type].provider), "Some-Provider");
    assert_int_equal(t.event_types.rows[event->type].event_id, 2);
    assert_int_equal(t.event_types.rows[event->type].version, 2);
    const struct trace_event_type *type = &t.event_types.rows[event->type];
    assert_true(span_equals(trace_string_span(&t, type->fields), span_of("\1\0\0\0", 4)));
    assert_string_equal(trace_string(&t, type->params), "params");
    assert_int_equal(type->keywords, 0xf00000000001);
    assert_true(type->level == 5 && type->opcode == 1 && type->pointer_size == 4);
    assert_int_equal(t.event_activities.count, 1 + (FLUSHES * SAMPLES_PER_FLUSH + 7) / 8);
    assert_non_null(trace_event_activity(&t, 1));
    assert_null(trace_event_activity(&t, 2));
    assert_int_equal(t.processes.rows[event->process].pid, PID);
    assert_int_equal(t.threads.rows[event->thread].tid, PID);
    assert_int_equal(t.subscriptions.count, 2);
    assert_int_equal(t.subscriptions.rows[1].keywords, 0x8000000000000001);
    assert_int_equal(t.subscriptions.rows[1].level, 4);
    assert_int_equal(t.subscriptions.rows[1].from_ns, START_NS);
    assert_int_equal(t.subscriptions.rows[1].to_ns, 2 * START_NS);
    assert_int_equal(t.gaps.count, 1);
    assert_int_equal(t.losses.count, 2);
    assert_int_equal(t.losses.rows[1].count, 9);
    assert_string_equal(trace_fact_value(&t, "host"), "here");
    assert_int_equal(t.threads.count, 4);
    uint32_t leaf = t.stacks.rows[t.samples.stack[0]].location;
    assert_int_equal(t.locations.rows[leaf].addr, 0x7f0000001000);
    assert_string_equal(trace_string(&t, t.functions.rows[t.locations.rows[leaf].function].name), "main");
    for (size_t i = 1; i < t.locations.count; i++) {
        assert_string_equal(trace_string(&t, t.locations.rows[i].file), "/src/main.cs");
        assert_int_equal(t.locations.rows[i].line, i + 100);
        assert_int_equal(t.locations.rows[i].line_of_method, i % 2);
    }
    check_inlined(&t);
    assert_int_equal(t.locations.rows[2].inlined_count, 2);
    trace_done(&t);
}

/* Whatever was flushed before the cut is there, whole; what was not is not. */
static void test_every_length(void **state)
{
    const struct written *w = *state;
    for (size_t size = 0; size <= w->size; size++) {
        struct trace t;
        /* of its own size, so that a read beyond is seen */
        AUTO_FREE uint8_t *bytes = mem_alloc(size ? size : 1, 1);
        memcpy(bytes, w->bytes, size);
        bool ok = load(bytes, size, &t);
        assert_int_equal(ok, size >= FORMAT_HEADER_BYTES);
        if (!ok)
            continue;
        size_t expected = 0;
        for (size_t i = 0; i < FLUSHES; i++)
            if (w->flushed_at[i] <= size)
                expected = w->flushed_samples[i];
        assert_true(t.samples.count >= expected);
        assert_true(t.samples.count <= FLUSHES * SAMPLES_PER_FLUSH);
        assert_true(!t.complete || size > w->flushed_at[FLUSHES - 1]);
        assert_true(t.events.count >= 1 + expected / 2);
        check_samples(&t);
        check_inlined(&t);
        check_events(&t);
        trace_done(&t);
    }
}

/* A flipped bit is found by a checksum: its block is gone, and that is shown; all other samples stay true. */
static void test_every_bit(void **state)
{
    const struct written *w = *state;
    AUTO_FREE uint8_t *bytes = mem_alloc(w->size, 1);
    memcpy(bytes, w->bytes, w->size);
    for (size_t at = 0; at < w->size; at++) {
        uint8_t bit = (uint8_t)(1u << at % 8);
        bytes[at] ^= bit;
        struct trace t;
        bool ok = load(bytes, w->size, &t);
        assert_int_equal(ok, at >= FORMAT_HEADER_BYTES);
        if (ok) {
            bool whole = t.complete && t.symbolized && t.samples.count == FLUSHES * SAMPLES_PER_FLUSH;
            assert_true(whole || t.gaps.count > 1 || !t.complete);
            check_samples(&t);
            check_events(&t);
            trace_done(&t);
        }
        bytes[at] ^= bit;
    }
}

/* Bytes behind the end do not belong to the capture; a hole in the middle costs what was in it. */
static void test_hole_and_tail(void **state)
{
    const struct written *w = *state;
    AUTO_FREE uint8_t *bytes = mem_alloc(w->size + 100, 1);
    memcpy(bytes, w->bytes, w->size);
    memset(bytes + w->size, 0xa5, 100);
    struct trace t;
    assert_true(load(bytes, w->size + 100, &t));
    assert_true(t.complete);
    assert_int_equal(t.samples.count, FLUSHES * SAMPLES_PER_FLUSH);
    trace_done(&t);

    memset(bytes + w->flushed_at[1], 0, w->flushed_at[3] - w->flushed_at[1]);
    assert_true(load(bytes, w->size, &t));
    assert_true(t.complete);
    assert_int_equal(t.gaps.count, 2);
    assert_int_equal(t.gaps.rows[1].file_off, w->flushed_at[1]);
    assert_int_equal(t.gaps.rows[1].size_bytes, w->flushed_at[3] - w->flushed_at[1]);
    assert_true(t.samples.count >= 3 * SAMPLES_PER_FLUSH && t.samples.count <= 4 * SAMPLES_PER_FLUSH);
    check_samples(&t);
    trace_done(&t);
}

/* Bytes that are missing move what is behind them, to wherever; blocks are found there. */
static void test_missing_bytes(void **state)
{
    const struct written *w = *state;
    for (size_t missing = 1; missing <= 9; missing++) {
        AUTO_FREE uint8_t *bytes = mem_alloc(w->size, 1);
        size_t hole = w->flushed_at[1] + 5, size = w->size - missing;
        memcpy(bytes, w->bytes, hole);
        memcpy(bytes + hole, w->bytes + hole + missing, size - hole);
        struct trace t;
        assert_true(load(bytes, size, &t));
        assert_true(t.complete);
        assert_int_equal(t.gaps.count, 2);
        assert_true(t.samples.count >= 3 * SAMPLES_PER_FLUSH);
        for (size_t i = 1; i < t.locations.count; i++) {
            uint32_t function = t.locations.rows[i].function;
            const char *name = trace_string(&t, t.functions.rows[function].name);
            assert_true(!function || (name[0] && strcmp(name, "[lost]") != 0));
        }
        trace_done(&t);
    }
}

/* Nothing is readable then, and nothing is said to be. */
static void test_full_from_the_start(void **state)
{
    (void)state;
    AUTO_FD int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct trace_writer *w;
    struct error err = { 0 };
    assert_true(fd >= 0);
    assert_false(trace_writer_open(fd, &w, &err));
    assert_int_equal(err.os_error, ENOSPC);
    assert_string_equal(err.hint, "nothing was written; free some space, or record to another place");
}

/* The file stays one of whole blocks when a write fails, and every later flush fails too. */
static void test_failed_write(void **state)
{
    (void)state;
    int fd = memfd_create("capture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    AUTO_FD int again = dup(fd);
    struct trace_builder b;
    struct trace_writer *w;
    struct error err = { 0 };
    trace_builder_init(&b, CHAINS);
    assert_true(trace_writer_open(fd, &w, &err));
    add_process(&b);
    add_samples(&b, 0);
    assert_true(trace_writer_flush(w, &b, &err));
    assert_int_equal(fcntl(again, F_ADD_SEALS, F_SEAL_GROW), 0);
    add_samples(&b, SAMPLES_PER_FLUSH);
    assert_false(trace_writer_flush(w, &b, &err));
    assert_int_equal(err.kind, ERROR_PERMISSION); /* EPERM: of a sealed file */
    assert_string_equal(err.hint, "what was written before is readable; record to another place");
    assert_false(trace_writer_flush(w, &b, &err));
    struct trace_written written;
    assert_false(trace_writer_close(w, &b, &written, &err));
    assert_int_equal(written.samples, SAMPLES_PER_FLUSH);
    trace_builder_done(&b);

    struct source file;
    struct trace t;
    assert_true(source_over_fd(again, 0, UINT64_MAX, &file, &err));
    assert_true(trace_reader_load(&file, &t, &err));
    assert_int_equal(t.samples.count, SAMPLES_PER_FLUSH);
    assert_false(t.complete);
    assert_int_equal(t.gaps.count, 1);
    check_samples(&t);
    trace_done(&t);
}

/* A target can spell a name of any length: it must not cost the capture. */
static void test_endless_name(void **state)
{
    (void)state;
    enum { ENDLESS = 6 << 20, KEPT = 1 << 20 };
    int fd = memfd_create("capture", MFD_CLOEXEC);
    assert_true(fd >= 0);
    AUTO_FD int again = dup(fd);
    struct trace_builder b;
    struct trace_writer *w;
    struct error err = { 0 };
    AUTO_FREE char *name = mem_alloc(ENDLESS + 1, 1);
    memset(name, 'n', ENDLESS);
    trace_builder_init(&b, CHAINS);
    assert_true(trace_writer_open(fd, &w, &err));
    add_process(&b);
    uint32_t before = trace_add_string(&b.trace, "before");
    uint32_t endless = trace_add_string(&b.trace, name);
    uint32_t behind = trace_add_string(&b.trace, "behind");
    assert_true(trace_writer_close(w, &b, NULL, &err));
    trace_builder_done(&b);

    struct source file;
    struct trace t;
    assert_true(source_over_fd(again, 0, UINT64_MAX, &file, &err));
    assert_true(trace_reader_load(&file, &t, &err));
    assert_true(t.complete && t.losses.count == 1);
    assert_string_equal(trace_string(&t, before), "before");
    assert_int_equal(strlen(trace_string(&t, endless)), KEPT);
    assert_string_equal(trace_string(&t, behind), "behind");
    trace_done(&t);
}

/* A block that a program of bad will could write: all of its checksums are right. */
static void append_packed_block(struct buffer *file, uint32_t sequence, uint16_t flags, uint32_t stored,
                                uint32_t raw, struct span payload)
{
    size_t head = file->size;
    uint32_t seed = load_u32le(file->data + FORMAT_HEADER_BYTES - 4);
    buffer_u32le(file, FORMAT_BLOCK_MAGIC);
    buffer_u16le(file, FORMAT_BATCH);
    buffer_u16le(file, flags);
    buffer_u32le(file, sequence);
    buffer_u32le(file, stored);
    buffer_u32le(file, raw);
    buffer_u64le(file, 0);
    buffer_u32le(file,
                 crc32c(crc32c(seed, file->data + head, file->size - head), payload.data, payload.size));
    buffer_append(file, payload.data, payload.size);
    while (file->size % FORMAT_BLOCK_ALIGN)
        buffer_u8(file, 0);
}

static void append_block(struct buffer *file, uint32_t sequence, uint32_t stored, struct span payload)
{
    append_packed_block(file, sequence, 0, stored, stored, payload);
}

static void append_section(struct buffer *payload, enum format_section kind, uint64_t first, uint64_t count)
{
    buffer_u8(payload, (uint8_t)kind);
    buffer_varuint(payload, first);
    buffer_varuint(payload, count);
}

/* The header of a capture and one block behind it; number 1, so that number 0 seems to be lost. */
static void load_block(const struct written *w, const struct buffer *payload, struct trace *out)
{
    struct buffer file;
    buffer_init(&file, 1 << 20);
    buffer_append(&file, w->bytes, FORMAT_HEADER_BYTES);
    append_block(&file, 1, (uint32_t)payload->size, buffer_span(payload));
    assert_true(load(file.data, file.size, out));
    buffer_done(&file);
}

/* A few bytes that claim millions of lost rows, again and again. */
static void test_many_lost_rows(void **state)
{
    struct buffer payload;
    struct trace t;
    buffer_init(&payload, 1 << 16);
    for (uint64_t i = 1; i < 12; i++)
        append_section(&payload, FORMAT_STACKS, i << 20, 0);
    load_block(*state, &payload, &t);
    assert_true(t.stacks.count > 1 << 20 && t.stacks.count < 5 << 20);
    assert_int_equal(t.losses.rows[1].reason, LOSS_MALFORMED);
    trace_done(&t);
    buffer_done(&payload);
}

/* Weights whose sum would wrap count as less, and are counted as malformed. */
static void test_large_weights(void **state)
{
    enum { SAMPLES = 3, COLUMNS_BEFORE = 3, COLUMNS_BEHIND = 2 };
    struct buffer payload;
    struct trace t;
    buffer_init(&payload, 1 << 16);
    append_section(&payload, FORMAT_SAMPLES, 0, SAMPLES);
    buffer_varuint(&payload, START_NS);
    for (unsigned i = 0; i < COLUMNS_BEFORE * SAMPLES; i++)
        buffer_varuint(&payload, 0);
    buffer_zigzag64(&payload, INT64_MAX);
    buffer_zigzag64(&payload, 0);
    buffer_zigzag64(&payload, 5 - INT64_MAX);
    for (unsigned i = 0; i < COLUMNS_BEHIND * SAMPLES; i++)
        buffer_u8(&payload, 0);
    load_block(*state, &payload, &t);
    assert_int_equal(t.samples.count, SAMPLES);
    assert_int_equal(t.samples.weight[0], INT64_MAX / SAMPLES);
    assert_int_equal(t.samples.weight[1], INT64_MAX / SAMPLES);
    assert_int_equal(t.samples.weight[2], 5);
    assert_int_equal(t.losses.rows[1].reason, LOSS_MALFORMED);
    assert_int_equal(t.losses.rows[1].count, 2);
    trace_done(&t);
    buffer_done(&payload);
}

static void test_deep_stack(void **state)
{
    enum { DEPTH = 3 * TRACE_STACK_DEPTH_MAX };
    struct buffer payload;
    struct trace t;
    buffer_init(&payload, 1 << 16);
    append_section(&payload, FORMAT_STACKS, STACK_ROOTS, DEPTH);
    for (size_t i = 0; i < DEPTH; i++)
        buffer_varuint(&payload, 1);
    for (size_t i = 0; i < DEPTH; i++)
        buffer_varuint(&payload, 0);
    load_block(*state, &payload, &t);
    assert_int_equal(t.stacks.count, STACK_ROOTS + DEPTH);
    assert_int_equal(t.losses.rows[1].count, 2);
    size_t depth = 0;
    uint32_t stack = STACK_ROOTS + DEPTH - 1;
    for (; stack >= STACK_ROOTS; stack = t.stacks.rows[stack].parent)
        depth++;
    assert_int_equal(depth, TRACE_STACK_DEPTH_MAX);
    assert_int_equal(stack, STACK_TRUNCATED);
    trace_done(&t);
    buffer_done(&payload);
}

/* Sections of events that claim more than they hold, or what does not exist. */
static void test_bad_events(void **state)
{
    static const struct {
        uint64_t count, type, payload_bytes, payload_given;
        size_t events, malformed;
    } cases[] = {
        { 1, 0, 4, 4, 1, 0 },        { 1, 7, 4, 4, 1, 1 }, /* a type that is not there */
        { 1, 0, 5, 4, 0, 1 },        { 1, 0, TRACE_PAYLOAD_BYTES_MAX + 1, TRACE_PAYLOAD_BYTES_MAX + 1, 0, 1 },
        { 1u << 20, 0, 4, 4, 0, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer payload;
        struct trace t;
        buffer_init(&payload, 1 << 18);
        append_section(&payload, FORMAT_EVENTS, 0, cases[i].count);
        buffer_varuint(&payload, START_NS);
        buffer_zigzag64(&payload, 1);
        buffer_varuint(&payload, cases[i].type);
        for (unsigned column = 0; column < 3; column++)
            buffer_varuint(&payload, 0);
        buffer_varuint(&payload, cases[i].payload_bytes);
        for (size_t k = 0; k < cases[i].payload_given; k++)
            buffer_u8(&payload, 9);
        load_block(*state, &payload, &t);
        assert_int_equal(t.events.count, 1 + cases[i].events);
        assert_int_equal(t.losses.count > 1 ? t.losses.rows[1].count : 0, cases[i].malformed);
        assert_int_equal(t.payloads.size, cases[i].events ? cases[i].payload_given : 0);
        if (cases[i].events)
            assert_int_equal(t.events.rows[1].type, 0);
        trace_done(&t);
        buffer_done(&payload);
    }
}

static void test_many_facts(void **state)
{
    enum { FACTS = 5000 };
    struct buffer payload;
    struct trace t;
    buffer_init(&payload, 1 << 18);
    append_section(&payload, FORMAT_STRINGS, 1, FACTS);
    for (unsigned i = 0; i < FACTS; i++) {
        buffer_varuint(&payload, 4);
        buffer_format(&payload, "%04u", i);
    }
    append_section(&payload, FORMAT_FACTS, 1, FACTS);
    for (unsigned i = 1; i <= FACTS; i++) {
        buffer_varuint(&payload, i);
        buffer_varuint(&payload, i);
    }
    load_block(*state, &payload, &t);
    assert_string_equal(trace_fact_value(&t, "0007"), "0007");
    assert_true(t.facts.count < FACTS);
    assert_int_equal(t.losses.rows[1].reason, LOSS_MALFORMED);
    trace_done(&t);
    buffer_done(&payload);
}

/* Damage in which every few bytes claim to be a large block: looking at all of them would take for ever. */
static void test_false_blocks(void **state)
{
    const struct written *w = *state;
    enum { STORED = 1 << 20, HEADS = 4096 };
    struct buffer file;
    buffer_init(&file, 4 << 20);
    buffer_append(&file, w->bytes, FORMAT_HEADER_BYTES);
    for (size_t i = 0; i < HEADS; i++)
        append_block(&file, 0, STORED, (struct span){ 0 });
    while (file.size < STORED + HEADS * FORMAT_BLOCK_HEADER_BYTES + FORMAT_HEADER_BYTES)
        buffer_u64le(&file, 0);
    struct trace t;
    assert_true(load(file.data, file.size, &t));
    assert_false(t.complete);
    assert_int_equal(t.losses.rows[1].reason, LOSS_MALFORMED); /* not taken for a torn end */
    trace_done(&t);
    buffer_done(&file);
}

/* A small file that unpacks to gigabytes: what is read of it is bounded, and the rest is a gap. */
static void test_bomb(void **state)
{
    enum { BLOCKS = 300 };
    const struct written *w = *state;
    struct buffer file, zeros, packed;
    buffer_init(&file, 1 << 20);
    buffer_init(&zeros, FORMAT_RAW_BYTES_MAX);
    buffer_init(&packed, 1 << 20);
    memset(buffer_reserve(&zeros, FORMAT_RAW_BYTES_MAX), 0, FORMAT_RAW_BYTES_MAX);
    uint8_t *room = buffer_reserve(&packed, 1 << 16);
    size_t size = ZSTD_compress(room, 1 << 16, zeros.data, FORMAT_RAW_BYTES_MAX, 3);
    assert_false(ZSTD_isError(size));
    buffer_append(&file, w->bytes, FORMAT_HEADER_BYTES);
    for (uint32_t i = 0; i < BLOCKS; i++)
        append_packed_block(&file, i, FORMAT_ZSTD, (uint32_t)size, FORMAT_RAW_BYTES_MAX, span_of(room, size));
    struct trace t;
    assert_true(load(file.data, file.size, &t));
    assert_false(t.complete);
    assert_int_equal(t.gaps.count, 2);
    assert_true(t.gaps.rows[1].size_bytes > file.size / 2);
    assert_int_equal(t.losses.rows[1].reason, LOSS_MALFORMED);
    assert_true(t.losses.rows[1].count < BLOCKS / 4);
    trace_done(&t);
    buffer_done(&file);
    buffer_done(&zeros);
    buffer_done(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_hole_and_tail),
        cmocka_unit_test(test_missing_bytes),
        cmocka_unit_test(test_failed_write),
        cmocka_unit_test(test_full_from_the_start),
        cmocka_unit_test(test_many_lost_rows),
        cmocka_unit_test(test_large_weights),
        cmocka_unit_test(test_deep_stack),
        cmocka_unit_test(test_many_facts),
        cmocka_unit_test(test_false_blocks),
        cmocka_unit_test(test_endless_name),
        cmocka_unit_test(test_bad_events),
        cmocka_unit_test(test_bomb),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
