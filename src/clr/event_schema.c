#include "clr/event_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf16.h"
#include "clr/event_catalogue.h"
#include "clr/event_layout.h"
#include "clr/event_widths.h"

enum { METHOD_JITTED = 0x8, METHOD_HELPER = 0x10, TIER_READY_TO_RUN = 8 };

struct event_schema {
    char *name;
    struct event_fields fields;
    bool widens;       /* values can have other widths than described */
    bool counts;       /* some length depends on a field before it */
    uint32_t variable; /* the first top-level field without a fixed offset, or how many there are */
};

/* One way through a payload. */
struct walk {
    struct cursor c;
    const struct event_schema *schema;
    const struct event_visitor *visitor; /* or NULL: only the way counts */
    struct span text;                    /* the last UTF-16 that was passed */
    uint64_t parts_left;                 /* bytes that PARTs may still lead to: they can overlap */
};

/* Values of fields that later ones are counted by; of one object. */
struct slots {
    uint64_t values[EVENT_FIELD_SLOTS];
};

static int64_t sign_extended(uint64_t value, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(value << shift) >> shift;
}

static uint64_t load_number(const uint8_t *at, unsigned size)
{
    switch (size) {
    case 1:
        return *at;
    case 2:
        return load_u16le(at);
    case 4:
        return load_u32le(at);
    default:
        return load_u64le(at);
    }
}

static void value_of_integer(struct event_value *v, uint64_t value, bool is_signed, unsigned size)
{
    v->kind = is_signed ? EVENT_VALUE_INT : EVENT_VALUE_UINT;
    v->size = (uint8_t)size;
    v->i = is_signed ? sign_extended(value, size) : (int64_t)value;
    v->u = (uint64_t)v->i;
    v->f = is_signed ? (double)v->i : (double)value;
}

static double load_float(const uint8_t *at, unsigned size)
{
    if (size == 4) {
        float single;
        uint32_t bits = load_u32le(at);
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    }
    double value;
    uint64_t bits = load_u64le(at);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Of a field with a size of its own, whose bytes are there. */
static void value_of_fixed(const struct event_field *f, const uint8_t *at, struct event_value *v)
{
    switch ((enum event_field_type)f->type) {
    case FIELD_INT:
    case FIELD_UINT:
        value_of_integer(v, load_number(at, f->size), f->type == FIELD_INT, f->size);
        break;
    case FIELD_BOOL:
        value_of_integer(v, load_number(at, f->size) != 0, false, f->size);
        v->kind = EVENT_VALUE_BOOL;
        break;
    case FIELD_POINTER:
        value_of_integer(v, load_number(at, f->size), false, f->size);
        v->kind = EVENT_VALUE_POINTER;
        break;
    case FIELD_TIME:
        v->kind = EVENT_VALUE_TIME;
        v->u = load_u64le(at);
        break;
    case FIELD_FLOAT:
        v->kind = EVENT_VALUE_FLOAT;
        v->size = f->size;
        v->f = load_float(at, f->size);
        break;
    case FIELD_CHAR:
        v->kind = f->size == 2 ? EVENT_VALUE_TEXT16 : EVENT_VALUE_TEXT8;
        v->bytes = span_of(at, f->size);
        break;
    default:
        v->kind = f->type == FIELD_GUID ? EVENT_VALUE_GUID : EVENT_VALUE_BYTES;
        v->bytes = span_of(at, f->size);
        break;
    }
    v->names = f->names;
}

static bool walk_field(struct walk *w, const struct event_field *f, const char *name, struct slots *slots,
                       struct event_value *out);

static bool walk_members(struct walk *w, const struct event_field *rows, uint32_t count)
{
    struct slots slots = { { 0 } };
    for (uint32_t i = 0; i < count; i++)
        if (!walk_field(w, &rows[i], rows[i].name, &slots, NULL))
            return false;
    return true;
}

static bool walk_items(struct walk *w, const struct event_field *item, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        size_t before = w->c.pos;
        struct slots none = { { 0 } };
        if (!walk_field(w, item, "", &none, NULL))
            return false;
        if (w->c.pos == before)
            return true; /* items of no bytes: any number of them says nothing */
    }
    return true;
}

static void walk_begin(const struct walk *w, const char *name, bool array)
{
    if (w->visitor && w->visitor->begin)
        w->visitor->begin(w->visitor->user, name, array);
}

static void walk_end(const struct walk *w, bool array)
{
    if (w->visitor && w->visitor->end)
        w->visitor->end(w->visitor->user, array);
}

static bool walk_array(struct walk *w, const struct event_field *f, const char *name,
                       const struct slots *slots, struct event_value *out)
{
    uint64_t count = f->counted == COUNT_FIXED    ? f->count
                     : f->counted == COUNT_PREFIX ? cursor_u16le(&w->c)
                                                  : slots->values[f->slot];
    size_t from = w->c.pos;
    if (!cursor_ok(&w->c))
        return false;
    walk_begin(w, name, true);
    bool ok = walk_items(w, &w->schema->fields.rows[f->first], count);
    walk_end(w, true);
    if (out)
        *out = (struct event_value){ .kind = EVENT_VALUE_ARRAY,
                                     .u = count,
                                     .bytes = span_part(w->c.bytes, from, w->c.pos - from) };
    return ok;
}

static bool walk_object(struct walk *w, const struct event_field *f, const char *name,
                        struct event_value *out)
{
    size_t from = w->c.pos;
    walk_begin(w, name, false);
    bool ok = walk_members(w, &w->schema->fields.rows[f->first], f->members);
    walk_end(w, false);
    if (out)
        *out = (struct event_value){ .kind = EVENT_VALUE_OBJECT,
                                     .bytes = span_part(w->c.bytes, from, w->c.pos - from) };
    return ok;
}

/* Whether these bytes are the object that they are in some events: what it is called is the text before. */
static bool is_alternative(const struct walk *w, const struct event_field *f, const struct slots *slots)
{
    uint64_t size = 0;
    if (f->type != FIELD_BYTES || !f->when || !utf16_equals_ascii(w->text, f->when))
        return false;
    for (uint32_t i = 0; i < f->members; i++)
        size += w->schema->fields.rows[f->first + i].size;
    return slots->values[f->slot] == size;
}

/* Texts say what they are; of anything else the bytes are what is shown. */
static bool value_of_part(struct walk *w, const struct event_field *f, struct event_value *v)
{
    uint32_t place = cursor_u32le(&w->c);
    uint64_t from = (place & 0xffff) + (f->from_end ? w->c.pos : 0), size = place >> 16;
    if (!cursor_ok(&w->c) || from > w->c.bytes.size || size > w->c.bytes.size - from || size > w->parts_left)
        return false;
    w->parts_left -= size;
    const struct event_field *item = &w->schema->fields.rows[f->first];
    v->kind = item->type != FIELD_CHAR ? EVENT_VALUE_BYTES
              : item->size == 2        ? EVENT_VALUE_TEXT16
                                       : EVENT_VALUE_TEXT8;
    v->bytes = span_part(w->c.bytes, from, size);
    return true;
}

/* The tier is three bits of the flags of jitted methods. Helpers are of the runtime's own making. */
static void value_of_tier(const struct event_field *f, uint64_t flags, struct event_value *v)
{
    uint64_t other = flags & METHOD_HELPER ? 0 : TIER_READY_TO_RUN;
    value_of_integer(v, flags & METHOD_JITTED ? flags >> 7 & 7 : other, false, 1);
    v->names = f->names;
}

static bool value_of_variable(struct walk *w, const struct event_field *f, const struct slots *slots,
                              struct event_value *v)
{
    switch ((enum event_field_type)f->type) {
    case FIELD_TEXT16:
        v->kind = EVENT_VALUE_TEXT16;
        v->bytes = utf16_zstring(&w->c);
        w->text = v->bytes;
        return cursor_ok(&w->c);
    case FIELD_TEXT8:
        v->kind = EVENT_VALUE_TEXT8;
        v->bytes = cursor_zstring(&w->c);
        return cursor_ok(&w->c);
    case FIELD_COUNTED_TEXT8:
        v->kind = EVENT_VALUE_TEXT8;
        v->bytes = cursor_bytes(&w->c, cursor_u16le(&w->c));
        return cursor_ok(&w->c);
    case FIELD_VARINT:
        value_of_integer(v, (uint64_t)cursor_zigzag64(&w->c), true, 8);
        return cursor_ok(&w->c);
    case FIELD_VARUINT:
        value_of_integer(v, cursor_varuint64(&w->c), false, 8);
        return cursor_ok(&w->c);
    case FIELD_BYTES:
        v->kind = EVENT_VALUE_BYTES;
        v->bytes = cursor_bytes(&w->c, slots->values[f->slot]);
        return cursor_ok(&w->c);
    case FIELD_TIER:
        value_of_tier(f, slots->values[f->slot], v);
        return true;
    default:
        return value_of_part(w, f, v);
    }
}

/* Passes one field, tells the visitor, and fills `out` unless it is NULL. */
static bool walk_field(struct walk *w, const struct event_field *f, const char *name, struct slots *slots,
                       struct event_value *out)
{
    if (f->type == FIELD_ARRAY)
        return walk_array(w, f, name, slots, out);
    if (f->type == FIELD_OBJECT || is_alternative(w, f, slots))
        return walk_object(w, f, name, out);
    struct event_value v = { 0 };
    if (f->type >= FIELD_TIER) {
        if (!value_of_variable(w, f, slots, &v))
            return false;
    } else {
        struct span bytes = cursor_bytes(&w->c, f->size);
        if (!bytes.data) /* the payload ended: all of these have a size */
            return false;
        if (!w->visitor && !out && !f->keeps)
            return true;
        value_of_fixed(f, bytes.data, &v);
    }
    if (f->keeps)
        slots->values[f->keeps - 1] = v.u;
    if (out)
        *out = v;
    if (w->visitor && w->visitor->value && f->type != FIELD_PAD)
        w->visitor->value(w->visitor->user, name, &v);
    return true;
}

static struct walk walk_over(const struct event_schema *s, struct span payload,
                             const struct event_visitor *visitor)
{
    return (struct walk){
        .c = cursor_over(payload), .schema = s, .visitor = visitor, .parts_left = payload.size
    };
}

/* Passes the fields before `index`, of which those with a fixed offset need not be looked at. */
static bool walk_to(struct walk *w, uint32_t index, struct slots *slots)
{
    const struct event_schema *s = w->schema;
    const struct event_field *rows = &s->fields.rows[s->fields.root];
    uint32_t at = 0;
    bool counted = rows[index].type == FIELD_TIER || rows[index].type == FIELD_BYTES ||
                   (rows[index].type == FIELD_ARRAY && rows[index].counted == COUNT_SLOT);
    if (s->variable > 0 && (!s->counts || (index < s->variable && !counted))) {
        at = (index < s->variable ? index + 1 : s->variable) - 1;
        cursor_seek(&w->c, (uint64_t)rows[at].offset);
    }
    for (; at < index; at++)
        if (!walk_field(w, &rows[at], "", slots, NULL))
            return false;
    return cursor_ok(&w->c);
}

/* The same where `rows` are not where the schema says. */
static bool walk_past(struct walk *w, const struct event_field *rows, uint32_t index, struct slots *slots)
{
    for (uint32_t at = 0; at < index; at++)
        if (!walk_field(w, &rows[at], "", slots, NULL))
            return false;
    return true;
}

bool event_schema_read(const struct event_schema *s, struct span payload, int index, struct event_value *out)
{
    struct walk w = walk_over(s, payload, NULL);
    struct slots slots = { { 0 } };
    struct event_value v;
    if (index < 0 || (uint32_t)index >= s->fields.root_count)
        return false;
    struct event_field wider[EVENT_WIDTHS_FIELDS_MAX];
    bool is_wider = s->widens && event_widths_find(&s->fields, payload, wider);
    const struct event_field *f =
        is_wider ? &wider[index] : &s->fields.rows[s->fields.root + (uint32_t)index];
    if (!(is_wider ? walk_past(&w, wider, (uint32_t)index, &slots) : walk_to(&w, (uint32_t)index, &slots)) ||
        !walk_field(&w, f, f->name, &slots, &v))
        return false;
    *out = v;
    return true;
}

uint64_t event_schema_u64(const struct event_schema *s, struct span payload, int index, uint64_t fallback)
{
    struct event_value v;
    bool ok = event_schema_read(s, payload, index, &v) && v.kind >= EVENT_VALUE_BOOL &&
              v.kind <= EVENT_VALUE_POINTER;
    return ok ? v.u : fallback;
}

bool event_schema_visit(const struct event_schema *s, struct span payload,
                        const struct event_visitor *visitor)
{
    struct walk w = walk_over(s, payload, visitor);
    struct event_field wider[EVENT_WIDTHS_FIELDS_MAX];
    if (s->widens && event_widths_find(&s->fields, payload, wider))
        return walk_members(&w, wider, s->fields.root_count);
    return walk_members(&w, &s->fields.rows[s->fields.root], s->fields.root_count);
}

const char *event_schema_name(const struct event_schema *s)
{
    return s->name;
}

uint32_t event_schema_fields(const struct event_schema *s)
{
    return s->fields.root_count;
}

int event_schema_field(const struct event_schema *s, const char *name)
{
    for (uint32_t i = 0; i < s->fields.root_count; i++) {
        const struct event_field *f = &s->fields.rows[s->fields.root + i];
        if (f->type != FIELD_PAD && strcmp(f->name, name) == 0)
            return (int)i;
    }
    return -1;
}

static bool has_path(const struct event_fields *fields, uint32_t first, uint32_t count, const char *path)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct event_field *f = &fields->rows[first + i];
        size_t size = f->type == FIELD_PAD ? 0 : strlen(f->name);
        if (size == 0 || strncmp(f->name, path, size) != 0)
            continue;
        bool inside = path[size] == '.' &&
                      ((f->type == FIELD_ARRAY && fields->rows[f->first].type == FIELD_OBJECT) ||
                       (f->type == FIELD_OBJECT && has_path(fields, f->first, f->members, path + size + 1)));
        if (!path[size] || inside)
            return true;
    }
    return false;
}

bool event_schema_has_path(const struct event_schema *s, const char *path)
{
    return has_path(&s->fields, s->fields.root, s->fields.root_count, path);
}

const char *event_schema_field_name(const struct event_schema *s, uint32_t index)
{
    const struct event_field *f = &s->fields.rows[s->fields.root + index];
    return index < s->fields.root_count && f->type != FIELD_PAD ? f->name : NULL;
}

void event_schema_free(struct event_schema *s)
{
    if (!s)
        return;
    event_fields_done(&s->fields);
    free(s->name);
    free(s);
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t size = strlen(text), end = strlen(suffix);
    return size > end && strcmp(text + size - end, suffix) == 0;
}

unsigned event_opcode_of(const char *name, unsigned opcode)
{
    if (opcode != EVENT_OPCODE_INFO)
        return opcode;
    return has_suffix(name, "Start")  ? EVENT_OPCODE_START
           : has_suffix(name, "Stop") ? EVENT_OPCODE_STOP
                                      : EVENT_OPCODE_INFO;
}

/* "RequestStart" is the start of "Request". */
static char *name_from_itself(const struct event_description *d)
{
    static const char *const opcodes[] = {
        "Info",   "Start",   "Stop",    "DataCollectionStart", "DataCollectionStop", "Extension", "Reply",
        "Resume", "Suspend", "Transfer"
    };
    unsigned opcode = event_opcode_of(d->name, d->opcode);
    if (!d->name[0])
        return mem_format("EventID(%u)", d->event_id);
    if (opcode == EVENT_OPCODE_INFO)
        return mem_copy_string(d->name);
    if (opcode >= sizeof opcodes / sizeof *opcodes)
        return mem_format("%s/%u", d->name, opcode);
    size_t named = has_suffix(d->name, opcodes[opcode]) ? strlen(opcodes[opcode]) : 0;
    return mem_format("%.*s/%s", (int)(strlen(d->name) - named), d->name, opcodes[opcode]);
}

/* Fields of the event itself whose place does not depend on the payload. */
static void place_fields(struct event_schema *s)
{
    struct event_field *rows = &s->fields.rows[s->fields.root];
    int32_t offset = 0;
    for (s->variable = 0; s->variable < s->fields.root_count; s->variable++) {
        struct event_field *f = &rows[s->variable];
        f->offset = offset;
        if (f->type >= FIELD_TEXT16) {
            s->variable++;
            break;
        }
        offset += f->size;
    }
    for (uint32_t i = 0; i < s->fields.root_count; i++)
        s->counts |= rows[i].keeps != 0;
}

struct event_schema *event_schema_new(const struct event_description *d)
{
    struct event_schema *s = mem_alloc(1, sizeof *s);
    event_fields_init(&s->fields);
    bool itself = d->fields.size > 4 || d->params.size > 4; /* more than a count of none */
    const struct catalogue_event *known = event_catalogue_find(d->provider, d->event_id, itself);
    if (known) {
        event_layout_read(known->layout, d->version, d->pointer_size == 4 ? 4 : 8, &s->fields);
        s->name = mem_copy_string(known->name);
    } else {
        event_description_read(d, &s->fields);
        s->widens = !d->v6 && event_widths_vary(&s->fields);
        s->name = name_from_itself(d);
    }
    place_fields(s);
    return s;
}
