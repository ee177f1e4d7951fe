/*
 * unwind_info: what a compiled method's UNWIND_INFO says of its frame.
 *
 * The .NET JIT and crossgen2 describe x64 frames in Windows' form on Linux too: a header and one code for
 * each prolog instruction that moves the stack pointer or saves a register, the last one first. Specified by
 * Microsoft, "x64 exception handling", with the runtime's own code 11 (dotnet/runtime,
 * src/coreclr/inc/win64unwind.h).
 */
#ifndef CLRPERF_READ_UNWIND_INFO_H
#define CLRPERF_READ_UNWIND_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/frame_rule.h"

enum {
    UNWIND_INFO_HEADER_BYTES = 4,
    UNWIND_INFO_BYTES_MAX = UNWIND_INFO_HEADER_BYTES + 2 * 255,
};

/* The length of the whole, header and codes, as its first four bytes tell. */
static inline uint32_t unwind_info_bytes(const uint8_t header[UNWIND_INFO_HEADER_BYTES])
{
    return UNWIND_INFO_HEADER_BYTES + 2u * header[2];
}

/*
 * The rule `code_off` bytes behind the function's start: in its prolog only what was done by then counts. An
 * epilog does not show here. False when the info is damaged, of another version than 1, or chained to
 * another.
 */
bool unwind_info_rule(struct span info, uint32_t code_off, struct frame_rule *out);

#endif
