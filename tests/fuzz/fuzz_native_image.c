#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbolize/native_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source file = source_over_span(span_of(data, size));
    struct native_image *image;
    if (!native_image_open(&file, "/a/libcoreclr.so", NULL, &image, NULL))
        return 0;
    for (uint64_t off = 0x280; off < 0x400; off += 8) {
        struct code_name name;
        uint64_t start;
        if (native_image_find(image, off, &name, &start) && strlen(name.name) == SIZE_MAX)
            __builtin_trap();
    }
    native_image_close(image);
    return 0;
}
