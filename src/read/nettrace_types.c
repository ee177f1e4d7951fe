#include "read/nettrace_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf16.h"

enum { TYPE_OBJECT = 1, NESTING_MAX = 32, TAG_OPCODE = 1, TAG_PARAMS = 2 };

struct kept_type {
    struct nettrace_type type;
    struct span payload; /* what it was read from */
};

void nettrace_types_init(struct nettrace_types *t)
{
    *t = (struct nettrace_types){ 0 };
    arena_init(&t->arena, NETTRACE_METADATA_BYTES_MAX);
}

void nettrace_types_done(struct nettrace_types *t)
{
    arena_done(&t->arena);
    free(t->by_id);
}

struct nettrace_type *nettrace_types_find(const struct nettrace_types *t, uint32_t id)
{
    return id < t->count ? t->by_id[id] : NULL;
}

/* Passes `count` fields, each: i32 type code, [an object: i32 count and as many fields], name. */
static void skip_fields(struct cursor *c, uint32_t count)
{
    uint32_t left[NESTING_MAX] = { count };
    unsigned depth = 0;
    while (cursor_ok(c)) {
        if (left[depth] == 0) {
            if (depth == 0)
                return;
            depth--;
            utf16_zstring(c); /* the object's own name */
            continue;
        }
        left[depth]--;
        if (cursor_u32le(c) != TYPE_OBJECT) {
            utf16_zstring(c);
        } else if (depth + 1 == NESTING_MAX) {
            c->failed = true;
        } else {
            left[++depth] = cursor_u32le(c);
        }
    }
}

static bool read_type(struct span payload, struct nettrace_type *out)
{
    struct cursor c = cursor_over(payload);
    struct nettrace_type type = { .id = cursor_u32le(&c) };
    type.provider = utf16_zstring(&c);
    type.event_id = cursor_u32le(&c);
    type.name = utf16_zstring(&c);
    type.keywords = cursor_u64le(&c);
    type.version = cursor_u32le(&c);
    type.level = cursor_u32le(&c);
    size_t fields_off = c.pos;
    uint32_t field_count = cursor_u32le(&c);
    if (!cursor_ok(&c))
        return false;
    skip_fields(&c, field_count);
    /* Field lists the runtime could not express right are not worth an event: keep what is there. */
    size_t fields_end = cursor_ok(&c) ? c.pos : payload.size;
    type.fields = span_part(payload, fields_off, fields_end - fields_off);
    while (cursor_left(&c) > 0) {
        uint32_t size = cursor_u32le(&c);
        uint8_t kind = cursor_u8(&c);
        struct span content = cursor_bytes(&c, size);
        if (!cursor_ok(&c))
            break;
        if (kind == TAG_OPCODE && content.size)
            type.opcode = content.data[0];
        else if (kind == TAG_PARAMS)
            type.params = content;
    }
    *out = type;
    return true;
}

static void grow(struct nettrace_types *t, uint32_t id)
{
    if (id < t->count)
        return;
    size_t count = t->count ? t->count : 64;
    while (count <= id)
        count *= 2;
    t->by_id = mem_resize(t->by_id, count, sizeof *t->by_id);
    memset(t->by_id + t->count, 0, (count - t->count) * sizeof *t->by_id);
    t->count = count;
}

enum nettrace_type_change nettrace_types_define(struct nettrace_types *t, struct span payload,
                                                struct nettrace_type **out)
{
    struct nettrace_type type;
    if (!read_type(payload, &type) || type.id == 0)
        return NETTRACE_TYPE_BAD;
    if (type.id >= NETTRACE_METADATA_MAX)
        return NETTRACE_TYPE_REFUSED;
    struct nettrace_type *old = nettrace_types_find(t, type.id);
    if (old && span_equals(((struct kept_type *)old)->payload, payload))
        return NETTRACE_TYPE_SAME;
    struct kept_type *kept = arena_array(&t->arena, 1, sizeof *kept);
    uint8_t *bytes = arena_array(&t->arena, payload.size, 1);
    grow(t, type.id);
    t->by_id[type.id] = NULL;
    if (!kept || !bytes)
        return NETTRACE_TYPE_REFUSED;
    memcpy(bytes, payload.data, payload.size);
    kept->payload = span_of(bytes, payload.size);
    read_type(kept->payload, &kept->type);
    t->by_id[type.id] = &kept->type;
    *out = &kept->type;
    return NETTRACE_TYPE_NEW;
}
