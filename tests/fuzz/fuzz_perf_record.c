/* Input: which fields the event has (three words, one byte of flags), then records back to back. */
#include <stdlib.h>

#include "base/cursor.h"
#include "read/perf_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cursor c = cursor_over(span_of(data, size));
    struct perf_event_attr attr = { 0 };
    attr.sample_type = cursor_u64le(&c);
    attr.read_format = cursor_u64le(&c);
    attr.branch_sample_type = cursor_u64le(&c);
    attr.sample_regs_user = cursor_u8(&c);
    attr.sample_id_all = cursor_u8(&c) & 1;
    struct perf_sample_layout layout = perf_sample_layout_of(&attr);
    while (cursor_left(&c)) {
        struct span bytes = span_of(data + c.pos, size - c.pos);
        struct perf_record r;
        uint64_t into[16];
        if (perf_record_decode(bytes, &layout, &r, NULL) && r.type == PERF_RECORD_SAMPLE) {
            struct perf_callchain chain = perf_callchain_split(r.sample.callchain, into, 16);
            if (chain.kernel_count + chain.user_count > 16)
                abort();
        }
        uint64_t sum = perf_record_time_ns(bytes, &layout) + perf_record_event_id(bytes, &layout);
        cursor_skip(&c, bytes.size >= 8 && bytes.data[6] ? bytes.data[6] : 8 + sum % 2);
    }
    return 0;
}
