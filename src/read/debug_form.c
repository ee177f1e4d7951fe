#include "read/debug_form.h"

enum { LENGTH_IS_64 = 0xffffffff };

enum form {
    FORM_ADDR = 0x01,
    FORM_BLOCK2 = 0x03,
    FORM_BLOCK4 = 0x04,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_BLOCK = 0x09,
    FORM_BLOCK1 = 0x0a,
    FORM_DATA1 = 0x0b,
    FORM_FLAG = 0x0c,
    FORM_SDATA = 0x0d,
    FORM_STRP = 0x0e,
    FORM_UDATA = 0x0f,
    FORM_REF_ADDR = 0x10,
    FORM_REF1 = 0x11,
    FORM_REF2 = 0x12,
    FORM_REF4 = 0x13,
    FORM_REF8 = 0x14,
    FORM_REF_UDATA = 0x15,
    FORM_INDIRECT = 0x16,
    FORM_SEC_OFFSET = 0x17,
    FORM_EXPRLOC = 0x18,
    FORM_FLAG_PRESENT = 0x19,
    FORM_STRX = 0x1a,
    FORM_ADDRX = 0x1b,
    FORM_REF_SUP4 = 0x1c,
    FORM_STRP_SUP = 0x1d,
    FORM_DATA16 = 0x1e,
    FORM_LINE_STRP = 0x1f,
    FORM_REF_SIG8 = 0x20,
    FORM_IMPLICIT_CONST = 0x21,
    FORM_LOCLISTX = 0x22,
    FORM_RNGLISTX = 0x23,
    FORM_REF_SUP8 = 0x24,
    FORM_STRX1 = 0x25,
    FORM_STRX2 = 0x26,
    FORM_STRX3 = 0x27,
    FORM_STRX4 = 0x28,
    FORM_ADDRX1 = 0x29,
    FORM_ADDRX2 = 0x2a,
    FORM_ADDRX3 = 0x2b,
    FORM_ADDRX4 = 0x2c,
    FORM_GNU_ADDR_INDEX = 0x1f01,
    FORM_GNU_STR_INDEX = 0x1f02,
    FORM_GNU_REF_ALT = 0x1f20,
    FORM_GNU_STRP_ALT = 0x1f21,
    FORMS = FORM_ADDRX4 + 1,
};

/* How a form is written. */
enum layout {
    LAYOUT_UNKNOWN,
    LAYOUT_1,
    LAYOUT_2,
    LAYOUT_3,
    LAYOUT_4,
    LAYOUT_8,
    LAYOUT_16,
    LAYOUT_NOTHING,
    LAYOUT_ULEB,
    LAYOUT_SLEB,
    LAYOUT_TEXT,
    LAYOUT_OFFSET,
    /* so many bytes, behind their number */
    LAYOUT_BLOCK1,
    LAYOUT_BLOCK2,
    LAYOUT_BLOCK4,
    LAYOUT_BLOCK,
    /* the form itself stands before the value */
    LAYOUT_INDIRECT,
};

struct form_shape {
    uint8_t layout, kind;
};

static const struct form_shape shapes[FORMS] = {
    [FORM_ADDR] = { LAYOUT_8, DEBUG_VALUE_ADDRESS },
    [FORM_BLOCK2] = { LAYOUT_BLOCK2, DEBUG_VALUE_NONE },
    [FORM_BLOCK4] = { LAYOUT_BLOCK4, DEBUG_VALUE_NONE },
    [FORM_DATA2] = { LAYOUT_2, DEBUG_VALUE_CONSTANT },
    [FORM_DATA4] = { LAYOUT_4, DEBUG_VALUE_CONSTANT },
    [FORM_DATA8] = { LAYOUT_8, DEBUG_VALUE_CONSTANT },
    [FORM_STRING] = { LAYOUT_TEXT, DEBUG_VALUE_TEXT },
    [FORM_BLOCK] = { LAYOUT_BLOCK, DEBUG_VALUE_NONE },
    [FORM_BLOCK1] = { LAYOUT_BLOCK1, DEBUG_VALUE_NONE },
    [FORM_DATA1] = { LAYOUT_1, DEBUG_VALUE_CONSTANT },
    [FORM_FLAG] = { LAYOUT_1, DEBUG_VALUE_CONSTANT },
    [FORM_SDATA] = { LAYOUT_SLEB, DEBUG_VALUE_CONSTANT },
    [FORM_STRP] = { LAYOUT_OFFSET, DEBUG_VALUE_STRING },
    [FORM_UDATA] = { LAYOUT_ULEB, DEBUG_VALUE_CONSTANT },
    [FORM_REF_ADDR] = { LAYOUT_OFFSET, DEBUG_VALUE_ENTRY_ANYWHERE },
    [FORM_REF1] = { LAYOUT_1, DEBUG_VALUE_ENTRY },
    [FORM_REF2] = { LAYOUT_2, DEBUG_VALUE_ENTRY },
    [FORM_REF4] = { LAYOUT_4, DEBUG_VALUE_ENTRY },
    [FORM_REF8] = { LAYOUT_8, DEBUG_VALUE_ENTRY },
    [FORM_REF_UDATA] = { LAYOUT_ULEB, DEBUG_VALUE_ENTRY },
    [FORM_INDIRECT] = { LAYOUT_INDIRECT, DEBUG_VALUE_NONE },
    [FORM_SEC_OFFSET] = { LAYOUT_OFFSET, DEBUG_VALUE_OFFSET },
    [FORM_EXPRLOC] = { LAYOUT_BLOCK, DEBUG_VALUE_NONE },
    [FORM_FLAG_PRESENT] = { LAYOUT_NOTHING, DEBUG_VALUE_CONSTANT },
    [FORM_STRX] = { LAYOUT_ULEB, DEBUG_VALUE_STRING_INDEX },
    [FORM_ADDRX] = { LAYOUT_ULEB, DEBUG_VALUE_ADDRESS_INDEX },
    [FORM_REF_SUP4] = { LAYOUT_4, DEBUG_VALUE_NONE },
    [FORM_STRP_SUP] = { LAYOUT_OFFSET, DEBUG_VALUE_NONE },
    [FORM_DATA16] = { LAYOUT_16, DEBUG_VALUE_NONE },
    [FORM_LINE_STRP] = { LAYOUT_OFFSET, DEBUG_VALUE_LINE_STRING },
    [FORM_REF_SIG8] = { LAYOUT_8, DEBUG_VALUE_NONE },
    [FORM_IMPLICIT_CONST] = { LAYOUT_NOTHING, DEBUG_VALUE_CONSTANT },
    [FORM_LOCLISTX] = { LAYOUT_ULEB, DEBUG_VALUE_LIST_INDEX },
    [FORM_RNGLISTX] = { LAYOUT_ULEB, DEBUG_VALUE_LIST_INDEX },
    [FORM_REF_SUP8] = { LAYOUT_8, DEBUG_VALUE_NONE },
    [FORM_STRX1] = { LAYOUT_1, DEBUG_VALUE_STRING_INDEX },
    [FORM_STRX2] = { LAYOUT_2, DEBUG_VALUE_STRING_INDEX },
    [FORM_STRX3] = { LAYOUT_3, DEBUG_VALUE_STRING_INDEX },
    [FORM_STRX4] = { LAYOUT_4, DEBUG_VALUE_STRING_INDEX },
    [FORM_ADDRX1] = { LAYOUT_1, DEBUG_VALUE_ADDRESS_INDEX },
    [FORM_ADDRX2] = { LAYOUT_2, DEBUG_VALUE_ADDRESS_INDEX },
    [FORM_ADDRX3] = { LAYOUT_3, DEBUG_VALUE_ADDRESS_INDEX },
    [FORM_ADDRX4] = { LAYOUT_4, DEBUG_VALUE_ADDRESS_INDEX },
};

static struct form_shape shape_of(uint64_t form)
{
    switch (form) {
    case FORM_GNU_ADDR_INDEX:
        return (struct form_shape){ LAYOUT_ULEB, DEBUG_VALUE_ADDRESS_INDEX };
    case FORM_GNU_STR_INDEX:
        return (struct form_shape){ LAYOUT_ULEB, DEBUG_VALUE_STRING_INDEX };
    case FORM_GNU_REF_ALT:
    case FORM_GNU_STRP_ALT:
        return (struct form_shape){ LAYOUT_OFFSET, DEBUG_VALUE_NONE };
    default:
        return form < FORMS ? shapes[form] : shapes[0];
    }
}

uint64_t debug_length_read(struct cursor *c, bool *out_is_64)
{
    uint64_t size = cursor_u32le(c);
    *out_is_64 = size == LENGTH_IS_64;
    return *out_is_64 ? cursor_u64le(c) : size;
}

uint64_t debug_offset_read(struct cursor *c, bool is_64)
{
    return is_64 ? cursor_u64le(c) : cursor_u32le(c);
}

static uint64_t read_number(struct cursor *c, enum layout layout, bool is_64)
{
    uint64_t low;
    switch (layout) {
    case LAYOUT_1:
        return cursor_u8(c);
    case LAYOUT_2:
        return cursor_u16le(c);
    case LAYOUT_3:
        low = cursor_u16le(c);
        return low | (uint64_t)cursor_u8(c) << 16;
    case LAYOUT_4:
        return cursor_u32le(c);
    case LAYOUT_8:
        return cursor_u64le(c);
    case LAYOUT_ULEB:
        return cursor_varuint64(c);
    case LAYOUT_SLEB:
        return (uint64_t)cursor_sleb64(c);
    case LAYOUT_OFFSET:
        return debug_offset_read(c, is_64);
    default:
        return 0;
    }
}

static void skip_block(struct cursor *c, enum layout layout)
{
    switch (layout) {
    case LAYOUT_16:
        cursor_skip(c, 16);
        break;
    case LAYOUT_BLOCK1:
        cursor_skip(c, cursor_u8(c));
        break;
    case LAYOUT_BLOCK2:
        cursor_skip(c, cursor_u16le(c));
        break;
    case LAYOUT_BLOCK4:
        cursor_skip(c, cursor_u32le(c));
        break;
    case LAYOUT_BLOCK:
        cursor_skip(c, cursor_varuint64(c));
        break;
    default:
        c->failed = true;
    }
}

struct debug_value debug_form_read(struct cursor *c, uint64_t form, int64_t implicit,
                                   struct debug_encoding how)
{
    struct form_shape shape = shape_of(form);
    if (shape.layout == LAYOUT_INDIRECT) {
        shape = shape_of(cursor_varuint64(c));
        if (shape.layout == LAYOUT_INDIRECT || shape.layout == LAYOUT_NOTHING)
            shape.layout = LAYOUT_UNKNOWN; /* an implicit constant stands in the abbreviation only */
    }
    struct debug_value value = { .kind = shape.kind, .number = 0 };
    enum layout layout = shape.layout;
    if (form == FORM_REF_ADDR && how.version == 2)
        layout = LAYOUT_8; /* an address, then */
    if (layout == LAYOUT_TEXT) {
        value.number = c->pos;
        cursor_zstring(c);
    } else if (layout == LAYOUT_NOTHING) {
        value.number = form == FORM_IMPLICIT_CONST ? (uint64_t)implicit : 1;
    } else if (layout <= LAYOUT_8 || layout == LAYOUT_ULEB || layout == LAYOUT_SLEB ||
               layout == LAYOUT_OFFSET) {
        value.number = read_number(c, layout, how.is_64);
        c->failed |= layout == LAYOUT_UNKNOWN;
    } else {
        skip_block(c, layout);
    }
    if (!cursor_ok(c))
        value.kind = DEBUG_VALUE_NONE;
    return value;
}

uint8_t debug_form_bytes(uint64_t form, uint32_t *out_offsets)
{
    static const uint8_t bytes[] = {
        [LAYOUT_1] = 1, [LAYOUT_2] = 2, [LAYOUT_3] = 3, [LAYOUT_4] = 4, [LAYOUT_8] = 8, [LAYOUT_16] = 16,
    };
    enum layout layout = shape_of(form).layout;
    *out_offsets = layout == LAYOUT_OFFSET;
    if (form == FORM_REF_ADDR) /* in version 2 it is none */
        return DEBUG_FORM_NOT_FIXED;
    if (layout == LAYOUT_NOTHING || layout == LAYOUT_OFFSET)
        return 0;
    return layout >= LAYOUT_1 && layout <= LAYOUT_16 ? bytes[layout] : DEBUG_FORM_NOT_FIXED;
}
