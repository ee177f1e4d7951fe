/* Input: a perf.data file; what it says must leave a trace whose ids all lead somewhere. */
#include <stdlib.h>

#include "../trace_ids.h"
#include "import/perf_data_import.h"
#include "read/perf_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Looks at all that a sample carries, and makes a frame of each word. */
enum { FRAMES_MAX = 64 };

static uint64_t frames[FRAMES_MAX];

static void *frames_open(struct trace_builder *b, const struct import_machine *machine)
{
    (void)b;
    return machine->arch && machine->kernel ? frames : NULL;
}

static void frames_mapped(void *unwinder, uint32_t process, uint64_t addr)
{
    (void)unwinder;
    (void)process;
    (void)addr;
}

static bool frames_run(void *unwinder, uint32_t process, const struct perf_sample *sample,
                       struct raw_sample *raw)
{
    (void)unwinder;
    size_t count = 0;
    for (size_t at = 0; at + 8 <= sample->user_stack.size && count < FRAMES_MAX; at += 8)
        frames[count++] = load_u64le(sample->user_stack.data + at);
    for (size_t at = 0; at + 8 <= sample->user_regs.size && count < FRAMES_MAX; at += 8)
        frames[count++] = load_u64le(sample->user_regs.data + at);
    raw->user = frames;
    raw->user_count = count;
    raw->end = process % 2 ? STACK_WHOLE : STACK_BROKEN;
    return true;
}

static void frames_close(void *unwinder)
{
    (void)unwinder;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct import_unwinder unwinder = {
        .open = frames_open, .mapped = frames_mapped, .run = frames_run, .close = frames_close
    };
    static const struct import_options options = { .unwinder = &unwinder };
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
