/* Input: a nettrace or NetPerf file; what it says must leave a trace whose ids all lead somewhere. */
#include <stdlib.h>

#include "import/nettrace_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct trace *t)
{
    for (size_t i = 0; i < t->samples.count; i++)
        if (t->samples.thread[i] >= t->threads.count || t->samples.stack[i] >= t->stacks.count)
            abort();
    for (size_t i = 1; i < t->events.count; i++)
        if (t->events.rows[i].type >= t->event_types.count || t->events.rows[i].stack >= t->stacks.count ||
            t->events.rows[i].thread >= t->threads.count || t->events.rows[i].process >= t->processes.count)
            abort();
    for (size_t i = STACK_ROOTS; i < t->stacks.count; i++)
        if (t->stacks.rows[i].parent >= i || t->stacks.rows[i].location >= t->locations.count)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct import_options options;
    struct byte_stream stream;
    struct trace_builder b;
    byte_stream_over(&stream, span_of(data, size), 1 << 16);
    trace_builder_init(&b, 64);
    if (nettrace_import(&stream, &options, &b, NULL))
        check(&b.trace);
    trace_builder_done(&b);
    byte_stream_close(&stream);
    return 0;
}
