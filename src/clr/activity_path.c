#include "clr/activity_path.h"

#include <string.h>

#include "base/cursor.h"

enum {
    NIBBLES = 2 * ACTIVITY_PATH_BYTES,
    CODE_LAST_NUMBER = 10,
    CODE_OVERFLOW = 11, /* the next code belongs to it */
    CODE_ONE_BYTE = 12, /* and so on up to 15: four bytes */
    PID_MAX = 1 << 22,
};

static const uint32_t checksum_base = 0x599d99ad;

static unsigned nibble_at(const struct activity_path *path, unsigned at)
{
    uint8_t byte = path->bytes[at / 2];
    return at % 2 ? byte & 0xf : byte >> 4;
}

/* Where the number at `at` ends; `at` itself: there is none. */
static unsigned number_end(const struct activity_path *path, unsigned at)
{
    unsigned code = nibble_at(path, at), begin = at;
    if (code == 0)
        return at;
    if (code <= CODE_LAST_NUMBER)
        return at + 1;
    if (code == CODE_OVERFLOW && ++at < NIBBLES)
        code = nibble_at(path, at);
    if (code < CODE_ONE_BYTE)
        return begin;
    /* bytes begin at a whole one; a code in its upper half can have four more bits in the lower one */
    unsigned byte = at / 2 + 1, count = code - CODE_ONE_BYTE + 1;
    if (at % 2 == 0 && code == CODE_ONE_BYTE && (path->bytes[at / 2] & 0xf))
        count++; /* a second byte is written, though it is empty */
    return 2 * (byte + count) < NIBBLES ? 2 * (byte + count) : NIBBLES;
}

bool activity_path_is_none(const struct activity_path *path)
{
    static const struct activity_path none;
    return memcmp(path, &none, sizeof none) == 0;
}

/* Checksums of old runtimes leave the process out, others hold its number as the process itself knows it. */
bool activity_path_read(const uint8_t id[ACTIVITY_ID_BYTES], struct activity_path *out)
{
    struct cursor c = cursor_over((struct span){ id, ACTIVITY_ID_BYTES });
    uint32_t sum = checksum_base;
    for (unsigned i = 0; i < ACTIVITY_PATH_BYTES / 4; i++)
        sum += cursor_u32le(&c);
    if ((sum ^ cursor_u32le(&c)) > PID_MAX)
        return false;
    struct activity_path path;
    memcpy(path.bytes, id, sizeof path.bytes);
    if (activity_path_is_none(&path))
        return false;
    *out = path;
    return true;
}

struct activity_path activity_path_parent(const struct activity_path *path)
{
    struct activity_path parent = { { 0 } };
    unsigned at = 0, last = 0;
    while (at < NIBBLES) {
        unsigned end = number_end(path, at);
        if (end == at)
            break;
        last = at;
        at = end;
    }
    memcpy(parent.bytes, path->bytes, last / 2);
    if (last % 2)
        parent.bytes[last / 2] = path->bytes[last / 2] & 0xf0;
    return parent;
}
