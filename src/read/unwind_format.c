#include "read/unwind_format.h"

#include "read/unwind_info.h"
#include "read/unwind_info_arm64.h"

/* u32 begin, u32 end, u32 info */

static uint32_t x64_info_at(const uint8_t *entry)
{
    return load_u32le(entry + 8);
}

static uint32_t x64_function_end(const uint8_t *entry, const uint8_t *header)
{
    (void)header;
    return load_u32le(entry + 4);
}

const struct unwind_format unwind_format_x64 = {
    .entry_bytes = 12,
    .header_bytes = UNWIND_INFO_HEADER_BYTES,
    .info_bytes_max = UNWIND_INFO_BYTES_MAX,
    .info_at = x64_info_at,
    .info_bytes = unwind_info_bytes,
    .function_end = x64_function_end,
    .rule = unwind_info_rule,
};

/* u32 begin, u32 info, or packed */

static uint32_t arm64_info_at(const uint8_t *entry)
{
    uint32_t word = load_u32le(entry + 4);
    return unwind_info_arm64_is_packed(word) ? 0 : word;
}

static uint32_t arm64_function_end(const uint8_t *entry, const uint8_t *header)
{
    uint32_t begin = load_u32le(entry), word = load_u32le(entry + 4), size = 0;
    if (unwind_info_arm64_is_packed(word))
        size = unwind_info_arm64_packed_function_bytes(word);
    else if (header)
        size = unwind_info_arm64_function_bytes(load_u32le(header));
    return size > UINT32_MAX - begin ? UINT32_MAX : begin + size;
}

const struct unwind_format unwind_format_arm64 = {
    .entry_bytes = 8,
    .header_bytes = UNWIND_INFO_ARM64_HEADER_BYTES,
    .info_bytes_max = UNWIND_INFO_ARM64_BYTES_MAX,
    .info_at = arm64_info_at,
    .info_bytes = unwind_info_arm64_bytes,
    .function_end = arm64_function_end,
    .rule = unwind_info_arm64_rule,
};

_Static_assert((int)UNWIND_INFO_ARM64_BYTES_MAX <= (int)UNWIND_FORMAT_INFO_BYTES_MAX, "as its comment says");

const struct unwind_format *unwind_format_of(enum pe_machine machine)
{
    return machine == PE_MACHINE_X64     ? &unwind_format_x64
           : machine == PE_MACHINE_ARM64 ? &unwind_format_arm64
                                         : NULL;
}
