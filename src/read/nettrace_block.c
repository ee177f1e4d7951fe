#include "read/nettrace_block.h"

#include <string.h>

bool nettrace_block_open(struct nettrace_block *b, struct span content, uint32_t version, struct error *err)
{
    struct cursor c = cursor_over(content);
    struct nettrace_block block = {
        .content = content,
        .version = version,
        .layout = NETTRACE_NETPERF,
        .max_ticks = UINT64_MAX,
        .record.changed = NETTRACE_ALL_CHANGED,
    };
    if (version >= 4) {
        uint16_t header_size = cursor_u16le(&c);
        uint16_t flags = cursor_u16le(&c);
        block.min_ticks = cursor_u64le(&c);
        block.max_ticks = cursor_u64le(&c);
        if (cursor_ok(&c) && header_size < c.pos)
            return error_set(err, ERROR_INPUT, "a block's header of %u bytes is too small", header_size);
        cursor_seek(&c, header_size); /* later versions may append to it */
        block.layout = flags & 1 ? NETTRACE_COMPRESSED : NETTRACE_PLAIN;
    }
    if (!cursor_finish(&c, err, "a block's header"))
        return false;
    block.at = content.data + c.pos;
    block.end = content.data + content.size;
    *b = block;
    return true;
}

static void read_netperf(struct cursor *c, struct nettrace_record *r)
{
    uint32_t size = cursor_u32le(c);
    struct cursor event = cursor_over(cursor_bytes(c, size));
    r->type_id = cursor_u32le(&event);
    r->thread_id = r->capture_thread_id = cursor_u32le(&event);
    r->ticks = cursor_u64le(&event);
    r->activity = cursor_bytes(&event, NETTRACE_ACTIVITY_BYTES);
    r->related_activity = cursor_bytes(&event, NETTRACE_ACTIVITY_BYTES);
    r->payload = cursor_bytes(&event, cursor_u32le(&event));
    r->stack = cursor_bytes(&event, cursor_u32le(&event));
    r->processor = UINT32_MAX;
    r->sorted = true; /* these streams are in time order */
    c->failed |= event.failed;
}

static void read_plain(struct cursor *c, uint32_t version, struct nettrace_record *r)
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
    if (version >= 6) {
        r->label_id = cursor_u32le(&event);
    } else {
        r->activity = cursor_bytes(&event, NETTRACE_ACTIVITY_BYTES);
        r->related_activity = cursor_bytes(&event, NETTRACE_ACTIVITY_BYTES);
    }
    r->payload = cursor_bytes(&event, cursor_u32le(&event));
    c->failed |= event.failed;
    if (version < 6 && cursor_left(c))
        cursor_align(c, 4);
}

struct nettrace_number nettrace_take_long(const uint8_t *at, unsigned bytes_max, uint8_t last_max)
{
    struct nettrace_number out = { 0 };
    for (unsigned i = 0; i < bytes_max; i++) {
        out.value |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] >= 0x80)
            continue;
        if (i < bytes_max - 1 || at[i] <= last_max)
            out.after = at + i + 1;
        break;
    }
    return out;
}

const uint8_t *nettrace_block_rest(const struct nettrace_block *b, struct nettrace_rest *rest)
{
    size_t left = (size_t)(b->end - b->at), before = NETTRACE_HEADER_ROOM - left;
    *rest = (struct nettrace_rest){ 0 };
    if (before > (size_t)(b->at - b->content.data)) {
        memcpy(rest->bytes, b->at, left);
        return rest->bytes;
    }
    memcpy(rest->bytes, b->at - before, NETTRACE_HEADER_ROOM); /* as many as the compiler knows: at once */
    return rest->bytes + before;
}

static void leave(struct span *activity, const struct nettrace_rest *rest, const uint8_t *start,
                  const uint8_t *at)
{
    size_t off = (size_t)((uintptr_t)activity->data - (uintptr_t)rest->bytes);
    if (off < sizeof rest->bytes)
        activity->data = at + (activity->data - start);
}

void nettrace_rest_leave(const struct nettrace_rest *rest, const uint8_t *start, const uint8_t *at,
                         struct nettrace_record *r)
{
    leave(&r->activity, rest, start, at);
    leave(&r->related_activity, rest, start, at);
}

void nettrace_block_near_end(struct nettrace_block *b)
{
    struct nettrace_rest rest;
    const uint8_t *at = b->at, *start = nettrace_block_rest(b, &rest);
    nettrace_block_compressed(b, start);
    nettrace_rest_leave(&rest, start, at, &b->record);
}

void nettrace_block_uncompressed(struct nettrace_block *b)
{
    struct cursor c = { .bytes = b->content, .pos = (size_t)(b->at - b->content.data) };
    b->record = (struct nettrace_record){ .changed = NETTRACE_ALL_CHANGED };
    if (b->layout == NETTRACE_PLAIN)
        read_plain(&c, b->version, &b->record);
    else
        read_netperf(&c, &b->record);
    b->at = c.bytes.data + c.pos;
    b->failed = c.failed;
}

bool nettrace_block_finish(const struct nettrace_block *b, struct error *err)
{
    if (!b->failed)
        return true;
    return error_set(err, ERROR_INPUT, "a record of a block ends too early (at byte %zu of %zu)",
                     (size_t)(b->at - b->content.data), b->content.size);
}
