#include <stddef.h>
#include <stdint.h>

#include "read/unwind_info.h"
#include "unwind/pe_unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span(span_of(data, size));
    struct pe_unwind *image;
    uint64_t bias;
    if (!pe_unwind_open(&file, &image, NULL))
        return 0;
    pe_unwind_bias(image, 0x10000, 0x200, &bias);
    for (uint64_t rva = 0; rva < 0x4000; rva += 13) {
        struct unwind_function function;
        struct frame_rule rule;
        if (!pe_unwind_find(image, rva, &function))
            continue;
        if (rva < function.begin || rva >= function.end)
            __builtin_trap();
        unwind_info_rule(function.info, (uint32_t)(rva - function.begin), &rule);
    }
    pe_unwind_close(image);
    return 0;
}
