/*
 * crc32c: the Castagnoli checksum (RFC 3720, appendix B.4).
 */
#ifndef CLRPERF_BASE_CRC32C_H
#define CLRPERF_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* `seed`: 0, or the result for the bytes before these. */
uint32_t crc32c(uint32_t seed, const void *bytes, size_t size);

#endif
