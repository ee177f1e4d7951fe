#include "analyse/url_pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HEX_ID_MIN = 16 };

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_id(struct span segment)
{
    size_t digits = 0;
    for (size_t i = 0; i < segment.size; i++) {
        uint8_t c = segment.data[i];
        if (!is_digit(c) && !is_hex_letter(c) && c != '-')
            return false;
        digits += is_digit(c);
    }
    return digits && (digits == segment.size || segment.size >= HEX_ID_MIN);
}

void url_pattern_append(struct buffer *out, struct span path)
{
    while (path.size) {
        const uint8_t *slash = memchr(path.data + 1, '/', path.size - 1);
        size_t size = slash ? (size_t)(slash - path.data) : path.size;
        if (*path.data == '/' && is_id((struct span){ path.data + 1, size - 1 }))
            buffer_string(out, "/{id}");
        else
            buffer_append(out, path.data, size);
        path.data += size;
        path.size -= size;
    }
}
