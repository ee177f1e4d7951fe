#include "analyse/thrown_events.h"

#include "base/mem.h"
#include "clr/exception_events.h"
#include "clr/runtime_events.h"

enum { TEXT_BYTES_MAX = 1 << 18 }; /* a payload of 64 KiB has no more */

void thrown_events_init(struct thrown_events *thrown, const struct trace *t, uint64_t from_ns, uint64_t to_ns)
{
    static const uint16_t ids[] = { EXCEPTION_EVENT_THROWN, 0 };
    *thrown = (struct thrown_events){ 0 };
    buffer_init(&thrown->type, TEXT_BYTES_MAX);
    buffer_init(&thrown->message, TEXT_BYTES_MAX);
    event_stacks_init(&thrown->stacks, t, false, EVENT_CUT_THROW);
    told_events_init(&thrown->told, t, &(struct told_choice){ RUNTIME_PROVIDER, ids, from_ns, to_ns });
}

void thrown_events_done(struct thrown_events *thrown)
{
    told_events_done(&thrown->told);
    event_stacks_done(&thrown->stacks);
    thrown_before_done(&thrown->before);
    buffer_done(&thrown->type);
    buffer_done(&thrown->message);
}

static void read_text(struct thrown_events *thrown, const struct told_event *e, const char *field,
                      struct buffer *out)
{
    struct event_value value;
    buffer_clear(out);
    if (told_field(&thrown->told, e, field, &value))
        event_value_append_text(out, &value);
}

bool thrown_events_again(struct thrown_events *thrown, const struct told_event *e)
{
    read_text(thrown, e, "ExceptionType", &thrown->type);
    read_text(thrown, e, "ExceptionMessage", &thrown->message);
    if (told_number(&thrown->told, e, "ExceptionFlags", 0) & EXCEPTION_FLAG_RETHROWN)
        return true;
    const struct trace_event *row = told_row(&thrown->told, e);
    return thrown_before_passed_on(
        &thrown->before,
        thrown_before_kind(e->process, buffer_span(&thrown->type), buffer_span(&thrown->message)),
        &thrown->stacks, event_stacks_node(&thrown->stacks, row->stack), row->thread);
}

bool *thrown_events_all_again(const struct trace *t)
{
    struct thrown_events thrown;
    bool *again = mem_alloc(t->events.count + 1, sizeof *again);
    thrown_events_init(&thrown, t, 0, 0);
    for (size_t i = 0; i < thrown.told.count; i++)
        again[thrown.told.rows[i].event] = thrown_events_again(&thrown, &thrown.told.rows[i]);
    thrown_events_done(&thrown);
    return again;
}
