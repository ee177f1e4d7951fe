#include "read/debug_unit.h"

#include <string.h>

#include "read/elf.h"

enum {
    VERSION_MIN = 2,
    VERSION_MAX = 5,
    PEEK_BYTES = 1024,
    UNIT_BYTES_MAX = 128 << 20,
    TAG_COMPILE_UNIT = 0x11,
    TAG_PARTIAL_UNIT = 0x3c,
};

/* Kinds of units since version 5. */
enum { UNIT_COMPILE = 1, UNIT_PARTIAL = 3 };

enum attribute {
    AT_SIBLING = 0x01,
    AT_NAME = 0x03,
    AT_STMT_LIST = 0x10,
    AT_LOW_PC = 0x11,
    AT_HIGH_PC = 0x12,
    AT_ABSTRACT_ORIGIN = 0x31,
    AT_SPECIFICATION = 0x47,
    AT_RANGES = 0x55,
    AT_CALL_FILE = 0x58,
    AT_CALL_LINE = 0x59,
    AT_LINKAGE_NAME = 0x6e,
    AT_STR_OFFSETS_BASE = 0x72,
    AT_ADDR_BASE = 0x73,
    AT_RNGLISTS_BASE = 0x74,
    AT_MIPS_LINKAGE_NAME = 0x2007,
};

void debug_unit_init(struct debug_unit *unit)
{
    *unit = (struct debug_unit){ 0 };
    buffer_init(&unit->memory, UNIT_BYTES_MAX);
}

void debug_unit_done(struct debug_unit *unit)
{
    debug_abbrevs_done(&unit->abbrevs);
    buffer_done(&unit->memory);
}

/* The length, and what is behind it of the header; leaves the cursor at the root. */
static bool read_header(struct debug_unit *unit, struct cursor *c, uint64_t left, struct span abbrevs)
{
    uint64_t size = debug_length_read(c, &unit->encoding.is_64);
    if (!cursor_ok(c) || size > left - c->pos)
        return false;
    unit->size_bytes = c->pos + size;
    unit->encoding.version = cursor_u16le(c);
    unsigned kind = UNIT_COMPILE;
    uint8_t address_bytes = 0;
    if (unit->encoding.version >= 5) {
        kind = cursor_u8(c);
        address_bytes = cursor_u8(c);
    }
    uint64_t abbrev_off = debug_offset_read(c, unit->encoding.is_64);
    if (unit->encoding.version < 5)
        address_bytes = cursor_u8(c);
    debug_abbrevs_open(&unit->abbrevs, abbrevs, abbrev_off);
    return cursor_ok(c) && unit->encoding.version >= VERSION_MIN && unit->encoding.version <= VERSION_MAX &&
           (kind == UNIT_COMPILE || kind == UNIT_PARTIAL) && address_bytes == DEBUG_ADDRESS_BYTES;
}

static bool read_root(struct debug_unit *unit, const struct debug_sections *sections)
{
    unit->base_addr = 0;
    const struct debug_abbrev *abbrev = debug_unit_next(unit, &unit->entries);
    if (!abbrev || (abbrev->tag != TAG_COMPILE_UNIT && abbrev->tag != TAG_PARTIAL_UNIT))
        return false;
    debug_unit_read(unit, &unit->entries, abbrev, &unit->root);
    if (!cursor_ok(&unit->entries))
        return false;
    debug_unit_address(unit, sections, unit->root.fields[DEBUG_LOW_PC], &unit->base_addr);
    return true;
}

static bool open_part(struct debug_unit *unit, const struct debug_sections *sections, uint64_t offset,
                      uint64_t most)
{
    const struct elf_bytes *info = &sections->info;
    uint64_t left = offset < info->size ? info->size - offset : 0;
    unit->offset = offset;
    unit->size_bytes = 0;
    struct cursor c = cursor_over(elf_bytes_get(info, offset, left < most ? left : most, &unit->memory));
    if (!read_header(unit, &c, left, sections->abbrev))
        return false;
    uint64_t size = unit->size_bytes < most ? unit->size_bytes : most;
    size_t root = c.pos;
    unit->entries = cursor_over(span_part(c.bytes, 0, size));
    cursor_seek(&unit->entries, root);
    return read_root(unit, sections);
}

bool debug_unit_peek(struct debug_unit *unit, const struct debug_sections *sections, uint64_t offset)
{
    return open_part(unit, sections, offset, PEEK_BYTES) ||
           (unit->size_bytes > PEEK_BYTES && open_part(unit, sections, offset, unit->size_bytes));
}

bool debug_unit_open(struct debug_unit *unit, const struct debug_sections *sections, uint64_t offset)
{
    open_part(unit, sections, offset, PEEK_BYTES);
    return unit->size_bytes && open_part(unit, sections, offset, unit->size_bytes);
}

const struct debug_abbrev *debug_unit_next(struct debug_unit *unit, struct cursor *c)
{
    uint64_t code = cursor_varuint64(c);
    if (code == 0)
        return NULL;
    const struct debug_abbrev *abbrev = debug_abbrevs_find(&unit->abbrevs, code);
    c->failed |= !abbrev;
    return abbrev;
}

/* DEBUG_FIELDS for an attribute that is not read. */
static enum debug_field field_of(uint16_t attribute)
{
    switch (attribute) {
    case AT_SIBLING:
        return DEBUG_SIBLING;
    case AT_NAME:
        return DEBUG_NAME;
    case AT_LINKAGE_NAME:
    case AT_MIPS_LINKAGE_NAME:
        return DEBUG_LINKAGE_NAME;
    case AT_LOW_PC:
        return DEBUG_LOW_PC;
    case AT_HIGH_PC:
        return DEBUG_HIGH_PC;
    case AT_RANGES:
        return DEBUG_RANGES;
    case AT_ABSTRACT_ORIGIN:
    case AT_SPECIFICATION:
        return DEBUG_ORIGIN;
    case AT_CALL_FILE:
        return DEBUG_CALL_FILE;
    case AT_CALL_LINE:
        return DEBUG_CALL_LINE;
    case AT_STMT_LIST:
        return DEBUG_STMT_LIST;
    case AT_STR_OFFSETS_BASE:
        return DEBUG_STR_OFFSETS_BASE;
    case AT_ADDR_BASE:
        return DEBUG_ADDR_BASE;
    case AT_RNGLISTS_BASE:
        return DEBUG_RNGLISTS_BASE;
    default:
        return DEBUG_FIELDS;
    }
}

void debug_unit_read(const struct debug_unit *unit, struct cursor *c, const struct debug_abbrev *abbrev,
                     struct debug_entry *out)
{
    *out = (struct debug_entry){ .tag = abbrev->tag, .has_children = abbrev->has_children };
    const struct debug_attribute *attributes = unit->abbrevs.attributes + abbrev->first;
    for (uint32_t i = 0; i < abbrev->count && cursor_ok(c); i++) {
        struct debug_value value =
            debug_form_read(c, attributes[i].form, attributes[i].implicit, unit->encoding);
        enum debug_field field = field_of(attributes[i].name);
        if (field != DEBUG_FIELDS)
            out->fields[field] = value;
    }
}

uint32_t debug_unit_skip(const struct debug_unit *unit, struct cursor *c, const struct debug_abbrev *abbrev)
{
    if (abbrev->is_fixed) {
        unsigned offset_bytes = unit->encoding.is_64 ? 8 : 4;
        cursor_skip(c, abbrev->fixed_bytes + (uint64_t)abbrev->fixed_offsets * offset_bytes);
        return 1;
    }
    const struct debug_attribute *attributes = unit->abbrevs.attributes + abbrev->first;
    for (uint32_t i = 0; i < abbrev->count && cursor_ok(c); i++)
        debug_form_read(c, attributes[i].form, attributes[i].implicit, unit->encoding);
    return abbrev->count;
}

/* The number at `index` of a table behind `base`. */
static bool table_entry(struct span table, uint64_t base, uint64_t index, unsigned bytes, uint64_t *out)
{
    if (base > table.size || index >= (table.size - base) / bytes)
        return false;
    const uint8_t *at = table.data + base + index * bytes;
    *out = bytes == 8 ? load_u64le(at) : load_u32le(at);
    return true;
}

bool debug_unit_address(const struct debug_unit *unit, const struct debug_sections *sections,
                        struct debug_value value, uint64_t *out)
{
    if (value.kind == DEBUG_VALUE_ADDRESS_INDEX)
        return table_entry(sections->addr, unit->root.fields[DEBUG_ADDR_BASE].number, value.number,
                           DEBUG_ADDRESS_BYTES, out);
    if (value.kind != DEBUG_VALUE_ADDRESS)
        return false;
    *out = value.number;
    return true;
}

/* At `offset` of a part of memory, or of the unit. */
static bool text_in(struct span bytes, uint64_t offset, struct buffer *out)
{
    struct source strings = source_over_span(bytes);
    return elf_string(&strings, offset, out);
}

bool debug_unit_text(const struct debug_unit *unit, const struct debug_sections *sections,
                     struct debug_value value, struct buffer *out)
{
    uint64_t offset = 0;
    switch (value.kind) {
    case DEBUG_VALUE_TEXT:
        return text_in(unit->entries.bytes, value.number, out);
    case DEBUG_VALUE_STRING:
        return elf_string(&sections->str, value.number, out);
    case DEBUG_VALUE_LINE_STRING:
        return text_in(sections->lines.strings, value.number, out);
    case DEBUG_VALUE_STRING_INDEX:
        return table_entry(sections->str_offsets, unit->root.fields[DEBUG_STR_OFFSETS_BASE].number,
                           value.number, unit->encoding.is_64 ? 8 : 4, &offset) &&
               elf_string(&sections->str, offset, out);
    default:
        return false;
    }
}
