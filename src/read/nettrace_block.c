#include "read/nettrace_block.h"

#include <string.h>

enum { /* flags of a compressed record's header */
       HAS_TYPE = 0x01,
       HAS_SEQUENCE = 0x02,
       HAS_THREAD = 0x04,
       HAS_STACK = 0x08,
       HAS_ACTIVITY = 0x10, /* version 6: labels */
       HAS_RELATED_ACTIVITY = 0x20,
       IS_SORTED = 0x40,
       HAS_PAYLOAD_SIZE = 0x80,
};

enum {
    ACTIVITY_BYTES = 16,
    /* of the longest compressed header: flags, six 32-bit and three 64-bit numbers, two activities */
    HEADER_BYTES_MAX = 1 + 6 * 5 + 3 * 10 + 2 * ACTIVITY_BYTES,
};

bool nettrace_block_open(struct nettrace_block *b, struct span content, uint32_t version, struct error *err)
{
    struct nettrace_block block = {
        .c = cursor_over(content), .version = version, .layout = NETTRACE_NETPERF, .max_ticks = UINT64_MAX
    };
    if (version >= 4) {
        uint16_t header_size = cursor_u16le(&block.c);
        uint16_t flags = cursor_u16le(&block.c);
        block.min_ticks = cursor_u64le(&block.c);
        block.max_ticks = cursor_u64le(&block.c);
        if (cursor_ok(&block.c) && header_size < block.c.pos)
            return error_set(err, ERROR_INPUT, "a block's header of %u bytes is too small", header_size);
        cursor_seek(&block.c, header_size); /* later versions may append to it */
        block.layout = flags & 1 ? NETTRACE_COMPRESSED : NETTRACE_PLAIN;
    }
    if (!cursor_finish(&block.c, err, "a block's header"))
        return false;
    *b = block;
    return true;
}

static struct span activity_or_none(struct span id)
{
    static const uint8_t none[ACTIVITY_BYTES];
    return id.size && memcmp(id.data, none, sizeof none) != 0 ? id : (struct span){ 0 };
}

static struct span read_activity(struct cursor *c)
{
    return activity_or_none(cursor_bytes(c, ACTIVITY_BYTES));
}

static void read_netperf(struct cursor *c, struct nettrace_record *r)
{
    uint32_t size = cursor_u32le(c);
    struct cursor event = cursor_over(cursor_bytes(c, size));
    r->type_id = cursor_u32le(&event);
    r->thread_id = r->capture_thread_id = cursor_u32le(&event);
    r->ticks = cursor_u64le(&event);
    r->activity = read_activity(&event);
    r->related_activity = read_activity(&event);
    r->payload = cursor_bytes(&event, cursor_u32le(&event));
    r->stack = cursor_bytes(&event, cursor_u32le(&event));
    r->processor = UINT32_MAX;
    r->sorted = true; /* these streams are in time order */
    c->failed |= event.failed;
}

static void read_plain(struct nettrace_block *b, struct nettrace_record *r)
{
    struct cursor *c = &b->c;
    uint32_t size = cursor_u32le(c);
    struct cursor event = cursor_over(cursor_bytes(c, size));
    uint32_t type_id = cursor_u32le(&event);
    r->type_id = type_id & 0x7fffffff;
    r->sorted = !(type_id >> 31); /* the writer's meaning; the specification's prose reads the other way */
    r->sequence = cursor_u32le(&event);
    r->thread_id = cursor_u64le(&event);
    r->capture_thread_id = cursor_u64le(&event);
    r->processor = cursor_u32le(&event);
    r->stack_id = cursor_u32le(&event);
    r->ticks = cursor_u64le(&event);
    if (b->version >= 6) {
        r->label_id = cursor_u32le(&event);
    } else {
        r->activity = read_activity(&event);
        r->related_activity = read_activity(&event);
    }
    r->payload = cursor_bytes(&event, cursor_u32le(&event));
    c->failed |= event.failed;
    if (b->version < 6 && cursor_left(c))
        cursor_align(c, 4);
}

/*
 * The header is read without a check for each byte: there are HEADER_BYTES_MAX behind `at` and 8 more, if
 * need be zeros. A trace has millions of them, and how long a number is can hardly be predicted: up to 8
 * bytes are put together without asking.
 */
static inline uint64_t take_varuint(const uint8_t **at, unsigned bytes_max, uint64_t largest_last, bool *bad)
{
    const uint8_t *p = *at;
    uint64_t value = *p & 0x7f;
    unsigned i = 1;
    for (; p[i - 1] & 0x80; i++) {
        if (i == bytes_max - 1 && p[i] > largest_last) { /* with a bit for one more, too */
            *bad = true;
            return 0;
        }
        value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
    }
    *at = p + i;
    return value;
}

static inline uint32_t take_varuint32(const uint8_t **at, bool *bad)
{
    return (uint32_t)take_varuint(at, 5, 0x0f, bad);
}

static inline uint64_t take_varuint64(const uint8_t **at, bool *bad)
{
    return take_varuint(at, 10, 0x01, bad);
}

static inline const uint8_t *take_activity(const uint8_t *at, const uint8_t *start, struct span rest,
                                           struct span *out)
{
    *out = activity_or_none(span_part(rest, (uint64_t)(at - start), ACTIVITY_BYTES));
    return at + ACTIVITY_BYTES;
}

/* Decodes the header whose bytes are at `start`; `rest` is the block from there on. Returns its size. */
static inline size_t read_header(struct nettrace_block *b, const uint8_t *start, struct span rest)
{
    struct nettrace_record *r = &b->record;
    const uint8_t *at = start;
    bool bad = false;
    uint8_t flags = *at++;
    if (flags & HAS_TYPE)
        r->type_id = take_varuint32(&at, &bad);
    if (flags & HAS_SEQUENCE) {
        r->sequence += take_varuint32(&at, &bad) + 1;
        r->capture_thread_id = take_varuint64(&at, &bad);
        r->processor = take_varuint32(&at, &bad);
    } else {
        r->sequence += r->type_id != 0 || b->version >= 6;
    }
    if (flags & HAS_THREAD)
        r->thread_id = take_varuint64(&at, &bad);
    if (flags & HAS_STACK)
        r->stack_id = take_varuint32(&at, &bad);
    r->ticks += take_varuint64(&at, &bad); /* wraps: time may step back between runs of two threads */
    if (flags & HAS_ACTIVITY && b->version >= 6)
        r->label_id = take_varuint32(&at, &bad);
    else if (flags & HAS_ACTIVITY)
        at = take_activity(at, start, rest, &r->activity);
    if (flags & HAS_RELATED_ACTIVITY && b->version < 6)
        at = take_activity(at, start, rest, &r->related_activity);
    r->sorted = flags & IS_SORTED;
    if (flags & HAS_PAYLOAD_SIZE)
        b->payload_size = take_varuint32(&at, &bad);
    return bad ? SIZE_MAX : (size_t)(at - start);
}

static void read_compressed(struct nettrace_block *b)
{
    struct cursor *c = &b->c;
    struct span rest = { c->bytes.data + c->pos, c->bytes.size - c->pos };
    size_t size;
    if (rest.size >= HEADER_BYTES_MAX + sizeof(uint64_t)) {
        size = read_header(b, rest.data, rest);
    } else {
        uint8_t padded[HEADER_BYTES_MAX + 2 * sizeof(uint64_t)] = { 0 };
        memcpy(padded, rest.data, rest.size);
        size = read_header(b, padded, rest);
    }
    if (size > rest.size || b->payload_size > rest.size - size) {
        c->failed = true;
        return;
    }
    b->record.payload = (struct span){ b->payload_size ? rest.data + size : NULL, b->payload_size };
    c->pos += size + b->payload_size;
}

const struct nettrace_record *nettrace_block_next(struct nettrace_block *b)
{
    if (cursor_left(&b->c) == 0)
        return NULL;
    if (b->layout == NETTRACE_COMPRESSED) {
        read_compressed(b);
        return b->c.failed ? NULL : &b->record;
    }
    b->record = (struct nettrace_record){ 0 };
    if (b->layout == NETTRACE_PLAIN)
        read_plain(b, &b->record);
    else
        read_netperf(&b->c, &b->record);
    return b->c.failed ? NULL : &b->record;
}

bool nettrace_block_finish(const struct nettrace_block *b, struct error *err)
{
    return cursor_finish(&b->c, err, "a record of a block");
}
