#include "read/debug_ranges.h"

/* Kinds of entries in .debug_rnglists. */
enum {
    RANGES_END,
    RANGES_BASE_INDEX,
    RANGES_START_END_INDEX,
    RANGES_START_INDEX_LENGTH,
    RANGES_OFFSET_PAIR,
    RANGES_BASE,
    RANGES_START_END,
    RANGES_START_LENGTH,
};

static const struct cursor no_list = { .failed = true };

static struct cursor list_at(struct span section, uint64_t offset)
{
    struct cursor list = cursor_over(section);
    cursor_seek(&list, offset);
    return list;
}

/* Of an index: the offsets that it counts, and what they are from, begin at the unit's base. */
static struct cursor indexed_list(const struct debug_ranges *ranges, uint64_t index)
{
    bool is_64 = ranges->unit->encoding.is_64;
    uint64_t base = ranges->unit->root.fields[DEBUG_RNGLISTS_BASE].number;
    struct cursor c = list_at(ranges->sections->rnglists, base);
    if (index > UINT32_MAX)
        return no_list;
    cursor_skip(&c, index * (is_64 ? 8 : 4));
    uint64_t offset = debug_offset_read(&c, is_64);
    if (!cursor_ok(&c) || offset > c.bytes.size - base)
        return no_list;
    return list_at(ranges->sections->rnglists, base + offset);
}

struct debug_ranges debug_ranges_of(const struct debug_unit *unit, const struct debug_sections *sections,
                                    const struct debug_entry *entry)
{
    struct debug_value list = entry->fields[DEBUG_RANGES], high = entry->fields[DEBUG_HIGH_PC];
    struct debug_ranges ranges = { .unit = unit, .sections = sections, .list = no_list };
    ranges.base = unit->base_addr;
    if (list.kind == DEBUG_VALUE_LIST_INDEX) {
        ranges.list = indexed_list(&ranges, list.number);
    } else if (list.kind == DEBUG_VALUE_OFFSET || list.kind == DEBUG_VALUE_CONSTANT) { /* before version 4 */
        ranges.list =
            list_at(unit->encoding.version >= 5 ? sections->rnglists : sections->ranges, list.number);
    } else if (debug_unit_address(unit, sections, entry->fields[DEBUG_LOW_PC], &ranges.begin) &&
               ranges.begin) { /* at 0 is what the linker left out */
        if (high.kind == DEBUG_VALUE_CONSTANT)
            ranges.end = ranges.begin + high.number;
        else
            debug_unit_address(unit, sections, high, &ranges.end);
    }
    return ranges;
}

/* .debug_ranges: pairs; two zeros end them, and a first of all ones gives the base. */
static bool next_pair(struct debug_ranges *r, uint64_t *out_begin, uint64_t *out_end)
{
    uint64_t begin = cursor_u64le(&r->list), end = cursor_u64le(&r->list);
    if (!cursor_ok(&r->list) || (begin == 0 && end == 0))
        return false;
    if (begin == UINT64_MAX) {
        r->base = end;
        return true;
    }
    *out_begin = r->base + begin;
    *out_end = r->base + end;
    return true;
}

static uint64_t address_at(struct debug_ranges *r, uint64_t index)
{
    struct debug_value value = { DEBUG_VALUE_ADDRESS_INDEX, index };
    uint64_t addr = 0;
    r->list.failed |= !debug_unit_address(r->unit, r->sections, value, &addr);
    return addr;
}

static bool next_entry(struct debug_ranges *r, uint64_t *out_begin, uint64_t *out_end)
{
    struct cursor *c = &r->list;
    uint64_t begin = 0, end = 0;
    switch (cursor_u8(c)) {
    case RANGES_BASE_INDEX:
        r->base = address_at(r, cursor_varuint64(c));
        break;
    case RANGES_BASE:
        r->base = cursor_u64le(c);
        break;
    case RANGES_START_END_INDEX:
        begin = address_at(r, cursor_varuint64(c));
        end = address_at(r, cursor_varuint64(c));
        break;
    case RANGES_START_INDEX_LENGTH:
        begin = address_at(r, cursor_varuint64(c));
        end = begin + cursor_varuint64(c);
        break;
    case RANGES_OFFSET_PAIR:
        begin = r->base + cursor_varuint64(c);
        end = r->base + cursor_varuint64(c);
        break;
    case RANGES_START_END:
        begin = cursor_u64le(c);
        end = cursor_u64le(c);
        break;
    case RANGES_START_LENGTH:
        begin = cursor_u64le(c);
        end = begin + cursor_varuint64(c);
        break;
    default: /* RANGES_END, or one that nobody knows the length of */
        return false;
    }
    *out_begin = begin;
    *out_end = end;
    return cursor_ok(c);
}

bool debug_ranges_next(struct debug_ranges *ranges, uint64_t *out_begin, uint64_t *out_end)
{
    uint64_t begin = 0, end = 0;
    if (ranges->end) {
        begin = ranges->begin;
        end = ranges->end;
        ranges->end = 0;
    } else if (!cursor_ok(&ranges->list) ||
               !(ranges->unit->encoding.version >= 5 ? next_entry(ranges, &begin, &end)
                                                     : next_pair(ranges, &begin, &end))) {
        ranges->list.failed = true;
        return false;
    }
    bool is_code = begin && begin < end;
    *out_begin = is_code ? begin : 0;
    *out_end = is_code ? end : 0;
    return true;
}
