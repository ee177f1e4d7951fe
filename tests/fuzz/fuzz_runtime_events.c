#include <stdint.h>

#include "clr/runtime_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* First byte: the version and whether the payload is verbose. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct span payload = span_of(data + 1, size - 1);
    struct runtime_method_event method;
    struct runtime_module_event module;
    struct runtime_gc_start_event start;
    struct runtime_gc_end_event end;
    uint32_t reason;
    struct buffer text;
    buffer_init(&text, 256);
    if (runtime_method_event_read(payload, data[0] & 3, data[0] & 4, &method, NULL)) {
        runtime_method_tier(&method);
        runtime_method_append_name(&text, &method);
    }
    runtime_module_event_read(payload, data[0] & 3, &module, NULL);
    runtime_gc_start_read(payload, &start, NULL);
    runtime_gc_end_read(payload, &end, NULL);
    runtime_suspend_begin_read(payload, &reason, NULL);
    buffer_done(&text);
    return 0;
}
