#include <stddef.h>
#include <stdint.h>

#include "read/unwind_info.h"
#include "unwind/x64_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_rule rule;
    for (uint32_t off = 0; off < 300; off += 7)
        if (unwind_info_rule(span_of(data, size), off, &rule) &&
            (rule.cfa != FRAME_CFA_OFFSET || rule.ra != FRAME_AT_CFA || rule.ra_off != -8))
            __builtin_trap();
    if (x64_epilog(span_of(data, size), 0x1800, 0x1000, 0x2000, &rule) && rule.ra_off != -8)
        __builtin_trap();
    x64_is_after_call(span_of(data, size));
    x64_bare_depth(span_of(data, size / 2), span_of(data + size / 2, size - size / 2));
    return 0;
}
