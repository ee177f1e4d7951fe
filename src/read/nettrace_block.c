#include "read/nettrace_block.h"

#include <string.h>

enum { /* flags of a compressed record's header */
       HAS_TYPE = 0x01,
       HAS_SEQUENCE = 0x02,
       HAS_THREAD = 0x04,
       HAS_STACK = 0x08,
       HAS_ACTIVITY = 0x10,
       HAS_RELATED_ACTIVITY = 0x20,
       IS_SORTED = 0x40,
       HAS_PAYLOAD_SIZE = 0x80,
};

bool nettrace_block_open(struct nettrace_block *b, struct span content, uint32_t version, struct error *err)
{
    struct nettrace_block block = { .c = cursor_over(content),
                                    .layout = NETTRACE_NETPERF,
                                    .max_ticks = UINT64_MAX };
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

static struct span read_activity(struct cursor *c)
{
    static const uint8_t none[16];
    struct span id = cursor_bytes(c, sizeof none);
    return id.size && memcmp(id.data, none, sizeof none) != 0 ? id : (struct span){ 0 };
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

static void read_plain(struct cursor *c, struct nettrace_record *r)
{
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
    r->activity = read_activity(&event);
    r->related_activity = read_activity(&event);
    r->payload = cursor_bytes(&event, cursor_u32le(&event));
    c->failed |= event.failed;
    if (cursor_left(c))
        cursor_align(c, 4);
}

static void read_compressed(struct nettrace_block *b, struct nettrace_record *r)
{
    struct cursor *c = &b->c;
    *r = b->last;
    uint8_t flags = cursor_u8(c);
    if (flags & HAS_TYPE)
        r->type_id = cursor_varuint32(c);
    if (flags & HAS_SEQUENCE) {
        r->sequence += cursor_varuint32(c) + 1;
        r->capture_thread_id = cursor_varuint64(c);
        r->processor = cursor_varuint32(c);
    } else if (r->type_id != 0) {
        r->sequence++;
    }
    if (flags & HAS_THREAD)
        r->thread_id = cursor_varuint64(c);
    if (flags & HAS_STACK)
        r->stack_id = cursor_varuint32(c);
    r->ticks += cursor_varuint64(c); /* wraps: time may step back between runs of two threads */
    if (flags & HAS_ACTIVITY)
        r->activity = read_activity(c);
    if (flags & HAS_RELATED_ACTIVITY)
        r->related_activity = read_activity(c);
    r->sorted = flags & IS_SORTED;
    if (flags & HAS_PAYLOAD_SIZE)
        b->payload_size = cursor_varuint32(c);
    r->payload = cursor_bytes(c, b->payload_size);
    b->last = *r;
}

bool nettrace_block_next(struct nettrace_block *b, struct nettrace_record *out)
{
    if (cursor_left(&b->c) == 0)
        return false;
    *out = (struct nettrace_record){ 0 };
    if (b->layout == NETTRACE_COMPRESSED)
        read_compressed(b, out);
    else if (b->layout == NETTRACE_PLAIN)
        read_plain(&b->c, out);
    else
        read_netperf(&b->c, out);
    return cursor_ok(&b->c);
}

bool nettrace_block_finish(const struct nettrace_block *b, struct error *err)
{
    return cursor_finish(&b->c, err, "a record of a block");
}
