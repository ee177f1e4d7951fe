#include "read/debug_abbrev.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/debug_form.h"

enum {
    ABBREVS_MAX = 1 << 16,
    ATTRIBUTES_MAX = 1 << 20,
    FORM_IMPLICIT_CONST = 0x21,
};

void debug_abbrevs_open(struct debug_abbrevs *a, struct span section, uint64_t offset)
{
    a->rest = cursor_over(section);
    cursor_seek(&a->rest, offset);
    a->count = a->attribute_count = 0;
}

void debug_abbrevs_done(struct debug_abbrevs *a)
{
    free(a->items);
    free(a->attributes);
    *a = (struct debug_abbrevs){ 0 };
}

static void add_attribute(struct debug_abbrevs *a, struct debug_abbrev *abbrev, uint64_t name, uint64_t form,
                          int64_t implicit)
{
    uint32_t offsets = 0;
    uint8_t bytes = debug_form_bytes(form, &offsets);
    abbrev->is_fixed &= bytes != DEBUG_FORM_NOT_FIXED;
    abbrev->fixed_bytes += bytes;
    abbrev->fixed_offsets += offsets;
    a->attributes =
        mem_grow(a->attributes, &a->attribute_capacity, a->attribute_count + 1, sizeof *a->attributes);
    /* neither a name nor a form that we know is longer */
    a->attributes[a->attribute_count++] = (struct debug_attribute){
        .name = name > UINT16_MAX ? 0 : (uint16_t)name,
        .form = form > UINT16_MAX ? 0 : (uint16_t)form,
        .implicit = implicit,
    };
    abbrev->count++;
    a->looked++;
}

/* Code 0 ends the table. */
static bool read_one(struct debug_abbrevs *a)
{
    struct cursor *c = &a->rest;
    struct debug_abbrev abbrev = { .code = cursor_varuint64(c), .is_fixed = true };
    if (!cursor_ok(c) || abbrev.code == 0 || a->count == ABBREVS_MAX)
        return false;
    a->looked++;
    uint64_t tag = cursor_varuint64(c);
    abbrev.tag = tag > UINT16_MAX ? 0 : (uint16_t)tag;
    abbrev.has_children = cursor_u8(c);
    abbrev.first = (uint32_t)a->attribute_count;
    for (;;) {
        uint64_t name = cursor_varuint64(c), form = cursor_varuint64(c);
        int64_t implicit = form == FORM_IMPLICIT_CONST ? cursor_sleb64(c) : 0;
        if (!cursor_ok(c) || a->attribute_count == ATTRIBUTES_MAX)
            return false;
        if (name == 0 && form == 0)
            break;
        add_attribute(a, &abbrev, name, form, implicit);
    }
    a->items = mem_grow(a->items, &a->capacity, a->count + 1, sizeof *a->items);
    a->items[a->count++] = abbrev;
    return true;
}

const struct debug_abbrev *debug_abbrevs_find(struct debug_abbrevs *a, uint64_t code)
{
    /* compilers count from 1 on */
    while (cursor_ok(&a->rest) && a->count < code && a->count < ABBREVS_MAX)
        if (!read_one(a))
            a->rest.failed = true;
    if (code && code <= a->count && a->items[code - 1].code == code)
        return &a->items[code - 1];
    while (cursor_ok(&a->rest))
        if (!read_one(a))
            a->rest.failed = true;
    for (size_t i = 0; i < a->count; i++, a->looked++)
        if (a->items[i].code == code)
            return &a->items[i];
    return NULL;
}
