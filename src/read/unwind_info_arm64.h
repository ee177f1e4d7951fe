/*
 * unwind_info_arm64: what a compiled method's unwind data says of its frame, on arm64.
 *
 * The .NET JIT and crossgen2 describe arm64 frames in Windows' form on Linux too: a record (.xdata) has one
 * code for each instruction of the prolog, the last one first, and of each epilog. Specified by Microsoft,
 * "ARM64 exception handling"; what the runtime writes in dotnet/runtime, src/coreclr/jit/unwindarm64.cpp.
 */
#ifndef CLRPERF_READ_UNWIND_INFO_ARM64_H
#define CLRPERF_READ_UNWIND_INFO_ARM64_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "read/frame_rule.h"

enum {
    UNWIND_INFO_ARM64_HEADER_BYTES = 8,
    UNWIND_INFO_ARM64_EPILOGS_MAX = 1024,
    UNWIND_INFO_ARM64_BYTES_MAX =
        UNWIND_INFO_ARM64_HEADER_BYTES + 4 * UNWIND_INFO_ARM64_EPILOGS_MAX + 4 * UINT8_MAX,
};

/*
 * The second word of a runtime function is where its record is, or, marked in the two lowest bits, all that
 * there is to say of a frame of standard form. crossgen2 writes no such word (0 in 4,547 functions of .NET
 * 10), so only the function's length is taken from it.
 */
static inline bool unwind_info_arm64_is_packed(uint32_t word)
{
    return word & 3;
}

/* The length in bytes of a function with a packed word. */
static inline uint32_t unwind_info_arm64_packed_function_bytes(uint32_t word)
{
    return (word >> 2 & 0x7ff) * 4;
}

/* The length in bytes of the function whose record starts with `word`. */
static inline uint32_t unwind_info_arm64_function_bytes(uint32_t word)
{
    return (word & 0x3ffff) * 4;
}

/* The length of a record, without what it has for exception handlers; 0 when it has too many epilogs. */
uint32_t unwind_info_arm64_bytes(const uint8_t header[UNWIND_INFO_ARM64_HEADER_BYTES]);

/*
 * The rule `code_off` bytes behind the function's start: in its prolog what was done by then counts, in an
 * epilog what is left to do. The return address is in the link register (FRAME_SAME) where it was not saved.
 * False when the record is damaged, of another version than 0, or has a code that is not known.
 */
bool unwind_info_arm64_rule(struct span record, uint32_t code_off, struct frame_rule *out);

#endif
