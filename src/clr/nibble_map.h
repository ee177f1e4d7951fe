/*
 * nibble_map: the runtime's note of where code starts in a heap of machine code.
 *
 * An array of u32; number k covers 256 bytes of code as eight nibbles, the most significant one first, one
 * for 32 bytes each: 0 = nothing starts there, n = 1..8 = something starts at byte 4 * (n - 1). In the
 * constant form (10 and later) a number that one method covers wholly is a pointer instead, marked by a low
 * nibble of 9 to 12: that method starts at (number & ~15) + 4 * (low nibble - 9). Source:
 * src/coreclr/inc/nibblemapmacros.h and docs/design/datacontracts/ExecutionManager.md in dotnet/runtime.
 */
#ifndef CLRPERF_CLR_NIBBLE_MAP_H
#define CLRPERF_CLR_NIBBLE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

enum { NIBBLE_MAP_COVERS = 256 }; /* bytes of code, by one u32 */

/* The first start at or behind *offset (bytes from the map's base), which is set to it. False when there is
 * none. */
bool nibble_map_next(struct span map, bool constant, uint64_t *offset);
/* The last start at or before `offset`: what the byte belongs to, if it is not beyond the end of that. */
bool nibble_map_find(struct span map, bool constant, uint64_t offset, uint64_t *out_start);
/* Whether a number of the map says that something starts there, `offset` bytes into what it covers. */
bool nibble_map_starts(uint32_t number, unsigned offset);
/* Whether some number can only be of the constant form. */
bool nibble_map_is_constant(struct span map);

#endif
