/*
 * told_fixture: traces with events as a runtime tells them, for the tests of what reads them.
 */
#ifndef CLRPERF_TESTS_TOLD_FIXTURE_H
#define CLRPERF_TESTS_TOLD_FIXTURE_H

#include "base/utf16.h"
#include "clr/runtime_events.h"
#include "trace/builder.h"

enum { TOLD_PID = 100, TOLD_PAYLOAD_MAX = 1 << 16 };

struct told_fixture {
    struct trace_builder b;
    struct buffer payload; /* of the next event */
    const char *provider;
    uint32_t pid;
    uint32_t stack; /* of the next events */
};

static inline void told_fixture_begin(struct told_fixture *f)
{
    *f = (struct told_fixture){ .provider = RUNTIME_PROVIDER, .pid = TOLD_PID };
    trace_builder_init(&f->b, 64);
    trace_builder_process_start(&f->b, TOLD_PID, 0);
    buffer_init(&f->payload, TOLD_PAYLOAD_MAX);
}

static inline void told_fixture_end(struct told_fixture *f)
{
    buffer_done(&f->payload);
    trace_builder_done(&f->b);
}

/* Adds the event whose payload was put together; its version is `version`. */
static inline void told_event(struct told_fixture *f, uint64_t time_ns, uint32_t tid, uint32_t id,
                              uint32_t version)
{
    struct trace_event_type type = { .provider = trace_add_string(&f->b.trace, f->provider),
                                     .event_id = id,
                                     .version = version,
                                     .pointer_size = 8 };
    struct trace_event row = { .time_ns = time_ns,
                               .type = trace_builder_event_type(&f->b, &type),
                               .process = trace_builder_process_start(&f->b, f->pid, 0),
                               .thread = tid ? trace_builder_thread(&f->b, f->pid, tid, 0) : 0,
                               .stack = f->stack };
    trace_push_event(&f->b.trace, &row, buffer_span(&f->payload));
    buffer_clear(&f->payload);
}

static inline void told_text(struct told_fixture *f, const char *text)
{
    utf16_append(&f->payload, text);
    buffer_u16le(&f->payload, 0);
}

/* A stack of named functions, root first; `names` ends with NULL. They are in the module given. */
static inline uint32_t told_stack(struct told_fixture *f, const char *module, const char *const *names)
{
    uint32_t functions[16];
    size_t count = 0;
    for (; names[count]; count++)
        functions[count] = trace_builder_function(
            &f->b, &(struct trace_function){ .name = trace_add_string(&f->b.trace, names[count]),
                                             .module = trace_add_string(&f->b.trace, module),
                                             .kind = CODE_JIT });
    return trace_builder_named_stack(&f->b, functions, count);
}

/* The process was asked for these. */
static inline void told_asked(struct told_fixture *f, uint64_t keywords, uint8_t level, uint64_t from_ns,
                              uint64_t to_ns)
{
    uint32_t process = trace_builder_process_start(&f->b, f->pid, 0);
    uint32_t id = trace_push(&f->b.trace.subscriptions);
    f->b.trace.subscriptions.rows[id] = (struct trace_subscription){
        .process = process,
        .provider = trace_add_string(&f->b.trace, f->provider),
        .keywords = keywords,
        .level = level,
        .from_ns = from_ns,
        .to_ns = to_ns,
    };
}

#endif
