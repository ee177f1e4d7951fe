#include "clr/nibble_map.h"

enum { NIBBLES = 8, BUCKET_BYTES = 32, NIBBLE_MAX = 8, POINTER_MIN = 9, POINTER_MAX = 12 };

static bool is_pointer(uint32_t number)
{
    return (number & 15) >= POINTER_MIN && (number & 15) <= POINTER_MAX;
}

/* Where something starts in the i-th bucket of a number, from the number's first byte; or -1. */
static int start_in_bucket(uint32_t number, unsigned i)
{
    unsigned nibble = number >> (28 - 4 * i) & 15;
    return nibble == 0 || nibble > NIBBLE_MAX ? -1 : (int)(BUCKET_BYTES * i + 4 * (nibble - 1));
}

bool nibble_map_next(struct span map, bool constant, uint64_t *offset)
{
    uint64_t k = *offset / NIBBLE_MAP_COVERS;
    unsigned from = *offset % NIBBLE_MAP_COVERS;
    for (; k < map.size / 4; k++, from = 0) {
        uint32_t number = load_u32le(map.data + 4 * k);
        if (number == 0 || (constant && is_pointer(number)))
            continue;
        for (unsigned i = from / BUCKET_BYTES; i < NIBBLES; i++) {
            int start = start_in_bucket(number, i);
            if (start >= 0 && (unsigned)start >= from) {
                *offset = k * NIBBLE_MAP_COVERS + (unsigned)start;
                return true;
            }
        }
    }
    return false;
}

/* The last start in number k at or before its byte `last`. */
static bool last_start(struct span map, uint64_t k, unsigned last, uint64_t *out_start)
{
    uint32_t number = load_u32le(map.data + 4 * k);
    for (unsigned i = last / BUCKET_BYTES + 1; number && i-- > 0;) {
        int start = start_in_bucket(number, i);
        if (start >= 0 && (unsigned)start <= last) {
            *out_start = k * NIBBLE_MAP_COVERS + (unsigned)start;
            return true;
        }
    }
    return false;
}

bool nibble_map_find(struct span map, bool constant, uint64_t offset, uint64_t *out_start)
{
    uint64_t k = offset / NIBBLE_MAP_COVERS;
    unsigned last = offset % NIBBLE_MAP_COVERS;
    if (k >= map.size / 4)
        return false;
    /* The constant form needs the number at hand and the one before, the linear one goes back as far as it
     * takes. */
    for (unsigned steps = 0;; steps++, k--, last = NIBBLE_MAP_COVERS - 1) {
        uint32_t number = load_u32le(map.data + 4 * k);
        if (constant && is_pointer(number)) {
            *out_start = (number & ~UINT32_C(15)) + 4 * ((number & 15) - POINTER_MIN);
            return *out_start <= offset;
        }
        if (last_start(map, k, last, out_start))
            return true;
        if (k == 0 || (constant && steps == 1))
            return false;
    }
}

bool nibble_map_starts(uint32_t number, unsigned offset)
{
    return !is_pointer(number) && offset < NIBBLE_MAP_COVERS &&
           start_in_bucket(number, offset / BUCKET_BYTES) == (int)offset;
}

bool nibble_map_is_constant(struct span map)
{
    for (size_t k = 0; k < map.size / 4; k++)
        if (is_pointer(load_u32le(map.data + 4 * k)))
            return true;
    return false;
}
