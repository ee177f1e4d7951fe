#include "render/nettrace_stream.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/utf16.h"

enum {
    BLOCK_BYTES = 100 << 10,    /* as runtimes make them */
    BLOCK_BYTES_MAX = 16 << 20, /* as readers take them: ours, NETTRACE_BLOCK_MAX */
    STACKS_BETWEEN_POINTS = 1 << 17,
    STACK_BYTES_BETWEEN_POINTS = 32 << 20, /* half of what our reader keeps */
    NOT_A_CPU = -1,
    ACTIVITY_BYTES = 16,
};

/* What an event's header says anew; everything else is as in the event before. */
enum {
    HAS_TYPE = 0x01,
    HAS_SEQUENCE = 0x02, /* with the thread that wrote it and its CPU */
    HAS_THREAD = 0x04,
    HAS_STACK = 0x08,
    HAS_ACTIVITY = 0x10,
    HAS_RELATED_ACTIVITY = 0x20,
    IS_SORTED = 0x40,
    HAS_SIZE = 0x80,
};

struct nettrace_stream_thread {
    uint64_t id;
    uint32_t sequence; /* of its latest event */
};

static void put(struct nettrace_stream *s, const void *bytes, size_t size)
{
    output_write(s->out, bytes, size);
    s->off += size;
}

static void put_u32(struct nettrace_stream *s, uint32_t value)
{
    put(s, &value, sizeof value);
}

static void put_object(struct nettrace_stream *s, const char *type, uint32_t version)
{
    put(s, "\5\5\1", 3);
    put_u32(s, version);
    put_u32(s, version);
    put_u32(s, (uint32_t)strlen(type));
    put(s, type, strlen(type));
    put(s, "\6", 1);
}

/* Blocks are aligned from the stream's first byte. Empties `content`. */
static void put_block(struct nettrace_stream *s, const char *type, struct buffer *content)
{
    s->failed |= content->failed;
    put_object(s, type, 2);
    put_u32(s, (uint32_t)content->size);
    put(s, "\0\0\0", (4 - s->off % 4) % 4);
    put(s, content->data, content->size);
    put(s, "\6", 1);
    buffer_clear(content);
}

/* Space for the header of a block of records, which is known last. */
static void open_records(struct buffer *block)
{
    buffer_append(block, (const uint8_t[20]){ 20, 0, 1 /* compressed headers */ }, 20);
}

static void close_records(struct buffer *block, uint64_t from_ns, uint64_t to_ns)
{
    if (block->failed)
        return;
    memcpy(block->data + 4, &from_ns, sizeof from_ns);
    memcpy(block->data + 12, &to_ns, sizeof to_ns);
}

void nettrace_stream_begin(struct nettrace_stream *s, const struct nettrace_stream_head *head,
                           struct output *out)
{
    struct buffer *const blocks[] = { &s->types, &s->stacks, &s->events };
    *s = (struct nettrace_stream){ .out = out, .first_stack = 1, .thread_count = 1 };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        buffer_init(blocks[i], BLOCK_BYTES_MAX);
    time_t seconds = (time_t)(head->realtime_ns / 1000000000u);
    struct tm t = { .tm_year = 70, .tm_mday = 1 };
    gmtime_r(&seconds, &t);
    const uint16_t utc[] = { (uint16_t)(t.tm_year + 1900), (uint16_t)(t.tm_mon + 1),
                             (uint16_t)t.tm_wday,          (uint16_t)t.tm_mday,
                             (uint16_t)t.tm_hour,          (uint16_t)t.tm_min,
                             (uint16_t)t.tm_sec,           (uint16_t)(head->realtime_ns / 1000000u % 1000u) };
    const uint64_t clock[] = { head->start_ns, 1000000000 };
    put(s, "Nettrace\x14\0\0\0!FastSerialization.1", 32);
    put_object(s, "Trace", 4);
    put(s, utc, sizeof utc);
    put(s, clock, sizeof clock);
    put_u32(s, head->pointer_size);
    put_u32(s, head->process_id);
    put_u32(s, head->processors);
    put_u32(s, head->sampling_period_ns);
    put(s, "\6", 1);
}

static void put_types(struct nettrace_stream *s)
{
    if (!s->types.size)
        return;
    close_records(&s->types, 0, UINT64_MAX >> 1);
    put_block(s, "MetadataBlock", &s->types);
}

static void put_stacks(struct nettrace_stream *s)
{
    if (!s->stacks.size)
        return;
    memcpy(s->stacks.data, &s->first_stack, sizeof s->first_stack);
    memcpy(s->stacks.data + 4, &s->stack_count, sizeof s->stack_count);
    s->stack_bytes += s->stacks.size;
    put_block(s, "StackBlock", &s->stacks);
    s->first_stack += s->stack_count;
    s->stack_count = 0;
}

static void put_events(struct nettrace_stream *s)
{
    put_types(s);
    put_stacks(s);
    if (!s->events.size)
        return;
    close_records(&s->events, s->block_from_ns, s->block_to_ns);
    put_block(s, "EventBlock", &s->events);
}

static void describe_type(struct buffer *out, uint32_t id, const struct nettrace_stream_type *type)
{
    buffer_u32le(out, id);
    utf16_append_zstring(out, span_of(type->provider, strlen(type->provider)));
    buffer_u32le(out, type->event_id);
    utf16_append_zstring(out, span_of(type->name, strlen(type->name)));
    buffer_u64le(out, type->keywords);
    buffer_u32le(out, type->version);
    buffer_u32le(out, type->level);
    if (type->fields.size)
        buffer_append(out, type->fields.data, type->fields.size);
    else
        buffer_u32le(out, 0);
    if (type->opcode) {
        buffer_u32le(out, 1);
        buffer_u8(out, 1);
        buffer_u8(out, type->opcode);
    }
    if (type->params.size) {
        buffer_u32le(out, (uint32_t)type->params.size);
        buffer_u8(out, 2);
        buffer_append(out, type->params.data, type->params.size);
    }
}

uint32_t nettrace_stream_add_type(struct nettrace_stream *s, const struct nettrace_stream_type *type)
{
    struct buffer payload;
    buffer_init(&payload, BLOCK_BYTES_MAX);
    describe_type(&payload, ++s->type_count, type);
    if (!s->types.size)
        open_records(&s->types);
    buffer_u8(&s->types, HAS_SEQUENCE | HAS_SIZE);
    buffer_varuint(&s->types, UINT32_MAX); /* the number of what describes is 0 */
    buffer_varuint(&s->types, 0);
    buffer_varuint(&s->types, (uint32_t)NOT_A_CPU);
    buffer_varuint(&s->types, 0);
    buffer_varuint(&s->types, payload.size);
    buffer_append(&s->types, payload.data, payload.size);
    s->failed |= payload.failed;
    buffer_done(&payload);
    if (s->types.size >= BLOCK_BYTES)
        put_types(s);
    return s->type_count;
}

uint32_t nettrace_stream_add_stack(struct nettrace_stream *s, const uint64_t *addrs, size_t count)
{
    if (!s->stacks.size)
        buffer_u64le(&s->stacks, 0); /* first id and count */
    buffer_u32le(&s->stacks, (uint32_t)(count * sizeof *addrs));
    for (size_t i = 0; i < count; i++)
        buffer_u64le(&s->stacks, addrs[i]);
    uint32_t id = s->first_stack + s->stack_count++;
    if (s->stacks.size >= BLOCK_BYTES)
        put_stacks(s);
    return id;
}

uint32_t nettrace_stream_no_stack(struct nettrace_stream *s)
{
    if (!s->no_stack)
        s->no_stack = nettrace_stream_add_stack(s, NULL, 0);
    return s->no_stack;
}

static bool thread_same(const void *table, uint32_t id, const void *key)
{
    const struct nettrace_stream *s = table;
    return s->threads[id].id == *(const uint64_t *)key;
}

static struct nettrace_stream_thread *thread_of(struct nettrace_stream *s, uint64_t thread_id)
{
    uint64_t hash = hash_pair(thread_id, 0);
    uint32_t id = id_map_find(&s->thread_ids, hash, thread_same, s, &thread_id);
    if (!id) {
        s->threads = mem_grow(s->threads, &s->thread_capacity, s->thread_count + 1, sizeof *s->threads);
        id = (uint32_t)s->thread_count++;
        s->threads[id] = (struct nettrace_stream_thread){ .id = thread_id };
        id_map_add(&s->thread_ids, hash, id);
    }
    return &s->threads[id];
}

static const uint8_t *activity_of(struct span id)
{
    static const uint8_t none[ACTIVITY_BYTES];
    return id.size ? id.data : none;
}

/* What of the header is not as in the event before. */
static uint8_t changes_of(const struct nettrace_stream *s, const struct nettrace_stream_event *e,
                          uint32_t sequence, bool first)
{
    const struct nettrace_stream_latest *l = &s->latest;
    bool other_thread = e->thread_id != l->thread_id;
    unsigned flags = IS_SORTED;
    if (e->type != l->type)
        flags |= HAS_TYPE;
    if (first || other_thread || sequence != l->sequence + 1) /* the first also says that no CPU is known */
        flags |= HAS_SEQUENCE;
    if (other_thread)
        flags |= HAS_THREAD;
    if (e->stack != l->stack)
        flags |= HAS_STACK;
    if (memcmp(activity_of(e->activity), l->activity, ACTIVITY_BYTES) != 0)
        flags |= HAS_ACTIVITY;
    if (memcmp(activity_of(e->related_activity), l->related_activity, ACTIVITY_BYTES) != 0)
        flags |= HAS_RELATED_ACTIVITY;
    if (e->payload.size != l->payload_size)
        flags |= HAS_SIZE;
    return (uint8_t)flags;
}

static void put_header(struct nettrace_stream *s, const struct nettrace_stream_event *e, uint32_t sequence,
                       uint8_t flags, uint64_t before_ns)
{
    struct buffer *b = &s->events;
    buffer_u8(b, flags);
    if (flags & HAS_TYPE)
        buffer_varuint(b, e->type);
    if (flags & HAS_SEQUENCE) {
        /* the difference from the event before in the block, of whatever thread */
        buffer_varuint(b, (uint32_t)(sequence - s->latest.sequence - 1));
        buffer_varuint(b, e->thread_id);
        buffer_varuint(b, (uint32_t)NOT_A_CPU);
    }
    if (flags & HAS_THREAD)
        buffer_varuint(b, e->thread_id);
    if (flags & HAS_STACK)
        buffer_varuint(b, e->stack);
    buffer_varuint(b, e->time_ns - before_ns);
    if (flags & HAS_ACTIVITY)
        buffer_append(b, activity_of(e->activity), ACTIVITY_BYTES);
    if (flags & HAS_RELATED_ACTIVITY)
        buffer_append(b, activity_of(e->related_activity), ACTIVITY_BYTES);
    if (flags & HAS_SIZE)
        buffer_varuint(b, e->payload.size);
}

void nettrace_stream_add_event(struct nettrace_stream *s, const struct nettrace_stream_event *e)
{
    struct buffer *b = &s->events;
    bool first = !b->size;
    if (first) {
        open_records(b);
        s->block_from_ns = e->time_ns;
        memset(&s->latest, 0, sizeof s->latest);
    }
    uint32_t sequence = ++thread_of(s, e->thread_id)->sequence;
    put_header(s, e, sequence, changes_of(s, e, sequence, first), first ? 0 : s->block_to_ns);
    buffer_append(b, e->payload.data, e->payload.size);
    s->latest = (struct nettrace_stream_latest){
        .thread_id = e->thread_id,
        .type = e->type,
        .stack = e->stack,
        .sequence = sequence,
        .payload_size = (uint32_t)e->payload.size,
    };
    memcpy(s->latest.activity, activity_of(e->activity), ACTIVITY_BYTES);
    memcpy(s->latest.related_activity, activity_of(e->related_activity), ACTIVITY_BYTES);
    s->block_to_ns = e->time_ns;
    if (b->size >= BLOCK_BYTES)
        put_events(s);
}

void nettrace_stream_tell(struct nettrace_stream *s, uint32_t type, uint64_t time_ns, struct buffer *payload)
{
    nettrace_stream_add_event(s, &(struct nettrace_stream_event){ .type = type,
                                                                  .stack = nettrace_stream_no_stack(s),
                                                                  .time_ns = time_ns,
                                                                  .payload = buffer_span(payload) });
    s->failed |= payload->failed;
    buffer_clear(payload);
}

bool nettrace_stream_wants_point(const struct nettrace_stream *s)
{
    return s->first_stack + s->stack_count > STACKS_BETWEEN_POINTS ||
           s->stack_bytes + s->stacks.size > STACK_BYTES_BETWEEN_POINTS;
}

void nettrace_stream_add_point(struct nettrace_stream *s, uint64_t time_ns, uint64_t lost)
{
    struct buffer block;
    put_events(s);
    buffer_init(&block, BLOCK_BYTES_MAX);
    buffer_u64le(&block, time_ns);
    buffer_u32le(&block, (uint32_t)(s->thread_count - 1));
    for (size_t i = 1; i < s->thread_count; i++) {
        if (i == 1)
            s->threads[i].sequence += (uint32_t)lost;
        buffer_u64le(&block, s->threads[i].id);
        buffer_u32le(&block, s->threads[i].sequence);
    }
    put_block(s, "SPBlock", &block);
    buffer_done(&block);
    s->first_stack = 1;
    s->no_stack = 0;
    s->stack_bytes = 0;
}

bool nettrace_stream_end(struct nettrace_stream *s, struct error *err)
{
    put_events(s);
    put(s, "\1", 1);
    buffer_done(&s->types);
    buffer_done(&s->stacks);
    buffer_done(&s->events);
    id_map_done(&s->thread_ids);
    free(s->threads);
    return !s->failed || error_set(err, ERROR_LIMIT, "an event is larger than a nettrace block may be");
}
