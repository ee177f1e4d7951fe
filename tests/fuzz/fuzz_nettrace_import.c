/*
 * Input: a nettrace or NetPerf file; what it says must leave a trace whose ids all lead somewhere. What a
 * sampler saw adds up to the same when runs of it are one row each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../trace_ids.h"
#include "import/nettrace_import.h"
#include "trace/facts.h"

struct sums {
    uint64_t samples, weight_ns;
    char states[64];
};

static bool read_file(struct span file, const struct import_options *options, struct sums *out)
{
    struct byte_stream stream;
    struct trace_builder b;
    byte_stream_over(&stream, file, 1 << 16);
    trace_builder_init(&b, 64);
    const struct trace *t = &b.trace;
    bool ok = nettrace_import(&stream, options, &b, NULL);
    if (ok && !trace_ids_lead_somewhere(t))
        abort();
    *out = (struct sums){ 0 };
    for (size_t i = 0; i < t->samples.count; i++) {
        out->samples += t->samples.runs ? t->samples.runs[i].samples : 1;
        out->weight_ns += t->samples.weight[i];
    }
    if (trace_fact_value(t, FACT_WALL_STATES))
        snprintf(out->states, sizeof out->states, "%s", trace_fact_value(t, FACT_WALL_STATES));
    trace_builder_done(&b);
    byte_stream_close(&stream);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct import_options options[] = { { 0 },
                                                     { .wants = import_wants_samples },
                                                     { .wants = import_wants_samples, .runs = true } };
    struct sums each, other;
    bool ok = read_file(span_of(data, size), &options[0], &each);
    for (size_t i = 1; i < sizeof options / sizeof *options; i++)
        if (read_file(span_of(data, size), &options[i], &other) != ok ||
            memcmp(&each, &other, sizeof each) != 0)
            abort();
    return 0;
}
