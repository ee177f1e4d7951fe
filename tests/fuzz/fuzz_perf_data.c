/* Input: a perf.data file or the output of `perf record -o -`. */
#include <stdlib.h>

#include "read/perf_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool see(void *user, uint32_t event, const struct perf_record *r, struct error *err)
{
    const struct perf_data *p = user;
    uint64_t into[64];
    (void)err;
    if (p->header.event_count && event >= p->header.event_count)
        abort();
    if (r->type == PERF_RECORD_SAMPLE)
        perf_callchain_split(r->sample.callchain, into, 64);
    return true;
}

static void settle(void *user)
{
    (void)user;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct byte_stream stream;
    struct perf_data p;
    byte_stream_over(&stream, span_of(data, size), 1 << 16);
    if (perf_data_open(&p, &stream, NULL)) {
        perf_data_read(&p, see, settle, &p, NULL);
        if (p.stats.samples > p.stats.records)
            abort();
        perf_data_close(&p);
    }
    byte_stream_close(&stream);
    return 0;
}
