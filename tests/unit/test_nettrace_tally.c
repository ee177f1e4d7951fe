/* Events that are only counted: what is told of them is what would be told of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../nettrace_sample.h"
#include "read/nettrace.h"

/* Of the same thread, type and stack as before; more is not said of most. */
static void append_next(struct buffer *block, uint64_t ticks)
{
    buffer_u8(block, 0);
    buffer_varuint(block, ticks);
    buffer_append(block, "1234", 4);
}

/* What the same thread says of another one, as a sampler does. */
static void append_of_other(struct buffer *block, uint64_t thread, uint64_t ticks)
{
    buffer_u8(block, 0x04);
    buffer_varuint(block, thread);
    buffer_varuint(block, ticks);
    buffer_append(block, "1234", 4);
}

static void append_of_thread(struct buffer *block, uint32_t skipped, uint32_t type, uint64_t ticks)
{
    buffer_u8(block, 0x87);
    buffer_varuint(block, type);
    buffer_varuint(block, skipped);
    buffer_varuint(block, 77);
    buffer_varuint(block, 3);
    buffer_varuint(block, 78);
    buffer_varuint(block, ticks);
    buffer_varuint(block, 4);
    buffer_append(block, "1234", 4);
}

/* A stream of some types, and a block that begins with an event of the first. */
static void begin(struct buffer *b, struct buffer *block, uint32_t types)
{
    buffer_init(b, 1 << 16);
    buffer_init(block, 1 << 16);
    sample_begin(b, 1000000000, 8);
    for (uint32_t type = 1; type <= types; type++)
        sample_type(b, type, "P", 7, 0);
    sample_block_header(block, 0, 5000);
    append_of_thread(block, 0, 1, 10);
}

/* Types 1 and 3 are counted, of type 2 each event is told. */
enum { RUN = 100 };
struct counted {
    struct nettrace_type *types[4];
    uint64_t times[3]; /* of type 1, by slice of 1000 ns */
    size_t calls, events;
    uint64_t lost;
};

static bool count_type(void *user, struct nettrace_type *type, struct error *err)
{
    (void)err;
    struct counted *c = user;
    static const enum nettrace_want wants[] = {
        [1] = NETTRACE_TIME, [2] = NETTRACE_EVENT, [3] = NETTRACE_COUNT
    };
    c->types[type->id] = type;
    type->wanted = wants[type->id];
    return true;
}

static void count_times(void *user, const struct nettrace_type *type, uint64_t time_ns, uint64_t count)
{
    struct counted *c = user;
    assert_int_equal(type->id, 1);
    c->times[time_ns / 1000] += count;
    c->calls++;
}

static uint64_t same_thousand(void *user, uint64_t time_ns)
{
    (void)user;
    return time_ns - time_ns % 1000 + 999;
}

static bool count_event(void *user, const struct nettrace_event *event, struct error *err)
{
    (void)err;
    struct counted *c = user;
    assert_int_equal(event->type->id, 2);
    assert_int_equal(event->sequence, 1 + RUN + 1);
    assert_int_equal(event->capture_thread_id, 77);
    assert_int_equal(event->thread_id, 1000 + RUN - 1);
    assert_int_equal(event->processor, 3);
    assert_int_equal(event->time_ns, 10 + RUN * 20 + 5);
    assert_memory_equal(event->payload.data, "1234", 4);
    c->events++;
    return true;
}

static bool count_loss(void *user, uint64_t capture_thread_id, uint64_t count, struct error *err)
{
    (void)err;
    struct counted *c = user;
    assert_int_equal(capture_thread_id, 77);
    c->lost += count;
    return true;
}

/* Events that are only counted come in runs: what is between and behind them is as it would be else. */
static void test_counted(void **state)
{
    (void)state;
    struct buffer b, block;
    begin(&b, &block, 3);
    for (size_t i = 0; i < RUN; i++)
        append_of_other(&block, 1000 + i, 20);
    buffer_u8(&block, 0x01);
    buffer_varuint(&block, 2);
    buffer_varuint(&block, 5);
    buffer_append(&block, "1234", 4);
    append_of_thread(&block, 0, 3, 1);
    for (size_t i = 0; i < RUN; i++)
        append_next(&block, 0);
    append_of_thread(&block, 6, 1, 0);
    sample_block(&b, "EventBlock", buffer_span(&block));

    struct counted c = { 0 };
    const struct nettrace_sink sink = { .user = &c,
                                        .on_type = count_type,
                                        .on_event = count_event,
                                        .on_times = count_times,
                                        .same_until = same_thousand,
                                        .on_loss = count_loss };
    struct nettrace_reader *r = nettrace_reader_new(&sink);
    struct error err = { 0 };
    assert_true(nettrace_reader_feed(r, buffer_span(&b), &err));
    assert_int_equal(c.events, 1);
    assert_int_equal(c.lost, 6);
    assert_int_equal(nettrace_reader_counts(r)->lost, 6);
    assert_int_equal(nettrace_reader_counts(r)->events, 2 * RUN + 4);
    assert_int_equal(nettrace_reader_counts(r)->time_breaks, 0);
    assert_int_equal(c.types[1]->events, RUN + 2);
    assert_int_equal(c.types[1]->payload_bytes, 4 * (RUN + 2));
    assert_int_equal(c.types[1]->latest_ns, 10 + RUN * 20 + 6);
    assert_int_equal(c.types[2]->events, 1);
    assert_int_equal(c.types[3]->events, RUN + 1);
    assert_int_equal(c.times[0], 50);
    assert_int_equal(c.times[1], 50);
    assert_int_equal(c.times[2], 2);
    assert_true(c.calls < 10);
    nettrace_reader_free(r);
    buffer_done(&b);
    buffer_done(&block);
}

static bool see_activity(void *user, const struct nettrace_event *event, struct error *err)
{
    (void)err;
    assert_int_equal(event->activity.size, 16);
    assert_memory_equal(event->activity.data, "activity of some", 16);
    ++*(size_t *)user;
    return true;
}

static bool want_second(void *user, struct nettrace_type *type, struct error *err)
{
    (void)user;
    (void)err;
    type->wanted = type->id == 2 ? NETTRACE_EVENT : NETTRACE_COUNT;
    return true;
}

/* An event has the activity of the one before if it says none, be that one of those that are only counted. */
static void test_activity_of_counted(void **state)
{
    (void)state;
    struct buffer b, block;
    begin(&b, &block, 2);
    buffer_u8(&block, 0x10);
    buffer_varuint(&block, 1);
    buffer_append(&block, "activity of some1234", 20);
    append_next(&block, 1);
    buffer_u8(&block, 0x01);
    buffer_varuint(&block, 2);
    buffer_varuint(&block, 5);
    buffer_append(&block, "1234", 4);
    sample_block(&b, "EventBlock", buffer_span(&block));
    size_t seen = 0;
    const struct nettrace_sink sink = { .user = &seen, .on_type = want_second, .on_event = see_activity };
    struct nettrace_reader *r = nettrace_reader_new(&sink);
    struct error err = { 0 };
    assert_true(nettrace_reader_feed(r, buffer_span(&b), &err));
    assert_int_equal(seen, 1);
    assert_int_equal(nettrace_reader_counts(r)->events, 4);
    nettrace_reader_free(r);
    buffer_done(&b);
    buffer_done(&block);
}

/* What is told of a stream of random events, by type. */
enum { TYPES = 300, STACKS = 300, BLOCKS = 200, WANTS = 4 };
struct told {
    enum nettrace_want wanted;
    struct nettrace_type *types[TYPES + 1];
    struct sum {
        uint64_t events, with_stack, payload_bytes, latest_ns;
    } each[TYPES + 1], all[TYPES + 1]; /* as they were told one by one; as the reader says in the end */
    uint64_t threads;                  /* of samples */
};

static bool want_type(void *user, struct nettrace_type *type, struct error *err)
{
    (void)err;
    struct told *t = user;
    t->types[type->id] = type;
    type->wanted = t->wanted;
    return true;
}

static bool add_event(void *user, const struct nettrace_event *event, struct error *err)
{
    (void)err;
    struct told *t = user;
    struct sum *sum = &t->each[event->type->id];
    sum->events++;
    sum->with_stack += event->stack.size > 0;
    sum->payload_bytes += event->payload.size;
    if (event->time_ns > sum->latest_ns) /* each block begins at 0 */
        sum->latest_ns = event->time_ns;
    t->threads += event->thread_id * event->stack.size;
    return true;
}

static void add_sample(void *user, const struct nettrace_sample *sample)
{
    struct told *t = user;
    t->threads += sample->thread_id * sample->stack.size;
}

static void add_times(void *user, const struct nettrace_type *type, uint64_t time_ns, uint64_t count)
{
    struct told *t = user;
    struct sum *sum = &t->each[type->id];
    sum->events += count;
    if (time_ns > sum->latest_ns)
        sum->latest_ns = time_ns;
}

/* Sometimes with zeros that are not needed. */
static void append_number(struct buffer *block, uint32_t value)
{
    unsigned more = rand() % 16 ? 0 : (unsigned)rand() % 3;
    for (; value >= 0x80 || more > 0; value >>= 7) {
        buffer_u8(block, (uint8_t)(value | 0x80));
        more -= value < 0x80;
    }
    buffer_u8(block, (uint8_t)value);
}

static uint32_t any(uint32_t usual, uint32_t most)
{
    return (uint32_t)rand() % (rand() % 8 ? usual : most);
}

static void append_random(struct buffer *block, uint8_t flags, uint32_t *payload_bytes)
{
    buffer_u8(block, flags);
    if (flags & 0x01)
        append_number(block, 1 + any(100, TYPES));
    if (flags & 0x02) {
        append_number(block, 0);
        append_number(block, 77);
        append_number(block, any(4, 1 << 20));
    }
    if (flags & 0x04)
        append_number(block, any(1 << 13, 1 << 30));
    if (flags & 0x08)
        append_number(block, any(100, STACKS));
    append_number(block, any(1 << 13, 1 << 20));
    for (unsigned i = 0; i < 16u * (!!(flags & 0x10) + !!(flags & 0x20)); i++)
        buffer_u8(block, 0xff);
    if (flags & 0x80)
        append_number(block, *payload_bytes = any(20, 2000));
    for (uint32_t i = 0; i < *payload_bytes; i++)
        buffer_u8(block, (uint8_t)rand());
}

static void append_stacks(struct buffer *b)
{
    struct buffer block;
    buffer_init(&block, 1 << 16);
    buffer_u32le(&block, 1);
    buffer_u32le(&block, STACKS - 1);
    for (uint32_t id = 1; id < STACKS; id++) {
        buffer_u32le(&block, id % 5 * 8);
        for (uint32_t i = 0; i < id % 5; i++)
            buffer_u64le(&block, id);
    }
    sample_block(b, "StackBlock", buffer_span(&block));
    buffer_done(&block);
}

/* Returns how many events they hold. */
static uint64_t append_blocks(struct buffer *b)
{
    uint64_t events = BLOCKS;
    struct buffer block;
    buffer_init(&block, 1 << 20);
    for (int i = 0; i < BLOCKS; i++) {
        uint32_t payload_bytes;
        buffer_clear(&block);
        sample_block_header(&block, 0, UINT64_MAX);
        append_random(&block, 0x8f, &payload_bytes);
        for (int left = rand() % 300; left > 0; left--, events++)
            append_random(&block, (uint8_t)(rand() & (rand() % 8 ? 0x8d : 0xff)), &payload_bytes);
        sample_block(b, "EventBlock", buffer_span(&block));
    }
    buffer_done(&block);
    return events;
}

static void read_told(struct span stream, enum nettrace_want wanted, struct told *out)
{
    const struct nettrace_sink sink = { .user = out,
                                        .on_type = want_type,
                                        .on_event = add_event,
                                        .on_sample = add_sample,
                                        .on_times = add_times };
    struct error err = { 0 };
    *out = (struct told){ .wanted = wanted };
    struct nettrace_reader *r = nettrace_reader_new(&sink);
    assert_true(nettrace_reader_feed(r, stream, &err));
    for (uint32_t id = 1; id <= TYPES; id++) {
        const struct nettrace_type *type = out->types[id];
        out->all[id] =
            (struct sum){ type->events, type->events_with_stack, type->payload_bytes, type->latest_ns };
    }
    nettrace_reader_free(r);
}

/* Heads of all kinds, usual and other: whatever is wanted of the events, they are as many. */
static void test_any_heads(void **state)
{
    (void)state;
    static struct told told[WANTS];
    struct buffer b;
    buffer_init(&b, 64 << 20);
    srand(1);
    sample_begin(&b, 1000000000, 8);
    for (uint32_t type = 1; type <= TYPES; type++)
        sample_type(&b, type, "P", 7, 0);
    append_stacks(&b);
    uint64_t events = append_blocks(&b);
    for (int wanted = 0; wanted < WANTS; wanted++)
        read_told(buffer_span(&b), (enum nettrace_want)wanted, &told[wanted]);
    for (uint32_t id = 1; id <= TYPES; id++) {
        events -= told[NETTRACE_EVENT].all[id].events;
        assert_memory_equal(&told[NETTRACE_EVENT].each[id], &told[NETTRACE_EVENT].all[id],
                            sizeof(struct sum));
        for (int wanted = 1; wanted < WANTS; wanted++)
            assert_memory_equal(&told[wanted].all[id], &told[NETTRACE_EVENT].all[id], sizeof(struct sum));
        assert_int_equal(told[NETTRACE_TIME].each[id].events, told[NETTRACE_EVENT].all[id].events);
        assert_int_equal(told[NETTRACE_TIME].each[id].latest_ns, told[NETTRACE_EVENT].all[id].latest_ns);
    }
    assert_int_equal(events, 0);
    assert_int_equal(told[NETTRACE_SAMPLE].threads, told[NETTRACE_EVENT].threads);
    buffer_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activity_of_counted),
        cmocka_unit_test(test_any_heads),
        cmocka_unit_test(test_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
