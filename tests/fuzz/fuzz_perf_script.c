/* Input: a text; every line is read as both of the text formats, and the whole as each. */
#include <stdlib.h>

#include "import/folded_import.h"
#include "import/perf_script_import.h"
#include "read/folded.h"
#include "read/perf_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef bool import_fn(struct byte_stream *stream, const struct import_options *options,
                       struct trace_builder *b, struct error *err);

static void import(import_fn *fn, struct span text)
{
    static const struct import_options options;
    struct byte_stream stream;
    struct trace_builder b;
    byte_stream_over(&stream, text, 1 << 12);
    trace_builder_init(&b, 64);
    fn(&stream, &options, &b, NULL);
    trace_builder_done(&b);
    byte_stream_close(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of(data, size);
    perf_script_recognises(text);
    folded_recognises(text);
    import(perf_script_import, text);
    import(folded_import, text);
    return 0;
}
