#include "clr/managed_string.h"

#include "base/utf16.h"

enum { STRING_LENGTH = 8, STRING_TEXT = 12 };

bool managed_string_read(struct memory_pages *pages, uint64_t addr, unsigned max, struct buffer *out)
{
    uint8_t text[2 * MANAGED_STRING_MAX];
    uint32_t length = addr && addr % 8 == 0 ? memory_pages_u32(pages, addr + STRING_LENGTH) : 0;
    uint32_t most = max < MANAGED_STRING_MAX ? max : MANAGED_STRING_MAX;
    size_t size = 2 * (size_t)(length < most ? length : most);
    if (size == 0 || !memory_pages_read(pages, addr + STRING_TEXT, text, size))
        return false;
    utf16_append_utf8(out, (struct span){ text, size });
    return true;
}
