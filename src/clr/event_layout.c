#include "clr/event_layout.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { LAYOUT_FIELDS_MAX = 40 }; /* of one object, as the catalogue has it */

struct layout {
    const char *at;
    uint32_t version;
    unsigned pointer_size;
    bool there; /* this version has the field that is read */
    struct event_fields *out;
};

static bool layout_takes(struct layout *l, const char *text)
{
    size_t size = strlen(text);
    if (strncmp(l->at, text, size) != 0)
        return false;
    l->at += size;
    return true;
}

static struct span layout_word(struct layout *l)
{
    const char *from = l->at;
    while (isalnum((unsigned char)*l->at) || *l->at == '_')
        l->at++;
    return span_of(from, (size_t)(l->at - from));
}

/* "2:" or "<2:" or nothing. Whether this version has the field. */
static bool layout_version(struct layout *l)
{
    bool before = *l->at == '<';
    const char *digit = l->at + before;
    if (!isdigit((unsigned char)digit[0]) || digit[1] != ':')
        return true;
    l->at = digit + 2;
    uint32_t version = (uint32_t)(digit[0] - '0');
    return before ? l->version < version : l->version >= version;
}

static const struct {
    const char *word;
    enum event_field_type type;
    uint8_t size;
} words[] = {
    { "u1", FIELD_UINT, 1 },    { "u2", FIELD_UINT, 2 },     { "u4", FIELD_UINT, 4 },
    { "u8", FIELD_UINT, 8 },    { "i4", FIELD_INT, 4 },      { "i8", FIELD_INT, 8 },
    { "x4", FIELD_POINTER, 4 }, { "x8", FIELD_POINTER, 8 },  { "n", FIELD_UINT, 0 },
    { "p", FIELD_POINTER, 0 },  { "f8", FIELD_FLOAT, 8 },    { "b4", FIELD_BOOL, 4 },
    { "s", FIELD_TEXT16, 0 },   { "a", FIELD_TEXT8, 0 },     { "g", FIELD_GUID, 16 },
    { "tier", FIELD_TIER, 0 },  { "bytes", FIELD_BYTES, 0 }, { "pad2", FIELD_PAD, 2 },
    { "pad4", FIELD_PAD, 4 },   { "clr", FIELD_UINT, 2 },
};

static bool layout_type(struct layout *l, struct span word, struct event_field *out)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (span_equals(word, span_of(words[i].word, strlen(words[i].word)))) {
            out->type = words[i].type;
            bool native = (out->type == FIELD_POINTER || out->type == FIELD_UINT) && words[i].size == 0;
            out->size = native ? (uint8_t)l->pointer_size : words[i].size;
            return true;
        }
    return false;
}

/* "[Count]": makes the field of that name, one of those before, keep its value. */
static uint8_t layout_counter(struct layout *l, struct event_field *fields, uint32_t count, uint8_t *slots)
{
    struct span name = layout_word(l);
    bool closed = layout_takes(l, "]");
    assert(closed);
    (void)closed;
    for (uint32_t i = 0; i < count; i++) {
        if (!fields[i].name || !span_equals(name, span_of(fields[i].name, strlen(fields[i].name))))
            continue;
        if (!fields[i].keeps)
            fields[i].keeps = ++*slots;
        assert(*slots <= EVENT_FIELD_SLOTS);
        return fields[i].keeps - 1;
    }
    assert(!l->there); /* the catalogue counts by a field that it does not have */
    return 0;
}

static uint32_t layout_fields(struct layout *l, char end, uint32_t *out_first);

/* An array's item is a row of its own: the field with its type, or an object. */
static void layout_items(struct layout *l, struct event_field *field, bool object)
{
    struct event_field item = { .name = "", .type = FIELD_OBJECT, .offset = -1 };
    if (object)
        item.members = layout_fields(l, '}', &item.first);
    else
        item = (struct event_field){
            .name = "", .type = field->type, .size = field->size, .names = field->names, .offset = -1
        };
    uint32_t row = event_fields_add(l->out, 1);
    assert(row != UINT32_MAX);
    l->out->rows[row] = item;
    *field = (struct event_field){ .name = field->name,
                                   .type = FIELD_ARRAY,
                                   .counted = COUNT_SLOT,
                                   .slot = field->slot,
                                   .offset = -1,
                                   .first = row };
}

static void layout_alternative(struct layout *l, struct event_field *field)
{
    field->when = arena_string(&l->out->names, layout_word(l));
    bool opened = layout_takes(l, "{");
    assert(opened && field->when);
    (void)opened;
    field->members = layout_fields(l, '}', &field->first);
}

/* The type, the name and what follows it. */
static void layout_field(struct layout *l, struct event_field *fields, uint32_t count, uint8_t *slots)
{
    struct event_field *field = &fields[count];
    *field = (struct event_field){ .offset = -1, .type = FIELD_OBJECT };
    struct span name = layout_word(l);
    bool typed = layout_type(l, name, field);
    field->name = "";
    if (typed && field->type == FIELD_PAD)
        return;
    if (span_equals(name, span_of("clr", 3)))
        name = span_of("ClrInstanceID", 13);
    else if (layout_takes(l, " "))
        name = layout_word(l);
    field->name = arena_string(&l->out->names, name);
    assert(field->name);
    bool counted = layout_takes(l, "[");
    if (counted)
        field->slot = layout_counter(l, fields, count, slots);
    if (layout_takes(l, "="))
        field->names = event_enum_find(layout_word(l));
    if (layout_takes(l, "?"))
        layout_alternative(l, field);
    else if (counted && layout_takes(l, "{"))
        layout_items(l, field, true);
    else if (counted && field->type != FIELD_TIER && field->type != FIELD_BYTES)
        layout_items(l, field, false);
}

/* Up to `end`, which is passed when it is an object's. */
static uint32_t layout_fields(struct layout *l, char end, uint32_t *out_first)
{
    struct event_field fields[LAYOUT_FIELDS_MAX];
    uint32_t count = 0;
    uint8_t slots = 0;
    while (*l->at != end) {
        assert(count < LAYOUT_FIELDS_MAX);
        bool there = layout_version(l);
        l->there = there;
        layout_field(l, fields, count, &slots);
        count += there;
        layout_takes(l, ", ");
    }
    l->at += end != 0;
    *out_first = event_fields_add(l->out, count);
    assert(*out_first != UINT32_MAX);
    for (uint32_t i = 0; i < count; i++)
        l->out->rows[*out_first + i] = fields[i];
    return count;
}

void event_layout_read(const char *text, uint32_t version, unsigned pointer_size, struct event_fields *out)
{
    struct layout l = { .at = text, .version = version, .pointer_size = pointer_size, .out = out };
    out->root_count = layout_fields(&l, 0, &out->root);
}
