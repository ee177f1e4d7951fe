/* The capture reader: any bytes give an error or a trace whose references all hold. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/profile.h"
#include "base/crc32c.h"
#include "trace/format.h"
#include "trace/trace_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes the checksums right, so that what is behind them is reached: a block may start at every eighth byte.
 */
static void repair(uint8_t *bytes, size_t size)
{
    if (size < FORMAT_HEADER_BYTES)
        return;
    uint32_t seed = crc32c(0, bytes, FORMAT_HEADER_BYTES - 4);
    memcpy(bytes + FORMAT_HEADER_BYTES - 4, &seed, 4);
    for (size_t at = FORMAT_HEADER_BYTES; size - at >= FORMAT_BLOCK_HEADER_BYTES; at += FORMAT_BLOCK_ALIGN) {
        uint32_t stored = load_u32le(bytes + at + 12);
        if (load_u32le(bytes + at) != FORMAT_BLOCK_MAGIC || stored > size - at - FORMAT_BLOCK_HEADER_BYTES)
            continue;
        uint32_t crc = crc32c(crc32c(seed, bytes + at, 28), bytes + at + FORMAT_BLOCK_HEADER_BYTES, stored);
        memcpy(bytes + at + 28, &crc, 4);
    }
}

static void read_all(struct span bytes)
{
    struct source file = source_over_span(bytes);
    struct trace t;
    struct error err;
    if (!trace_reader_load(&file, &t, &err))
        return;
    for (uint32_t i = STACK_ROOTS; i < t.stacks.count; i++)
        assert(t.stacks.rows[i].parent < i && t.stacks.rows[i].location < t.locations.count);
    for (uint32_t i = 1; i < t.events.count; i++) {
        const struct trace_event *event = &t.events.rows[i];
        assert(event->type < t.event_types.count && event->process < t.processes.count &&
               event->thread < t.threads.count && event->stack < t.stacks.count);
        assert(trace_event_payload(&t, event).size == event->payload_bytes);
    }
    struct profile *p;
    if (profile_build(&t, &(struct profile_options){ 0 }, &p, &err)) {
        assert(p->sample_count <= t.samples.count);
        profile_free(p);
    }
    trace_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(span_of(data, size));
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    repair(copy, size);
    read_all(span_of(copy, size));
    free(copy);
    return 0;
}
