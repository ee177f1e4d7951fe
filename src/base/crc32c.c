#include "base/crc32c.h"

#include <string.h>

/* One bit at a time, for processors without the instruction. */
static uint32_t crc32c_portable(uint32_t crc, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const uint8_t *bytes,
                                                               size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size; bytes++, size--)
        crc = __builtin_ia32_crc32qi(crc, *bytes);
    return crc;
}
#endif

uint32_t crc32c(uint32_t seed, const void *bytes, size_t size)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_sse42(~seed, bytes, size);
#endif
    return ~crc32c_portable(~seed, bytes, size);
}
