#include "clr/event_description.h"

#include <string.h>

#include "base/utf16.h"
#include "read/universal_events.h"

enum { NAME_BYTES_MAX = 1024, OBJECT_FIELDS_MAX = 1024 };

/* Type codes of the format. */
enum {
    TYPE_OBJECT = 1,
    TYPE_BOOL32 = 3,
    TYPE_CHAR,
    TYPE_I8,
    TYPE_U8,
    TYPE_I16,
    TYPE_U16,
    TYPE_I32,
    TYPE_U32,
    TYPE_I64,
    TYPE_U64,
    TYPE_F32,
    TYPE_F64,
    TYPE_DECIMAL,
    TYPE_TIME,
    TYPE_GUID,
    TYPE_TEXT16,
    TYPE_ARRAY,
    TYPE_VARINT,
    TYPE_VARUINT,
    TYPE_FIXED_ARRAY,
    TYPE_UTF8_UNIT,
    TYPE_FROM_END,
    TYPE_FROM_START,
    TYPE_BOOL8,
};

/* A decimal is a double: EventSource has no other way to write one (seen on 8 to 10). */
static const struct {
    uint8_t type, size;
} simple[] = {
    [TYPE_BOOL32] = { FIELD_BOOL, 4 },    [TYPE_CHAR] = { FIELD_CHAR, 2 },
    [TYPE_I8] = { FIELD_INT, 1 },         [TYPE_U8] = { FIELD_UINT, 1 },
    [TYPE_I16] = { FIELD_INT, 2 },        [TYPE_U16] = { FIELD_UINT, 2 },
    [TYPE_I32] = { FIELD_INT, 4 },        [TYPE_U32] = { FIELD_UINT, 4 },
    [TYPE_I64] = { FIELD_INT, 8 },        [TYPE_U64] = { FIELD_UINT, 8 },
    [TYPE_F32] = { FIELD_FLOAT, 4 },      [TYPE_F64] = { FIELD_FLOAT, 8 },
    [TYPE_DECIMAL] = { FIELD_FLOAT, 8 },  [TYPE_TIME] = { FIELD_TIME, 8 },
    [TYPE_GUID] = { FIELD_GUID, 16 },     [TYPE_TEXT16] = { FIELD_TEXT16, 0 },
    [TYPE_VARINT] = { FIELD_VARINT, 0 },  [TYPE_VARUINT] = { FIELD_VARUINT, 0 },
    [TYPE_UTF8_UNIT] = { FIELD_CHAR, 1 }, [TYPE_BOOL8] = { FIELD_BOOL, 1 },
};

enum dialect { DIALECT_V1, DIALECT_V2, DIALECT_V6 };

struct description {
    struct cursor c;
    struct event_fields *out;
    enum dialect dialect;
    bool units_are_text; /* what is called one character is a text behind its length */
    unsigned depth;
};

static const char *keep_name16(struct description *d, struct span name)
{
    struct buffer text;
    buffer_init(&text, NAME_BYTES_MAX);
    utf16_append_utf8(&text, name);
    const char *kept = arena_string(&d->out->names, buffer_span(&text));
    buffer_done(&text);
    return kept ? kept : "";
}

static const char *read_name(struct description *d)
{
    if (d->dialect != DIALECT_V6)
        return keep_name16(d, utf16_zstring(&d->c));
    struct span name = cursor_bytes(&d->c, cursor_varuint32(&d->c));
    const char *kept = arena_string(&d->out->names, name);
    return kept ? kept : "";
}

static bool read_object(struct description *d, struct event_field *out);
static bool read_type(struct description *d, struct event_field *out);

/* What an array holds, as a row of its own. */
static bool read_item(struct description *d, struct event_field *out)
{
    struct event_field item = { .name = "", .offset = -1 };
    if (!read_type(d, &item))
        return false;
    out->first = event_fields_add(d->out, 1);
    if (out->first == UINT32_MAX)
        return false;
    d->out->rows[out->first] = item;
    return true;
}

static bool read_array(struct description *d, uint32_t code, struct event_field *out)
{
    out->type = code == TYPE_FROM_END || code == TYPE_FROM_START ? FIELD_PART : FIELD_ARRAY;
    out->from_end = code == TYPE_FROM_END;
    out->counted = code == TYPE_FIXED_ARRAY ? COUNT_FIXED : COUNT_PREFIX;
    if (!read_item(d, out))
        return false;
    if (code == TYPE_FIXED_ARRAY)
        out->count = cursor_u16le(&d->c);
    return cursor_ok(&d->c);
}

static bool read_type_of(struct description *d, struct event_field *out)
{
    bool v6 = d->dialect == DIALECT_V6;
    uint32_t code = v6 ? cursor_u8(&d->c) : cursor_u32le(&d->c);
    if (!cursor_ok(&d->c))
        return false;
    if (code == TYPE_OBJECT)
        return read_object(d, out);
    if ((code == TYPE_ARRAY && d->dialect != DIALECT_V1) ||
        (v6 && (code == TYPE_FIXED_ARRAY || code == TYPE_FROM_END || code == TYPE_FROM_START)))
        return read_array(d, code, out);
    uint32_t last = v6 ? TYPE_BOOL8 : TYPE_TEXT16;
    if (code > last || simple[code].type == FIELD_NONE)
        return false;
    bool is_text = d->units_are_text && code == TYPE_UTF8_UNIT;
    out->type = is_text ? FIELD_COUNTED_TEXT8 : simple[code].type;
    out->size = is_text ? 0 : simple[code].size;
    return true;
}

static bool read_type(struct description *d, struct event_field *out)
{
    if (d->depth == EVENT_FIELD_DEPTH_MAX)
        return false;
    d->depth++;
    bool ok = read_type_of(d, out);
    d->depth--;
    return ok;
}

/* Version 1 has the type before the name, the later ones have it behind, and say how long it all is. */
static bool read_field(struct description *d, struct event_field *out)
{
    *out = (struct event_field){ .name = "", .offset = -1 };
    if (d->dialect == DIALECT_V1) {
        bool ok = read_type(d, out);
        out->name = ok ? read_name(d) : "";
        return ok && cursor_ok(&d->c);
    }
    size_t from = d->c.pos;
    uint64_t size = d->dialect == DIALECT_V2 ? cursor_u32le(&d->c) : cursor_u16le(&d->c);
    size_t end = d->dialect == DIALECT_V2 ? from : d->c.pos;
    if (!cursor_ok(&d->c) || size > d->c.bytes.size - end)
        return false;
    end += (size_t)size;
    out->name = read_name(d);
    if (!read_type(d, out) || d->c.pos > end)
        return false;
    cursor_seek(&d->c, end);
    return cursor_ok(&d->c);
}

/* A list of fields. What comes behind one that makes no sense cannot be found in a payload either. */
static bool read_fields(struct description *d, uint32_t *out_first, uint32_t *out_count)
{
    uint32_t count = d->dialect == DIALECT_V6 ? cursor_u16le(&d->c) : cursor_u32le(&d->c);
    struct buffer read;
    buffer_init(&read, OBJECT_FIELDS_MAX * sizeof(struct event_field));
    bool ok = cursor_ok(&d->c);
    uint32_t known = 0;
    for (; ok && known < count; known++) {
        struct event_field field;
        ok = read_field(d, &field);
        if (ok)
            buffer_append(&read, &field, sizeof field);
        ok = ok && !read.failed;
        if (!ok)
            break;
    }
    *out_first = event_fields_add(d->out, known);
    *out_count = *out_first == UINT32_MAX ? 0 : known;
    if (*out_count)
        memcpy(d->out->rows + *out_first, read.data, known * sizeof(struct event_field));
    buffer_done(&read);
    return ok && *out_count == count;
}

static bool read_object(struct description *d, struct event_field *out)
{
    out->type = FIELD_OBJECT;
    return read_fields(d, &out->first, &out->members);
}

/*
 * Only event sources that describe themselves send objects and arrays. In their events a Boolean takes one
 * byte, while it takes four in all others, under the same code.
 */
static void narrow_bools(struct event_fields *f)
{
    bool describes_itself = false;
    for (size_t i = 0; i < f->count; i++)
        describes_itself |= f->rows[i].type == FIELD_OBJECT || f->rows[i].type == FIELD_ARRAY;
    for (size_t i = 0; describes_itself && i < f->count; i++)
        if (f->rows[i].type == FIELD_BOOL)
            f->rows[i].size = 1;
}

/* Events that EventSource.Write() sends have their fields in one object without a name. */
static void flatten(struct event_fields *f)
{
    const struct event_field *root = &f->rows[f->root];
    if (f->root_count != 1 || root->type != FIELD_OBJECT || root->name[0])
        return;
    f->root_count = root->members;
    f->root = root->first;
}

void event_description_read(const struct event_description *d, struct event_fields *out)
{
    struct description r = { .c = cursor_over(d->fields), .out = out };
    r.dialect = d->v6 ? DIALECT_V6 : DIALECT_V1;
    r.units_are_text = strcmp(d->provider, UNIVERSAL_SYSTEM_PROVIDER) == 0;
    if (d->fields.size)
        read_fields(&r, &out->root, &out->root_count);
    if (!d->v6 && out->root_count == 0 && d->params.size) {
        r.c = cursor_over(d->params);
        r.dialect = DIALECT_V2;
        read_fields(&r, &out->root, &out->root_count);
    }
    if (!d->v6) /* version 6 has a code for each */
        narrow_bools(out);
    if (out->root_count)
        flatten(out);
}
