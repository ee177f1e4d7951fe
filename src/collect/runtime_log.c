#include "collect/runtime_log.h"

#include <string.h>

#include "base/clock.h"
#include "clr/runtime_events.h"

enum { COLLECTIONS_LEVEL = 4 };

/* What the queue carries, with the payload behind it. */
struct logged_event {
    uint64_t time_ns, thread_id;
    uint32_t process, type;
};

uint32_t runtime_log_begin(struct trace_builder *b, uint32_t process)
{
    uint32_t id = trace_push(&b->trace.subscriptions);
    b->trace.subscriptions.rows[id] = (struct trace_subscription){
        .process = process,
        .provider = trace_add_string(&b->trace, RUNTIME_PROVIDER),
        .keywords = RUNTIME_KEYWORD_GC,
        .level = COLLECTIONS_LEVEL,
        .from_ns = clock_monotonic_ns(),
    };
    return id;
}

void runtime_log_end(struct trace_builder *b, uint32_t subscription)
{
    b->trace.subscriptions.rows[subscription].to_ns = clock_monotonic_ns();
}

void runtime_log_add(struct trace_builder *b, uint32_t process, const struct runtime_event *event,
                     struct record_queue *queue)
{
    struct logged_event head = {
        .time_ns = event->time_ns,
        .thread_id = event->thread_id,
        .process = process,
        .type = trace_builder_event_type(b,
                                         &(struct trace_event_type){
                                             .provider = intern_add(&b->trace.strings, event->provider),
                                             .name = trace_add_string(&b->trace, ""),
                                             .event_id = event->event_id,
                                             .version = event->version,
                                         }),
    };
    struct buffer item;
    buffer_init(&item, sizeof head + TRACE_PAYLOAD_BYTES_MAX);
    buffer_append(&item, &head, sizeof head);
    buffer_append(&item, event->payload.data, event->payload.size);
    if (item.failed)
        trace_builder_loss(b, LOSS_MALFORMED, process, event->time_ns, event->time_ns, 1);
    else if (!record_queue_add(queue, event->time_ns, QUEUE_EVENT, buffer_span(&item)))
        runtime_log_apply(b, buffer_span(&item)); /* out of turn is better than lost */
    buffer_done(&item);
}

/* A runtime in another pid namespace counts its threads in its own way. */
static uint32_t log_thread(const struct trace_builder *b, const struct logged_event *event)
{
    const struct trace_process *row = &b->trace.processes.rows[event->process];
    bool same = row->ns_pid == 0 || row->ns_pid == row->pid;
    return same && event->thread_id <= UINT32_MAX
               ? trace_builder_find_thread(b, event->process, (uint32_t)event->thread_id)
               : 0;
}

void runtime_log_apply(struct trace_builder *b, struct span item)
{
    struct logged_event event;
    if (item.size < sizeof event)
        return;
    memcpy(&event, item.data, sizeof event);
    const struct trace_event row = {
        .time_ns = event.time_ns,
        .type = event.type,
        .process = event.process,
        .thread = log_thread(b, &event),
    };
    if (!trace_push_event(&b->trace, &row, span_part(item, sizeof event, item.size - sizeof event)))
        trace_builder_loss(b, LOSS_QUEUE, event.process, event.time_ns, event.time_ns, 1);
}
