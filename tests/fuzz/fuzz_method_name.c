/* A raw name, a NUL, its type parameters. Shown names hold no control bytes and stay as they are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clr/method_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span raw = { data, strnlen((const char *)data, size) };
    char type_params[256] = "";
    if (raw.size < size) {
        size_t left = size - raw.size - 1;
        memcpy(type_params, data + raw.size + 1, left < sizeof type_params ? left : sizeof type_params - 1);
    }
    struct buffer once, twice;
    buffer_init(&once, 1 << 16);
    buffer_init(&twice, 1 << 16);
    method_name_is_managed(raw);
    method_name_show(raw, type_params, &once);
    for (size_t i = 0; i < once.size; i++)
        require(once.data[i] >= 0x20 && once.data[i] != 0x7f);
    if (!once.failed) {
        method_name_show(buffer_span(&once), type_params, &twice);
        require(span_equals(buffer_span(&once), buffer_span(&twice)));
    }
    buffer_done(&once);
    buffer_done(&twice);
    return 0;
}
