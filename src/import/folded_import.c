#include "import/folded_import.h"

#include <inttypes.h>

#include "base/own.h"
#include "import/import_note.h"
#include "read/folded.h"
#include "trace/facts.h"

static enum code_kind kind_of(char annotation)
{
    switch (annotation) {
    case 'k':
        return CODE_KERNEL;
    case 'j':
    case 'i':
        return CODE_JIT;
    case 'n':
        return CODE_NATIVE;
    default:
        return CODE_UNKNOWN;
    }
}

static void take_stack(struct trace_builder *b, uint32_t thread, const struct folded_line *line)
{
    uint32_t functions[TRACE_STACK_DEPTH_MAX + 1];
    size_t count = 0;
    struct span stack = line->stack, name;
    char annotation;
    while (folded_next_frame(&stack, &name, &annotation)) {
        if (count == ARRAY_LEN(functions)) {
            /* one more than fits tells the builder that it is cut; the leaf's end is what counts */
            for (size_t i = 1; i < count; i++)
                functions[i - 1] = functions[i];
            count--;
        }
        struct trace_function f = { .name = intern_add(&b->trace.strings, name),
                                    .kind = (uint8_t)kind_of(annotation) };
        functions[count++] = trace_builder_function(b, &f);
    }
    uint32_t id = trace_builder_named_stack(b, functions, count);
    trace_push_sample(&b->trace.samples, 0, thread, id, line->count, SAMPLE_CPU, 0);
}

bool folded_import(struct byte_stream *stream, const struct import_options *options, struct trace_builder *b,
                   struct error *err)
{
    struct trace *t = &b->trace;
    uint32_t thread = trace_builder_thread(b, 0, 0, 0);
    uint64_t malformed = 0;
    (void)options;
    for (;;) {
        struct span text;
        struct folded_line line;
        bool any;
        if (!byte_stream_line(stream, &text, &any, err))
            return false;
        if (!any)
            break;
        if (text.size == 0 || text.data[0] == '#')
            continue;
        if (folded_read_line(text, &line))
            take_stack(b, thread, &line);
        else
            malformed++;
    }
    trace_set_fact(t, FACT_FORMAT, "folded");
    trace_set_fact(t, FACT_UNIT, "samples");
    if (malformed) {
        trace_builder_loss(b, LOSS_MALFORMED, 0, 0, 0, malformed);
        import_note(t, "%" PRIu64 " lines are not folded stacks", malformed);
    }
    t->symbolized = t->complete = true;
    return true;
}
