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

struct folded_counts {
    uint64_t sum;
    uint64_t malformed, too_large, rounded; /* lines */
    uint64_t first_malformed;               /* the number of the first, from 1 */
};

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

static void take_line(struct trace_builder *b, uint32_t thread, struct folded_counts *counts,
                      struct span text, uint64_t number)
{
    struct folded_line line;
    if (!folded_read_line(text, &line)) {
        if (counts->malformed++ == 0)
            counts->first_malformed = number;
    } else if (line.count > INT64_MAX - counts->sum) { /* what is summed up later must not wrap */
        counts->too_large++;
    } else {
        counts->sum += line.count;
        counts->rounded += line.is_rounded;
        take_stack(b, thread, &line);
    }
}

static void tell_counts(struct trace_builder *b, const struct folded_counts *counts)
{
    struct trace *t = &b->trace;
    uint64_t refused = counts->malformed + counts->too_large;
    if (refused)
        trace_builder_loss(b, LOSS_MALFORMED, 0, 0, 0, refused);
    if (counts->malformed == 1)
        import_note(t, "line %" PRIu64 " is left out: it is no folded stack ('a;b;c 12')",
                    counts->first_malformed);
    else if (counts->malformed)
        import_note(t,
                    "%" PRIu64 " lines are left out, the first is line %" PRIu64
                    ": they are no folded stacks ('a;b;c 12')",
                    counts->malformed, counts->first_malformed);
    if (counts->too_large)
        import_note(t, "%" PRIu64 " lines have counts that are too large: all together may be 2^63 - 1",
                    counts->too_large);
    if (counts->rounded)
        import_note(t, "%" PRIu64 " counts with fractions are rounded", counts->rounded);
}

bool folded_import(struct byte_stream *stream, const struct import_options *options, struct trace_builder *b,
                   struct error *err)
{
    struct trace *t = &b->trace;
    uint32_t thread = trace_builder_thread(b, 0, 0, 0);
    struct folded_counts counts = { 0 };
    (void)options;
    for (uint64_t number = 1;; number++) {
        struct span text;
        bool any;
        if (!byte_stream_line(stream, &text, &any, err))
            return false;
        if (!any)
            break;
        if (folded_is_stack(text))
            take_line(b, thread, &counts, text, number);
    }
    trace_set_fact(t, FACT_FORMAT, "folded");
    trace_set_fact(t, FACT_UNIT, "samples");
    tell_counts(b, &counts);
    t->symbolized = t->complete = true;
    return true;
}
