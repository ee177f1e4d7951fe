#include "clr/precode.h"

#include <string.h>

#include "base/own.h"

static const struct {
    uint8_t bytes[7];
    uint8_t size;
    uint16_t method; /* of the MethodDesc, from the start */
} patterns[] = {
    { { 0xff, 0x25, 0xfa, 0x3f, 0, 0 }, 6, PRECODE_PAGE_BYTES + 8 },   /* fixup precode */
    { { 0x4c, 0x8b, 0x15, 0xf9, 0x3f, 0, 0 }, 7, PRECODE_PAGE_BYTES }, /* stub precode */
};

bool precode_read(struct memory_pages *pages, uint64_t addr, struct precode *out)
{
    uint8_t code[7];
    if (!memory_pages_read(pages, addr, code, sizeof code))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (memcmp(code, patterns[i].bytes, patterns[i].size) == 0) {
            *out = (struct precode){ addr, memory_pages_u64(pages, addr + patterns[i].method) };
            return true;
        }
    return false;
}

bool precode_find(struct memory_pages *pages, uint64_t addr, struct precode *out)
{
    uint64_t offset = addr % PRECODE_PAGE_BYTES;
    return precode_read(pages, addr - offset % PRECODE_BYTES, out);
}
