#include "clr/event_widths.h"

#include <string.h>

#include "base/utf16.h"

enum {
    NARROW_MAX = 6,
    OVERLOAD_MAX = 4, /* arguments of WriteEvent's forms for ints and longs; beyond, each has its own type */
};

static bool is_integer(const struct event_field *f)
{
    return f->type == FIELD_INT || f->type == FIELD_UINT;
}

static bool is_wide_bool(const struct event_field *f)
{
    return f->type == FIELD_BOOL && f->size > 1;
}

bool event_widths_vary(const struct event_fields *fields)
{
    bool any = false;
    if (fields->root_count > EVENT_WIDTHS_FIELDS_MAX)
        return false;
    for (uint32_t i = 0; i < fields->root_count; i++) {
        const struct event_field *f = &fields->rows[fields->root + i];
        if (f->type > FIELD_TEXT16 || f->keeps)
            return false;
        any |= (is_integer(f) && f->size < 8) || is_wide_bool(f);
    }
    return any;
}

/* Whether a value in `size` bytes is one of the type that was described, perhaps with other ones. */
static bool can_hold(const struct event_field *described, const uint8_t *at, unsigned size)
{
    if (described->type == FIELD_BOOL)
        return (size == 4 ? load_u32le(at) : *at) <= 1;
    if (size == described->size)
        return true;
    uint64_t value = size == 4 ? load_u32le(at) : load_u64le(at);
    unsigned unused = 64 - 8 * described->size;
    uint64_t low = value << unused >> unused;
    if (described->type == FIELD_UINT)
        return value == low;
    int64_t extended = (int64_t)(value << unused) >> unused;
    return value == (size == 4 ? (uint32_t)extended : (uint64_t)extended);
}

/* Whether the payload ends with the last of these, which are described by `described`. */
static bool fits(const struct event_field *rows, const struct event_field *described, uint32_t count,
                 struct span payload)
{
    struct cursor c = cursor_over(payload);
    for (uint32_t i = 0; i < count && cursor_ok(&c); i++) {
        if (rows[i].type == FIELD_TEXT16) {
            utf16_zstring(&c);
            continue;
        }
        struct span bytes = cursor_bytes(&c, rows[i].size);
        if (bytes.data && !can_hold(&described[i], bytes.data, rows[i].size))
            return false;
    }
    return cursor_ok(&c) && c.pos == payload.size;
}

static uint32_t find_narrow(const struct event_field *rows, uint32_t count, unsigned size,
                            uint32_t out[NARROW_MAX])
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count && found < NARROW_MAX; i++)
        if (is_integer(&rows[i]) && rows[i].size < size)
            out[found++] = i;
    return found;
}

/* Of sources that describe themselves: Booleans in a byte, which has the type code of those in four. */
static bool fits_narrow_bools(const struct event_field *described, uint32_t count, struct span payload,
                              struct event_field *out)
{
    bool any = false;
    memcpy(out, described, count * sizeof *out);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_wide_bool(&out[i]))
            continue;
        out[i].size = 1;
        any = true;
    }
    return any && fits(out, described, count, payload);
}

/* With the chosen ones of `narrow` in `size` bytes. */
static bool fits_chosen(const struct event_field *described, uint32_t count, struct span payload,
                        const uint32_t *narrow, uint32_t chosen, unsigned size, struct event_field *out)
{
    memcpy(out, described, count * sizeof *out);
    for (uint32_t i = 0; chosen >> i; i++)
        if (chosen >> i & 1)
            out[narrow[i]].size = (uint8_t)size;
    return fits(out, described, count, payload);
}

/*
 * As few as explain it: what is too many can pass for text, too. But of few arguments all are of one type,
 * and what would be too few can.
 */
static bool fits_wide(const struct event_field *described, uint32_t count, struct span payload, unsigned size,
                      struct event_field *out)
{
    uint32_t narrow[NARROW_MAX], narrow_count = find_narrow(described, count, size, narrow);
    uint32_t all = (1u << narrow_count) - 1;
    if (all && count <= OVERLOAD_MAX && fits_chosen(described, count, payload, narrow, all, size, out))
        return true;
    for (int wide = 1; wide <= (int)narrow_count; wide++)
        for (uint32_t chosen = 1; chosen <= all; chosen++)
            if (__builtin_popcount(chosen) == wide &&
                fits_chosen(described, count, payload, narrow, chosen, size, out))
                return true;
    return false;
}

bool event_widths_find(const struct event_fields *fields, struct span payload,
                       struct event_field out[EVENT_WIDTHS_FIELDS_MAX])
{
    const struct event_field *described = &fields->rows[fields->root];
    uint32_t count = fields->root_count;
    if (fits(described, described, count, payload))
        return false;
    if (fits_narrow_bools(described, count, payload, out))
        return true;
    return fits_wide(described, count, payload, 4, out) || fits_wide(described, count, payload, 8, out);
}
