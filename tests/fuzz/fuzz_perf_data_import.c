/* Input: a perf.data file; what it says must leave a trace whose ids all lead somewhere. */
#include <stdlib.h>

#include "../trace_ids.h"
#include "import/perf_data_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct import_options options;
    struct byte_stream stream;
    struct trace_builder b;
    byte_stream_over(&stream, span_of(data, size), 1 << 16);
    trace_builder_init(&b, 64);
    if (perf_data_import(&stream, &options, &b, NULL) && !trace_ids_lead_somewhere(&b.trace))
        abort();
    trace_builder_done(&b);
    byte_stream_close(&stream);
    return 0;
}
