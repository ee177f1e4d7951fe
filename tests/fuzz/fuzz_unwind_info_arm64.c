#include <stddef.h>
#include <stdint.h>

#include "read/unwind_info_arm64.h"
#include "unwind/arm64_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_rule rule;
    struct span record = span_of(data, size);
    if (size >= UNWIND_INFO_ARM64_HEADER_BYTES && unwind_info_arm64_bytes(data) > UNWIND_INFO_ARM64_BYTES_MAX)
        __builtin_trap();
    for (uint32_t off = 0; off < 400; off += 4)
        if (unwind_info_arm64_rule(record, off, &rule) &&
            (rule.cfa != FRAME_CFA_OFFSET || (rule.ra != FRAME_AT_CFA && rule.ra != FRAME_SAME) ||
             (rule.fp != FRAME_AT_CFA && rule.fp != FRAME_SAME)))
            __builtin_trap();
    arm64_is_after_call(record);
    arm64_bare_depth(record, record);
    arm64_is_signal_return(record);
    return 0;
}
