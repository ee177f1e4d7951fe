#include "read/debug_units.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sorted.h"
#include "read/debug_ranges.h"

enum {
    ARANGES_VERSION = 2,
    RANGE_BYTES = 2 * DEBUG_ADDRESS_BYTES,
    /* ranges, units and addresses looked at, which is not bounded by the size of the sections */
    STEPS_MAX = 1 << 26,
};

struct unit_search {
    const struct debug_sections *sections;
    const uint64_t *addrs;
    struct debug_units *out;
    size_t found;     /* addresses that have a unit */
    uint64_t *listed; /* units in .debug_aranges */
    size_t listed_count, listed_capacity;
    uint64_t steps;
};

static int offset_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The first unit that has an address keeps it. */
static void take_range(struct unit_search *s, uint64_t begin, uint64_t end, uint64_t unit)
{
    size_t count = s->out->addr_count;
    s->steps++;
    for (size_t i = sorted_from(s->addrs, count, begin); i < count && s->addrs[i] < end; i++, s->steps++)
        if (s->out->of_addr[i] == DEBUG_NO_UNIT) {
            s->out->of_addr[i] = unit;
            s->found++;
        }
}

/* A set of ranges, of one unit; `c` is over it without its length. */
static void read_set(struct unit_search *s, struct cursor c, bool is_64, size_t length_bytes)
{
    uint16_t version = cursor_u16le(&c);
    uint64_t unit = debug_offset_read(&c, is_64);
    uint8_t address_bytes = cursor_u8(&c), segment_bytes = cursor_u8(&c);
    if (!cursor_ok(&c) || version != ARANGES_VERSION || address_bytes != DEBUG_ADDRESS_BYTES || segment_bytes)
        return;
    s->listed = mem_grow(s->listed, &s->listed_capacity, s->listed_count + 1, sizeof *s->listed);
    s->listed[s->listed_count++] = unit;
    /* aligned as seen from the set's length on */
    cursor_skip(&c, (RANGE_BYTES - (length_bytes + c.pos) % RANGE_BYTES) % RANGE_BYTES);
    while (cursor_left(&c) >= RANGE_BYTES && s->steps < STEPS_MAX) {
        uint64_t begin = cursor_u64le(&c), size = cursor_u64le(&c);
        if (begin && size && begin + size > begin) /* at 0 is what the linker left out */
            take_range(s, begin, begin + size, unit);
    }
}

static void read_aranges(struct unit_search *s)
{
    struct cursor c = cursor_over(s->sections->aranges);
    while (cursor_left(&c) && s->steps < STEPS_MAX) {
        bool is_64;
        uint64_t size = debug_length_read(&c, &is_64);
        struct span set = cursor_bytes(&c, size);
        if (cursor_ok(&c))
            read_set(s, cursor_over(set), is_64, is_64 ? 12 : 4);
        s->steps++;
    }
    if (s->listed_count)
        qsort(s->listed, s->listed_count, sizeof *s->listed, offset_compare);
}

static bool is_listed(const struct unit_search *s, uint64_t unit)
{
    size_t at = sorted_from(s->listed, s->listed_count, unit);
    return at < s->listed_count && s->listed[at] == unit;
}

static void ask_units(struct unit_search *s)
{
    struct debug_unit unit;
    debug_unit_init(&unit);
    uint64_t at = 0;
    for (; at < s->sections->info.size && s->found < s->out->addr_count; at += unit.size_bytes, s->steps++) {
        bool is_code = debug_unit_peek(&unit, s->sections, at);
        if (!unit.size_bytes || s->steps + unit.abbrevs.looked >= STEPS_MAX)
            break;
        if (!is_code || is_listed(s, at))
            continue;
        struct debug_ranges ranges = debug_ranges_of(&unit, s->sections, &unit.root);
        uint64_t begin, end;
        while (s->steps < STEPS_MAX && debug_ranges_next(&ranges, &begin, &end))
            take_range(s, begin, end, at);
    }
    s->steps += unit.abbrevs.looked;
    debug_unit_done(&unit);
}

/* Sorts them and leaves each once. Returns how many are left. */
static size_t sort_unique(uint64_t *offsets, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(offsets, count, sizeof *offsets, offset_compare);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || offsets[i] != offsets[kept - 1])
            offsets[kept++] = offsets[i];
    return kept;
}

static void list_found(struct debug_units *out)
{
    size_t found = 0;
    out->offsets = mem_alloc(out->addr_count + 1, sizeof *out->offsets);
    for (size_t i = 0; i < out->addr_count; i++)
        if (out->of_addr[i] != DEBUG_NO_UNIT)
            out->offsets[found++] = out->of_addr[i];
    out->count = sort_unique(out->offsets, found);
}

size_t debug_units_line_programs(const struct debug_units *units, const struct debug_sections *sections,
                                 uint64_t *out)
{
    size_t count = 0;
    struct debug_unit unit;
    debug_unit_init(&unit);
    for (size_t i = 0; i < units->count; i++)
        if (debug_unit_peek(&unit, sections, units->offsets[i]) &&
            unit.root.fields[DEBUG_STMT_LIST].kind != DEBUG_VALUE_NONE)
            out[count++] = unit.root.fields[DEBUG_STMT_LIST].number;
    debug_unit_done(&unit);
    return sort_unique(out, count);
}

bool debug_units_find(const struct debug_sections *sections, const uint64_t *addrs, size_t count,
                      struct debug_units *out, struct error *err)
{
    struct debug_units units = { .of_addr = mem_alloc(count + 1, sizeof *units.of_addr),
                                 .addr_count = count };
    struct unit_search s = { .sections = sections, .addrs = addrs, .out = &units };
    memset(units.of_addr, 0xff, count * sizeof *units.of_addr);
    read_aranges(&s);
    if (s.found < count)
        ask_units(&s);
    free(s.listed);
    if (s.steps >= STEPS_MAX) {
        debug_units_done(&units);
        return error_set(err, ERROR_LIMIT, ".debug_aranges asks for too much work");
    }
    list_found(&units);
    *out = units;
    return true;
}

void debug_units_done(struct debug_units *units)
{
    free(units->of_addr);
    free(units->offsets);
    *units = (struct debug_units){ 0 };
}
