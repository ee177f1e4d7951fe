#include <stddef.h>
#include <stdint.h>

#include "read/eh_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eh_frame_iterator it = eh_frame_over(span_of(data, size), 0x1000);
    uint64_t records = 0;
    for (struct eh_fde fde; eh_frame_next(&it, &fde); records++)
        if (fde.instructions.size > size || fde.cie.instructions.size > size)
            __builtin_trap();
    if (records > size / 4)
        __builtin_trap();
    return 0;
}
