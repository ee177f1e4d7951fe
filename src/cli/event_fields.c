#include "cli/event_fields.h"

#include <math.h>
#include <string.h>

#include "clr/event_path.h"

enum { ITEMS_SHOWN = 3 };

void event_bytes_hex(struct span bytes, struct buffer *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        buffer_u8(out, (uint8_t)digits[bytes.data[i] >> 4]);
        buffer_u8(out, (uint8_t)digits[bytes.data[i] & 0xf]);
    }
}

/* ---- JSON ---- */

struct json_fields {
    struct json_writer *j;
    struct buffer *scratch;
    unsigned arrays; /* bit by depth: whether an array is open there, whose items have no names */
    unsigned depth;
};

void event_value_json(struct json_writer *j, const struct event_value *v, struct buffer *scratch)
{
    buffer_clear(scratch);
    if (v->names && event_enum_append(scratch, v->names, v->u)) {
        json_span(j, buffer_span(scratch));
        return;
    }
    switch (v->kind) {
    case EVENT_VALUE_BOOL:
        json_bool(j, v->u != 0);
        return;
    case EVENT_VALUE_INT:
        json_i64(j, v->i);
        return;
    case EVENT_VALUE_UINT:
        json_u64(j, v->u);
        return;
    case EVENT_VALUE_POINTER:
        json_hex(j, v->u);
        return;
    case EVENT_VALUE_FLOAT:
        if (!isfinite(v->f)) { /* JSON has no such numbers; they are known all the same */
            event_value_append(scratch, v);
            break;
        }
        if (v->size == 4)
            json_float(j, (float)v->f);
        else
            json_double(j, v->f);
        return;
    case EVENT_VALUE_BYTES:
        event_bytes_hex(v->bytes, scratch);
        break;
    case EVENT_VALUE_TEXT16:
    case EVENT_VALUE_TEXT8:
        event_value_append_whole(scratch, v);
        break;
    default:
        event_value_append(scratch, v);
        break;
    }
    json_span(j, buffer_span(scratch));
}

static void json_name(struct json_fields *f, const char *name)
{
    if (!(f->arrays >> f->depth & 1))
        json_key(f->j, name);
}

static void json_value(void *user, const char *name, const struct event_value *v)
{
    struct json_fields *f = user;
    json_name(f, name);
    event_value_json(f->j, v, f->scratch);
}

static void json_begin(void *user, const char *name, bool array)
{
    struct json_fields *f = user;
    json_name(f, name);
    f->depth++;
    f->arrays = (f->arrays & ~(1u << f->depth)) | (unsigned)array << f->depth;
    if (array)
        json_begin_array(f->j);
    else
        json_begin_object(f->j);
}

static void json_end(void *user, bool array)
{
    struct json_fields *f = user;
    f->depth--;
    if (array)
        json_end_array(f->j);
    else
        json_end_object(f->j);
}

bool event_fields_json(struct json_writer *j, const struct event_schema *s, struct span payload,
                       struct buffer *scratch)
{
    _Static_assert(EVENT_FIELD_DEPTH_MAX < 31, "a bit for each depth");
    struct json_fields fields = { .j = j, .scratch = scratch };
    const struct event_visitor visitor = { &fields, json_value, json_begin, json_end };
    json_key(j, "fields");
    json_begin_object(j);
    bool whole = event_schema_visit(s, payload, &visitor);
    json_end_object(j);
    return whole;
}

/* ---- text ---- */

struct text_fields {
    struct buffer *out;
    unsigned depth, arrays;                    /* as of JSON */
    uint32_t items[EVENT_FIELD_DEPTH_MAX + 2]; /* told at each depth */
    unsigned hidden;  /* the depth at which an array's further items are left out; 0: none is */
    const char *only; /* the one field that is told, without its name; NULL: all */
    bool passed_over; /* this field is not that one */
};

/* False: this is one item too many. */
static bool text_name(struct text_fields *f, const char *name)
{
    if (f->only && f->depth == 0) {
        f->passed_over = f->items[0] || strcmp(name, f->only) != 0;
        f->items[0] += !f->passed_over; /* of two fields with one name the first */
        return !f->passed_over;
    }
    if (f->passed_over)
        return false;
    uint32_t items = f->items[f->depth]++;
    bool item = f->arrays >> f->depth & 1;
    if (f->hidden)
        return false;
    if (items)
        buffer_u8(f->out, ' ');
    if (item && items == ITEMS_SHOWN) {
        buffer_string(f->out, "...");
        f->hidden = f->depth;
    }
    if (f->hidden)
        return false;
    if (!item)
        buffer_format(f->out, "%s=", name);
    return true;
}

static void text_value(void *user, const char *name, const struct event_value *v)
{
    struct text_fields *f = user;
    if (text_name(f, name))
        event_value_append(f->out, v);
}

static void text_begin(void *user, const char *name, bool array)
{
    struct text_fields *f = user;
    if (text_name(f, name))
        buffer_u8(f->out, array ? '[' : '{');
    f->depth++;
    f->items[f->depth] = 0;
    f->arrays = (f->arrays & ~(1u << f->depth)) | (unsigned)array << f->depth;
}

static void text_end(void *user, bool array)
{
    struct text_fields *f = user;
    if (f->hidden == f->depth)
        f->hidden = 0;
    f->depth--;
    if (!f->hidden && !f->passed_over)
        buffer_u8(f->out, array ? ']' : '}');
}

void event_fields_text(const struct event_schema *s, struct span payload, struct buffer *out)
{
    struct text_fields fields = { .out = out };
    const struct event_visitor visitor = { &fields, text_value, text_begin, text_end };
    if (!event_schema_visit(s, payload, &visitor))
        buffer_string(out, " [cut]");
}

void event_field_text(const struct event_schema *s, struct span payload, const char *name, struct buffer *out)
{
    struct text_fields fields = { .out = out, .only = name };
    const struct event_visitor visitor = { &fields, text_value, text_begin, text_end };
    struct event_value inside;
    if (event_schema_field(s, name) >= 0)
        event_schema_visit(s, payload, &visitor);
    else if (event_path_read(s, payload, name, &inside))
        event_value_append(out, &inside);
}
