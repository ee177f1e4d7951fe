#include <stddef.h>
#include <stdint.h>

#include "read/tracepoint_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "pid", "comm", "clone_flags", "" };
    struct span text = span_of(data, size);
    struct tracepoint_field field;
    uint32_t id;
    if (tracepoint_format_id(text, &id) && id > 999999999)
        __builtin_trap();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tracepoint_format_field(text, names[i], &field) && field.offset + field.size > UINT16_MAX)
            __builtin_trap();
    return 0;
}
