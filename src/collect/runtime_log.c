#include "collect/runtime_log.h"

#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "clr/runtime_events.h"

/* Each is written before it is read: clearing them first would take longer than all the rest. */
#define NOT_CLEARED __attribute__((uninitialized))

enum { FRAMES_MAX = TRACE_STACK_DEPTH_MAX, ACTIVITY_BYTES = 16 };

/* What the queue carries; behind it the addresses of the stack, the activities, the payload. */
struct logged_event {
    uint64_t time_ns;
    uint32_t process, tid, type; /* tid 0: not known here */
    uint16_t frames;
    bool leaf_exact, has_activity;
};

static void add_subscription(struct trace_builder *b, struct runtime_log *log, uint32_t process,
                             const struct event_provider *p, uint64_t keywords, uint32_t level)
{
    uint32_t provider = trace_add_string(&b->trace, p->name);
    uint32_t id = trace_push(&b->trace.subscriptions);
    b->trace.subscriptions.rows[id] = (struct trace_subscription){
        .process = process,
        .provider = provider,
        .keywords = keywords,
        .level = (uint8_t)level,
        .from_ns = clock_monotonic_ns(),
    };
    log->count++;
}

struct runtime_log runtime_log_begin(struct trace_builder *b, uint32_t process,
                                     const struct event_providers *told)
{
    struct runtime_log log = { .first = (uint32_t)b->trace.subscriptions.count };
    for (size_t i = 0; i < told->count; i++) {
        const struct event_provider *p = &told->items[i];
        /* of these nothing is kept that is above their level, whatever the provider was asked for others */
        uint64_t light = p->event_id_count ? p->light_keywords : 0;
        if (light)
            add_subscription(b, &log, process, p, light, p->light_level);
        if (!light || p->keywords & ~light)
            add_subscription(b, &log, process, p, p->keywords & ~light, p->level);
    }
    return log;
}

void runtime_log_end(struct trace_builder *b, const struct runtime_log *log)
{
    for (uint32_t i = 0; i < log->count; i++)
        b->trace.subscriptions.rows[log->first + i].to_ns = clock_monotonic_ns();
}

static uint32_t log_type(struct trace_builder *b, const struct runtime_event *event)
{
    const struct nettrace_type *type = event->type;
    return trace_builder_event_type(b, &(struct trace_event_type){
                                           .provider = trace_add_utf16(&b->trace, type->provider),
                                           .name = trace_add_utf16(&b->trace, type->name),
                                           .event_id = type->event_id,
                                           .version = type->version,
                                           .fields = trace_add_span(&b->trace, type->fields),
                                           .params = trace_add_span(&b->trace, type->params),
                                           .keywords = type->keywords,
                                           .level = (uint8_t)type->level,
                                           .opcode = type->opcode,
                                           .pointer_size = (uint8_t)event->pointer_size,
                                           .description = EVENT_DESCRIBED_V5,
                                       });
}

/* Addresses as 8 bytes each. Returns how many; the outermost of too many are left out. */
static size_t log_frames(const struct runtime_event *event, uint64_t *out)
{
    size_t size = event->pointer_size == 4 ? 4 : 8, count = event->stack.size / size;
    if (count > FRAMES_MAX)
        count = FRAMES_MAX;
    for (size_t i = 0; i < count; i++)
        out[i] = size == 8 ? load_u64le(event->stack.data + 8 * i) : load_u32le(event->stack.data + 4 * i);
    return count;
}

static uint8_t *put_activity(uint8_t *to, struct span id)
{
    memset(to, 0, ACTIVITY_BYTES);
    if (id.size == ACTIVITY_BYTES)
        memcpy(to, id.data, ACTIVITY_BYTES);
    return to + ACTIVITY_BYTES;
}

enum {
    ITEM_BYTES_MAX = sizeof(struct logged_event) + FRAMES_MAX * sizeof(uint64_t) + 2 * ACTIVITY_BYTES +
                     TRACE_PAYLOAD_BYTES_MAX
};

/* Puts it together. Returns the size, 0 when its payload is larger than any should be. */
static size_t put_event(const struct logged_event *head, const uint64_t *frames,
                        const struct runtime_event *event, uint8_t item[ITEM_BYTES_MAX])
{
    if (event->payload.size > TRACE_PAYLOAD_BYTES_MAX)
        return 0;
    uint8_t *to = item + sizeof *head;
    memcpy(item, head, sizeof *head);
    memcpy(to, frames, head->frames * sizeof *frames);
    to += head->frames * sizeof *frames;
    if (head->has_activity)
        to = put_activity(put_activity(to, event->activity), event->related_activity);
    if (event->payload.size)
        memcpy(to, event->payload.data, event->payload.size);
    return (size_t)(to - item) + event->payload.size;
}

/* What made the sample stands at the leaf itself; every other event is told by a call. */
static bool is_exact(const struct trace_builder *b, uint32_t type)
{
    uint32_t provider = b->trace.event_types.rows[type].provider;
    return strcmp(trace_string(&b->trace, provider), RUNTIME_SAMPLER_PROVIDER) == 0;
}

void runtime_log_add(struct trace_builder *b, uint32_t process, uint32_t tid,
                     const struct runtime_event *event, struct time_queue *queue)
{
    NOT_CLEARED uint64_t frames[FRAMES_MAX];
    NOT_CLEARED uint8_t room[ITEM_BYTES_MAX];
    if (!*event->type_memo)
        *event->type_memo = log_type(b, event);
    struct logged_event head = {
        .time_ns = event->time_ns,
        .process = process,
        .tid = tid,
        .type = *event->type_memo,
        .frames = (uint16_t)log_frames(event, frames),
        .has_activity = event->activity.size || event->related_activity.size,
    };
    head.leaf_exact = head.frames && is_exact(b, head.type);
    size_t size = put_event(&head, frames, event, room);
    if (!size)
        trace_builder_loss(b, LOSS_MALFORMED, process, event->time_ns, event->time_ns, 1);
    else if (!time_queue_add(queue, event->time_ns, QUEUE_EVENT, span_of(room, size)))
        runtime_log_apply(b, span_of(room, size)); /* out of turn is better than lost */
}

/* A thread that is new or has just ended: the kernel may tell of it later, or never. */
static uint32_t log_thread(struct trace_builder *b, const struct logged_event *event)
{
    if (event->tid == 0)
        return 0;
    uint32_t thread = trace_builder_find_thread(b, event->process, event->tid);
    uint32_t pid = b->trace.processes.rows[event->process].pid;
    if (!thread && trace_builder_process(b, pid) == event->process)
        thread = trace_builder_thread(b, pid, event->tid, event->time_ns);
    return thread;
}

static uint32_t log_stack(struct trace_builder *b, const struct logged_event *event, const uint64_t *frames)
{
    if (event->frames == 0)
        return 0;
    enum stack_end end = event->frames == FRAMES_MAX ? STACK_TRUNCATED : STACK_WHOLE;
    return trace_builder_stack(b, event->process, frames, event->frames, event->leaf_exact, event->time_ns,
                               end);
}

void runtime_log_apply(struct trace_builder *b, struct span item)
{
    struct logged_event event;
    NOT_CLEARED uint64_t frames[FRAMES_MAX];
    struct cursor c = cursor_over(item);
    struct span head = cursor_bytes(&c, sizeof event);
    if (!cursor_ok(&c))
        return;
    memcpy(&event, head.data, sizeof event);
    struct span stack = cursor_bytes(&c, event.frames * sizeof *frames);
    struct span activity = { 0 }, related = { 0 };
    if (event.has_activity) {
        activity = cursor_bytes(&c, ACTIVITY_BYTES);
        related = cursor_bytes(&c, ACTIVITY_BYTES);
    }
    if (!cursor_ok(&c) || stack.size > sizeof frames)
        return;
    if (stack.size)
        memcpy(frames, stack.data, stack.size);
    const struct trace_event row = {
        .time_ns = event.time_ns,
        .type = event.type,
        .process = event.process,
        .thread = log_thread(b, &event),
        .stack = log_stack(b, &event, frames),
    };
    if (!trace_push_event(&b->trace, &row, span_part(item, c.pos, item.size - c.pos)))
        trace_builder_loss(b, LOSS_QUEUE, event.process, event.time_ns, event.time_ns, 1);
    else if (event.has_activity)
        trace_push_event_activity(&b->trace, activity, related);
}
