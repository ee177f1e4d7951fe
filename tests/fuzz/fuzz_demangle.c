#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1);
    struct buffer out;
    if (!name)
        return 0;
    memcpy(name, data, size);
    name[size] = 0;
    buffer_init(&out, 2 * DEMANGLED_BYTES_MAX);
    if (demangle(name, &out) && strlen((const char *)out.data) >= out.size)
        __builtin_trap();
    buffer_done(&out);
    free(name);
    return 0;
}
