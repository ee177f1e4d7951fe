#include "read/il_map.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
    IL_BIAS = 3, /* so that the three that are no offsets are 0, 1 and 2 */
    SOURCE_BITS = 2,
    SOURCE_BITS_HEADED = 3, /* one more for what belongs to an await */
    NUMBER_BITS_MAX = 32,
};

#define HAS_TWO_BOUNDS UINT32_C(0xffffffff)

/* Numbers of three bits a nibble, the most significant first, the low nibble of each byte first. */
struct nibbles {
    struct cursor c;
    uint8_t byte;
    bool half; /* the high nibble of `byte` is next */
};

static uint32_t nibbles_u32(struct nibbles *n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i <= NUMBER_BITS_MAX / 3; i++) {
        n->byte = n->half ? (uint8_t)(n->byte >> 4) : cursor_u8(&n->c);
        n->half = !n->half;
        value = value << 3 | (n->byte & 7u);
        if (!(n->byte & 8) || value > UINT32_MAX)
            break;
    }
    if ((n->byte & 8) || value > UINT32_MAX)
        n->c.failed = true;
    return cursor_ok(&n->c) ? (uint32_t)value : 0;
}

/* Bits packed from the lowest of each byte on. */
struct bits {
    struct cursor c;
    uint64_t held;
    unsigned count;
};

static uint32_t bits_take(struct bits *b, unsigned count)
{
    while (b->count < count) {
        b->held |= (uint64_t)cursor_u8(&b->c) << b->count;
        b->count += 8;
    }
    uint32_t value = (uint32_t)(b->held & ((UINT64_C(1) << count) - 1));
    b->held >>= count;
    b->count -= count;
    return value;
}

/* What is at hand while a map is read. */
struct map_reading {
    struct il_map map;
    uint64_t code_off, code_bytes;
};

static bool map_add(struct map_reading *r, uint32_t code_step, uint32_t biased)
{
    r->code_off += code_step;
    if (r->code_off > r->code_bytes)
        return false;
    r->map.points = mem_grow(r->map.points, &r->map.capacity, r->map.count + 1, sizeof *r->map.points);
    r->map.points[r->map.count++] = (struct il_point){ (uint32_t)r->code_off, biased - IL_BIAS };
    return true;
}

static bool read_nibble_points(struct nibbles *n, struct map_reading *r)
{
    uint32_t count = nibbles_u32(n);
    bool fits = count <= IL_MAP_POINTS_MAX;
    for (uint32_t i = 0; fits && i < count && cursor_ok(&n->c); i++) {
        uint32_t step = nibbles_u32(n), biased = nibbles_u32(n);
        nibbles_u32(n); /* what kind of point */
        fits = !cursor_ok(&n->c) || map_add(r, step, biased);
    }
    return fits && cursor_ok(&n->c);
}

static bool read_packed_points(struct nibbles *n, unsigned source_bits, struct map_reading *r)
{
    uint32_t count = nibbles_u32(n), code_bits = nibbles_u32(n), il_bits = nibbles_u32(n);
    struct bits b = { .c = n->c };
    if (!cursor_ok(&n->c) || count > IL_MAP_POINTS_MAX || code_bits >= NUMBER_BITS_MAX ||
        il_bits >= NUMBER_BITS_MAX)
        return false;
    bool fits = true;
    for (uint32_t i = 0; fits && i < count && cursor_ok(&b.c); i++) {
        bits_take(&b, source_bits);
        uint32_t step = bits_take(&b, code_bits + 1), biased = bits_take(&b, il_bits + 1);
        fits = !cursor_ok(&b.c) || map_add(r, step, biased);
    }
    return fits && cursor_ok(&b.c);
}

static bool read_points(struct nibbles *n, enum il_map_form form, struct map_reading *r)
{
    return form == IL_MAP_NIBBLES
               ? read_nibble_points(n, r)
               : read_packed_points(n, form == IL_MAP_HEADED ? SOURCE_BITS_HEADED : SOURCE_BITS, r);
}

/* Returns how many bytes the bounds take, which follow the head. */
static uint32_t read_head(struct nibbles *n, enum il_map_form form)
{
    /* behind the bounds, whose bytes are counted first: variables; the bounds of what the code would be if it
     * were not instrumented; places to patch; inlined methods; awaits */
    enum { PARTS_HEADED = 5 };
    uint32_t bounds_bytes = nibbles_u32(n), others = 1;
    if (form == IL_MAP_PACKED && bounds_bytes == HAS_TWO_BOUNDS)
        others = 2;
    else if (form == IL_MAP_HEADED && bounds_bytes == 0)
        others = PARTS_HEADED;
    if (others > 1)
        bounds_bytes = nibbles_u32(n);
    for (uint32_t i = 0; i < others; i++)
        nibbles_u32(n);
    n->half = false;
    return bounds_bytes;
}

bool il_map_read(struct span bytes, enum il_map_form form, uint64_t code_bytes, struct il_map *out,
                 struct error *err)
{
    struct nibbles n = { .c = cursor_over(bytes) };
    uint32_t bounds_bytes = read_head(&n, form);
    if (!cursor_finish(&n.c, err, "an IL map's head"))
        return false;
    if (bounds_bytes == 0)
        return error_set(err, ERROR_UNSUPPORTED, "code without an IL map");
    struct map_reading r = { .code_bytes = code_bytes };
    bool ok = read_points(&n, form, &r);
    if (!ok || r.map.count == 0) {
        il_map_done(&r.map);
        return error_set(err, ERROR_INPUT, "an IL map that does not fit its code");
    }
    *out = r.map;
    return true;
}

void il_map_done(struct il_map *map)
{
    free(map->points);
    *map = (struct il_map){ 0 };
}

uint32_t il_map_find(const struct il_point *points, size_t count, uint32_t code_off)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points[middle].code_off <= code_off)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return IL_PROLOG;
    /* of several points at one offset the last one has the code; an epilog belongs to the return before it */
    uint32_t il_off = points[low - 1].il_off;
    for (size_t i = low - 1; il_off == IL_EPILOG && i > 0; i--)
        if (points[i - 1].il_off < IL_EPILOG)
            il_off = points[i - 1].il_off;
    return il_off == IL_EPILOG ? IL_NO_MAPPING : il_off;
}
