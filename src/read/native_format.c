#include "read/native_format.h"

enum { BLOCK = 16 /* array elements that share one entry of the index */ };

/* The value with its tag removed, and how many bits it has. */
static uint32_t read_tagged(struct cursor *c, unsigned *out_bits)
{
    uint32_t first = cursor_u8(c);
    *out_bits = 32;
    if ((first & 0x1) == 0) {
        *out_bits = 7;
        return first >> 1;
    }
    if ((first & 0x2) == 0) {
        *out_bits = 14;
        return first >> 2 | (uint32_t)cursor_u8(c) << 6;
    }
    if ((first & 0x4) == 0) {
        *out_bits = 21;
        return first >> 3 | (uint32_t)cursor_u16le(c) << 5;
    }
    if ((first & 0x8) == 0) {
        *out_bits = 28;
        uint32_t low = cursor_u16le(c);
        return first >> 4 | low << 4 | (uint32_t)cursor_u8(c) << 20;
    }
    if ((first & 0x10) == 0)
        return cursor_u32le(c);
    c->failed = true;
    return 0;
}

uint32_t cursor_native_uint(struct cursor *c)
{
    unsigned bits;
    uint32_t value = read_tagged(c, &bits);
    return cursor_ok(c) ? value : 0;
}

int32_t cursor_native_int(struct cursor *c)
{
    unsigned bits;
    uint32_t value = read_tagged(c, &bits);
    if (!cursor_ok(c))
        return 0;
    if (bits < 32 && value >> (bits - 1))
        value |= UINT32_MAX << bits;
    return (int32_t)value;
}

static uint32_t read_index(struct cursor *c, unsigned width)
{
    return width == 1 ? cursor_u8(c) : width == 2 ? cursor_u16le(c) : cursor_u32le(c);
}

bool native_array_open(struct span bytes, struct native_array *out, struct error *err)
{
    static const uint8_t widths[] = { 1, 2, 4, 4 };
    struct cursor c = cursor_over(bytes);
    uint32_t header = cursor_native_uint(&c);
    if (!cursor_finish(&c, err, "NativeArray"))
        return false;
    *out = (struct native_array){ bytes, (uint32_t)c.pos, header >> 2, widths[header & 3] };
    return true;
}

/*
 * Below an entry of the index is a binary tree over the four low bits of the element's number, highest
 * first. A node is an integer: bit 0 says that there is a left child (right behind it), bit 1 that there
 * is a right child (at the node plus the rest); with neither, the node is the block's only element, whose
 * number the rest holds.
 */
bool native_array_find(const struct native_array *array, uint32_t index, struct cursor *out)
{
    if (index >= array->count)
        return false;
    struct cursor c = cursor_over(array->bytes);
    cursor_seek(&c, (uint64_t)array->start + (uint64_t)array->index_width * (index / BLOCK));
    uint32_t block = read_index(&c, array->index_width);
    cursor_seek(&c, (uint64_t)array->start + block);
    for (uint32_t bit = BLOCK / 2; bit; bit >>= 1) {
        uint64_t node = c.pos;
        uint32_t value = cursor_native_uint(&c);
        if (!cursor_ok(&c))
            return false;
        if (index & bit) {
            if (value & 2) {
                cursor_seek(&c, node + (value >> 2));
                continue;
            }
        } else if (value & 1) {
            continue;
        }
        if ((value & 3) != 0 || value >> 2 != (index & (BLOCK - 1)))
            return false;
        break;
    }
    *out = c;
    return cursor_ok(&c);
}

struct array_walk {
    const struct native_array *array;
    native_array_fn *each;
    void *user;
};

static bool walk_tell(const struct array_walk *w, uint32_t index, struct cursor at)
{
    return index >= w->array->count || w->each(w->user, index, at);
}

/* What is below a node, at the cursor, of the elements `first` to `first + 2 * bit - 1`; without a bit the
 * cursor is at `first` itself. */
static bool walk_node(const struct array_walk *w, struct cursor c, uint32_t first, uint32_t bit)
{
    if (bit == 0)
        return walk_tell(w, first, c);
    uint64_t node = c.pos;
    uint32_t value = cursor_native_uint(&c), rest = value >> 2;
    if (!cursor_ok(&c))
        return true;
    if ((value & 3) == 0) {
        uint32_t index = first - first % BLOCK + rest;
        return rest >= BLOCK || index / bit / 2 != first / bit / 2 || walk_tell(w, index, c);
    }
    if ((value & 1) && !walk_node(w, c, first, bit / 2))
        return false;
    if (value & 2)
        cursor_seek(&c, node + rest);
    return !(value & 2) || !cursor_ok(&c) || walk_node(w, c, first + bit, bit / 2);
}

bool native_array_each(const struct native_array *array, native_array_fn *each, void *user)
{
    struct array_walk walk = { array, each, user };
    for (uint32_t block = 0; block < (array->count + UINT64_C(0) + BLOCK - 1) / BLOCK; block++) {
        struct cursor c = cursor_over(array->bytes);
        cursor_seek(&c, (uint64_t)array->start + (uint64_t)array->index_width * block);
        uint32_t offset = read_index(&c, array->index_width);
        if (!cursor_ok(&c)) /* nor is any behind it */
            return true;
        cursor_seek(&c, (uint64_t)array->start + offset);
        if (cursor_ok(&c) && !walk_node(&walk, c, block * BLOCK, BLOCK / 2))
            return false;
    }
    return true;
}

/* One entry: the low byte of the hash, then how far behind itself the target lies. */
static bool read_entry(struct cursor *c, struct cursor *out_target)
{
    cursor_u8(c);
    int64_t from = (int64_t)c->pos;
    int64_t target = from + cursor_native_int(c);
    if (!cursor_ok(c) || target < 0)
        return false;
    *out_target = cursor_over(c->bytes);
    cursor_seek(out_target, (uint64_t)target);
    return cursor_ok(out_target);
}

bool native_hashtable_each(struct span bytes, native_hashtable_fn *each, void *user, struct error *err)
{
    static const uint8_t widths[] = { 1, 2, 4, 4 };
    struct cursor c = cursor_over(bytes);
    uint8_t header = cursor_u8(&c);
    unsigned width = widths[header & 3];
    unsigned shift = header >> 2;
    if (!cursor_ok(&c) || shift > 31 || (1ull << shift) + 1 > cursor_left(&c) / width)
        return error_set(err, ERROR_INPUT, "hash table: %u bits of buckets do not fit", shift);
    for (uint64_t bucket = 0; bucket < 1ull << shift; bucket++) {
        cursor_seek(&c, 1 + width * bucket);
        uint64_t start = 1 + (uint64_t)read_index(&c, width);
        uint64_t end = 1 + (uint64_t)read_index(&c, width);
        if (start > end) /* else overlapping buckets could make this quadratic */
            return error_set(err, ERROR_INPUT, "hash table: bucket %u ends before it starts",
                             (unsigned)bucket);
        cursor_seek(&c, start);
        while (cursor_ok(&c) && c.pos < end) {
            struct cursor target;
            if (!read_entry(&c, &target))
                return error_set(err, ERROR_INPUT, "hash table: bucket %u is damaged", (unsigned)bucket);
            if (!each(user, target))
                return false;
        }
        if (!cursor_ok(&c))
            return error_set(err, ERROR_INPUT, "hash table: bucket %u lies outside", (unsigned)bucket);
    }
    return true;
}
