#include "read/nettrace_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"
#include "base/utf16.h"

/* Of nettrace 6. */
enum {
    OPTION_OPCODE = 1,
    OPTION_KEYWORDS = 3,
    OPTION_TEMPLATE,
    OPTION_DESCRIPTION,
    OPTION_KEY_VALUE,
    OPTION_GUID,
    OPTION_LEVEL,
    OPTION_VERSION
};

enum { TYPE_OBJECT = 1, NESTING_MAX = 32, TAG_OPCODE = 1, TAG_PARAMS = 2 };

struct kept_type {
    struct nettrace_type type;
    struct span payload; /* what it was read from */
};

static void grow(struct nettrace_types *t, uint32_t id)
{
    if (id < t->count)
        return;
    size_t count = t->count ? t->count : NETTRACE_SHORT_IDS;
    while (count <= id)
        count *= 2;
    t->by_id = mem_resize(t->by_id, count, sizeof *t->by_id);
    while (t->count < count)
        t->by_id[t->count++] = &t->none;
}

void nettrace_types_init(struct nettrace_types *t)
{
    *t = (struct nettrace_types){ 0 };
    arena_init(&t->arena, NETTRACE_METADATA_BYTES_MAX);
    grow(t, NETTRACE_SHORT_IDS - 1);
}

void nettrace_types_done(struct nettrace_types *t)
{
    arena_done(&t->arena);
    free(t->by_id);
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

void nettrace_types_clear(struct nettrace_types *t)
{
    for (size_t id = 0; id < t->count; id++)
        t->by_id[id] = &t->none;
}

/* A copy in the arena, or an empty span when there is no room: *ok says so. */
static struct span keep_bytes(struct nettrace_types *t, struct span bytes, bool *ok)
{
    uint8_t *copy = arena_array(&t->arena, bytes.size, 1);
    if (!copy) {
        *ok = false;
        return (struct span){ 0 };
    }
    if (bytes.size)
        memcpy(copy, bytes.data, bytes.size);
    return span_of(copy, bytes.size);
}

/* Makes room for a type that was read from `raw`, with a copy of that. */
static enum nettrace_type_change keep_type(struct nettrace_types *t, const struct nettrace_type *type,
                                           struct span raw, struct kept_type **out)
{
    if (type->id == 0)
        return NETTRACE_TYPE_BAD;
    if (type->id >= NETTRACE_METADATA_MAX)
        return NETTRACE_TYPE_REFUSED;
    struct nettrace_type *old = nettrace_types_find(t, type->id);
    if (old && span_equals(((struct kept_type *)old)->payload, raw))
        return NETTRACE_TYPE_SAME;
    bool ok = true;
    struct kept_type *kept = arena_array(&t->arena, 1, sizeof *kept);
    struct span copy = keep_bytes(t, raw, &ok);
    grow(t, type->id);
    t->by_id[type->id] = &t->none;
    if (!kept || !ok)
        return NETTRACE_TYPE_REFUSED;
    kept->payload = copy;
    *out = kept;
    return NETTRACE_TYPE_NEW;
}

enum nettrace_type_change nettrace_types_define(struct nettrace_types *t, struct span payload,
                                                struct nettrace_type **out)
{
    struct nettrace_type type;
    struct kept_type *kept;
    if (!read_type(payload, &type))
        return NETTRACE_TYPE_BAD;
    enum nettrace_type_change change = keep_type(t, &type, payload, &kept);
    if (change != NETTRACE_TYPE_NEW)
        return change;
    read_type(kept->payload, &kept->type);
    t->by_id[type.id] = &kept->type;
    *out = &kept->type;
    return NETTRACE_TYPE_NEW;
}

/* Nettrace 6. */

static struct span read_text(struct cursor *c)
{
    return cursor_bytes(c, cursor_varuint32(c));
}

static void read_options(struct cursor c, struct nettrace_type *out)
{
    while (cursor_left(&c) > 0) {
        switch (cursor_u8(&c)) {
        case OPTION_OPCODE:
            out->opcode = cursor_u8(&c);
            break;
        case OPTION_KEYWORDS:
            out->keywords = cursor_u64le(&c);
            break;
        case OPTION_KEY_VALUE:
            read_text(&c);
            read_text(&c);
            break;
        case OPTION_TEMPLATE:
        case OPTION_DESCRIPTION:
            read_text(&c);
            break;
        case OPTION_GUID:
            cursor_skip(&c, 16);
            break;
        case OPTION_LEVEL:
            out->level = cursor_u8(&c);
            break;
        case OPTION_VERSION:
            out->version = cursor_u8(&c);
            break;
        default: /* a later version's, of unknown size */
            return;
        }
    }
}

/* Provider and name are as in the row: UTF-8. */
static bool read_type_v6(struct span row, struct nettrace_type *out)
{
    struct cursor c = cursor_over(row);
    struct nettrace_type type = { .is_v6 = true, .id = cursor_varuint32(&c) };
    type.provider = read_text(&c);
    type.event_id = cursor_varuint32(&c);
    type.name = read_text(&c);
    size_t fields_off = c.pos;
    uint16_t count = cursor_u16le(&c);
    for (unsigned i = 0; i < count && cursor_ok(&c); i++)
        cursor_skip(&c, cursor_u16le(&c));
    if (!cursor_ok(&c))
        return false;
    type.fields = span_part(row, fields_off, c.pos - fields_off);
    if (cursor_left(&c) > 0)
        read_options(cursor_over(cursor_bytes(&c, cursor_u16le(&c))), &type);
    *out = type;
    return cursor_ok(&c);
}

/* UTF-8 as the UTF-16 that earlier versions have, in the arena. */
static struct span keep_utf16(struct nettrace_types *t, struct span text, bool *ok)
{
    struct buffer terminated, units;
    buffer_init(&terminated, NETTRACE_BLOCK_MAX);
    buffer_init(&units, 2 * (size_t)NETTRACE_BLOCK_MAX);
    buffer_append(&terminated, text.data, text.size);
    buffer_u8(&terminated, 0);
    utf16_append(&units, (const char *)terminated.data);
    struct span kept = keep_bytes(t, buffer_span(&units), ok);
    buffer_done(&terminated);
    buffer_done(&units);
    return kept;
}

enum nettrace_type_change nettrace_types_define_v6(struct nettrace_types *t, struct span row,
                                                   struct nettrace_type **out)
{
    struct nettrace_type type;
    struct kept_type *kept;
    bool ok = true;
    if (!read_type_v6(row, &type))
        return NETTRACE_TYPE_BAD;
    enum nettrace_type_change change = keep_type(t, &type, row, &kept);
    if (change != NETTRACE_TYPE_NEW)
        return change;
    read_type_v6(kept->payload, &kept->type);
    kept->type.provider = keep_utf16(t, kept->type.provider, &ok);
    kept->type.name = keep_utf16(t, kept->type.name, &ok);
    if (!ok)
        return NETTRACE_TYPE_REFUSED;
    t->by_id[type.id] = &kept->type;
    *out = &kept->type;
    return NETTRACE_TYPE_NEW;
}
