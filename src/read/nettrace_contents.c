#include "read/nettrace_contents.h"

#include <inttypes.h>

#include "read/nettrace_block.h"
#include "read/nettrace_info.h"

void nettrace_contents_init(struct nettrace_contents *r, const struct nettrace_sink *sink)
{
    *r = (struct nettrace_contents){ .sink = *sink };
    nettrace_types_init(&r->types);
    nettrace_stacks_init(&r->stacks);
}

void nettrace_contents_done(struct nettrace_contents *r)
{
    nettrace_types_done(&r->types);
    nettrace_stacks_done(&r->stacks);
    nettrace_threads_done(&r->threads);
    nettrace_thread_list_done(&r->thread_list);
    nettrace_labels_done(&r->labels);
}

/* What a callback said: its refusal is no fault of the stream's. */
static bool called(struct nettrace_contents *r, bool ok)
{
    r->refused |= !ok;
    return ok;
}

static bool defined(struct nettrace_contents *r, enum nettrace_type_change change, struct nettrace_type *type,
                    struct error *err)
{
    switch (change) {
    case NETTRACE_TYPE_BAD:
        return error_set(err, ERROR_INPUT, "the description of an event is malformed");
    case NETTRACE_TYPE_REFUSED:
        r->counts.limits++;
        return true;
    case NETTRACE_TYPE_SAME:
        return true;
    case NETTRACE_TYPE_NEW:
        break;
    }
    return !r->sink.on_type || called(r, r->sink.on_type(r->sink.user, type, err));
}

static bool define_type(struct nettrace_contents *r, struct span payload, struct error *err)
{
    struct nettrace_type *type = NULL;
    enum nettrace_type_change change = nettrace_types_define(&r->types, payload, &type);
    return defined(r, change, type, err);
}

/* A block of nettrace 6: a header of its own, then a row for each type. */
static bool read_metadata_v6(struct nettrace_contents *r, struct span content, struct error *err)
{
    struct cursor c = cursor_over(content);
    cursor_skip(&c, cursor_u16le(&c));
    while (cursor_left(&c) > 0) {
        struct span row = cursor_bytes(&c, cursor_u16le(&c));
        struct nettrace_type *type = NULL;
        if (!cursor_ok(&c))
            break;
        enum nettrace_type_change change = nettrace_types_define_v6(&r->types, row, &type);
        if (!defined(r, change, type, err))
            return false;
    }
    return cursor_finish(&c, err, "a Metadata block");
}

static bool report_progress(struct nettrace_contents *r, uint64_t thread_id, struct nettrace_progress p,
                            struct error *err)
{
    r->counts.time_breaks += p.older;
    r->counts.limits += p.refused;
    r->counts.lost += p.lost;
    return p.lost == 0 || !r->sink.on_loss ||
           called(r, r->sink.on_loss(r->sink.user, thread_id, p.lost, err));
}

/* Of nettrace 6: indexes become numbers of threads, labels become activities. */
static void complete_v6(struct nettrace_contents *r, uint32_t label_id, struct nettrace_event *event)
{
    const struct nettrace_listed_thread *captured =
        nettrace_thread_list_find(&r->thread_list, event->capture_thread_id);
    event->capture_thread_id = captured ? captured->thread_id : 0;
    const struct nettrace_listed_thread *thread =
        nettrace_thread_list_find(&r->thread_list, event->thread_id);
    event->thread_id = thread ? thread->thread_id : 0;
    const struct nettrace_label_list *labels = nettrace_labels_find(&r->labels, label_id);
    if (labels && labels->has_activity)
        event->activity = span_of(labels->activity, sizeof labels->activity);
    if (labels && labels->has_related)
        event->related_activity = span_of(labels->related_activity, sizeof labels->related_activity);
}

/* What a record refers to, looked up where it refers to another than the one before. */
struct referred {
    struct nettrace_type *type;
    struct span stack;
    uint64_t *stack_mark;
    bool has_stack;
};

static inline void look_up(struct nettrace_contents *r, const struct nettrace_record *record,
                           struct referred *now)
{
    if (record->changed & NETTRACE_HAS_TYPE)
        now->type = nettrace_types_find(&r->types, record->type_id);
    if (record->changed & NETTRACE_HAS_STACK) {
        bool is_inline = r->info.version < 4;
        struct nettrace_stack *stack = is_inline ? NULL : nettrace_stacks_at(&r->stacks, record->stack_id);
        now->stack = is_inline ? record->stack : nettrace_stacks_addresses(&r->stacks, stack);
        now->stack_mark = stack ? &stack->mark : NULL;
        now->has_stack = is_inline || stack || record->stack_id == 0; /* that is none */
    }
}

/* Before it is counted. */
static inline void tell_owner(const struct nettrace_contents *r, struct nettrace_type *type,
                              uint64_t process_id)
{
    bool same = type->events > 0 && type->owner == process_id;
    type->owner = process_id;
    if (!same && r->sink.on_owner)
        r->sink.on_owner(r->sink.user, type, process_id);
}

static inline void count(struct nettrace_type *type, uint64_t time_ns, size_t payload_bytes, bool with_stack)
{
    type->events++;
    type->events_with_stack += with_stack;
    type->payload_bytes += payload_bytes;
    if (time_ns > type->latest_ns)
        type->latest_ns = time_ns;
}

/* To who takes each. */
static bool hand_over(struct nettrace_contents *r, const struct nettrace_event *event, struct error *err)
{
    if (event->type->wanted == NETTRACE_EVENT)
        return !r->sink.on_event || called(r, r->sink.on_event(r->sink.user, event, err));
    const struct nettrace_sample sample = {
        .time_ns = event->time_ns,
        .process_id = event->process_id,
        .thread_id = event->thread_id,
        .stack = event->stack,
        .stack_mark = event->stack_mark,
        .payload = event->payload,
    };
    if (r->sink.on_sample)
        r->sink.on_sample(r->sink.user, &sample);
    return true;
}

static inline bool deliver(struct nettrace_contents *r, const struct nettrace_record *record,
                           const struct referred *now, struct error *err)
{
    struct nettrace_type *type = now->type;
    uint64_t time_ns = nettrace_info_ns(&r->info, record->ticks);
    if (!type) {
        r->counts.untyped++;
        return true;
    }
    if (r->info.version < 4 && now->stack.size % r->info.pointer_size != 0)
        return error_set(err, ERROR_INPUT, "the stack of an event is not a whole number of addresses");
    uint64_t process_id = nettrace_contents_process(r, record->thread_id);
    r->counts.stackless += !now->has_stack;
    r->counts.events++;
    if (type->wanted != NETTRACE_EVENT)
        tell_owner(r, type, process_id);
    count(type, time_ns, record->payload.size, now->stack.size > 0);
    if (type->wanted == NETTRACE_TIME)
        r->sink.on_times(r->sink.user, type, time_ns, 1);
    if (type->wanted > NETTRACE_SAMPLE)
        return true;
    struct nettrace_event event = {
        .type = type,
        .process_id = process_id,
        .time_ns = time_ns,
        .thread_id = record->thread_id,
        .capture_thread_id = record->capture_thread_id,
        .sequence = record->sequence,
        .processor = record->processor,
        .sorted = record->sorted,
        .activity = nettrace_activity(record->activity),
        .related_activity = nettrace_activity(record->related_activity),
        .stack = now->stack,
        .stack_mark = now->stack_mark,
        .payload = record->payload,
    };
    if (r->info.version >= 6)
        complete_v6(r, record->label_id, &event);
    return hand_over(r, &event, err);
}

/* Follows a thread's numbers; false when a callback refuses what was lost. */
static inline bool follow(struct nettrace_contents *r, uint64_t thread_id, uint32_t sequence, uint64_t ticks,
                          struct error *err)
{
    if (nettrace_threads_event_next(&r->threads, thread_id, sequence, ticks))
        return true;
    struct nettrace_progress p = nettrace_threads_event(&r->threads, thread_id, sequence, ticks);
    return report_progress(r, thread_id, p, err);
}

/* False where that is reported as damage. */
static bool out_of_time(struct nettrace_contents *r, struct error *err)
{
    r->counts.time_breaks++;
    return !r->sink.on_damage || error_set(err, ERROR_INPUT, "an event outside the time of its block");
}

static bool read_events(struct nettrace_contents *r, struct span content, bool is_metadata, struct error *err)
{
    struct nettrace_block opened;
    struct referred now = { .has_stack = true };
    if (!nettrace_block_open(&opened, content, r->info.version, err))
        return false;
    struct nettrace_block block = opened; /* whose address nobody else has: it stays in registers */
    while (nettrace_block_next(&block)) {
        const struct nettrace_record *record = &block.record;
        if (is_metadata || (r->info.version < 4 && record->type_id == 0)) {
            if (!define_type(r, record->payload, err))
                return false;
            continue;
        }
        if ((record->ticks < block.min_ticks || record->ticks > block.max_ticks) && !out_of_time(r, err))
            return false;
        if (r->info.version >= 4 &&
            !follow(r, record->capture_thread_id, record->sequence, record->ticks, err))
            return false;
        look_up(r, record, &now);
        block.record.changed = 0;
        if (!deliver(r, record, &now, err))
            return false;
        if (now.type && now.type->wanted != NETTRACE_EVENT && block.layout == NETTRACE_COMPRESSED) {
            opened = block;
            nettrace_tally_run(r, &opened);
            block = opened;
        }
    }
    opened = block;
    return nettrace_block_finish(&opened, err);
}

static bool reached(struct nettrace_contents *r, uint64_t thread_id, uint32_t sequence, struct error *err)
{
    return report_progress(r, thread_id, nettrace_threads_reached(&r->threads, thread_id, sequence), err);
}

/* The end of all sequence points: old ids mean nothing any more, also where the point itself is damaged. */
static bool end_point(struct nettrace_contents *r, const struct cursor *c, uint64_t ticks, struct error *err)
{
    nettrace_stacks_clear(&r->stacks);
    nettrace_labels_clear(&r->labels);
    if (!cursor_finish(c, err, "a sequence point"))
        return false;
    return !r->sink.on_sequence_point ||
           called(r, r->sink.on_sequence_point(r->sink.user, nettrace_info_ns(&r->info, ticks), err));
}

static bool read_sequence_point(struct nettrace_contents *r, struct span content, struct error *err)
{
    struct cursor c = cursor_over(content);
    uint64_t ticks = cursor_u64le(&c);
    uint32_t count = cursor_u32le(&c);
    for (uint32_t i = 0; i < count && cursor_ok(&c); i++) {
        uint64_t thread_id = cursor_u64le(&c);
        uint32_t sequence = cursor_u32le(&c);
        if (cursor_ok(&c) && !reached(r, thread_id, sequence, err))
            return false;
    }
    nettrace_threads_end_point(&r->threads);
    return end_point(r, &c, ticks, err);
}

static bool read_sequence_point_v6(struct nettrace_contents *r, struct span content, struct error *err)
{
    enum { FORGET_THREADS = 1, FORGET_TYPES = 2 };
    struct cursor c = cursor_over(content);
    uint64_t ticks = cursor_u64le(&c);
    uint32_t flags = cursor_u32le(&c), count = cursor_u32le(&c);
    for (uint32_t i = 0; i < count && cursor_ok(&c); i++) {
        uint64_t thread = cursor_varuint64(&c);
        uint32_t sequence = cursor_varuint32(&c);
        if (cursor_ok(&c) && !reached(r, thread, sequence, err))
            return false;
    }
    if (flags & FORGET_THREADS) {
        nettrace_threads_clear(&r->threads);
        nettrace_thread_list_clear(&r->thread_list);
    }
    if (flags & FORGET_TYPES)
        nettrace_types_clear(&r->types);
    return end_point(r, &c, ticks, err);
}

static bool tell_thread(void *user, const struct nettrace_listed_thread *thread, struct error *err)
{
    struct nettrace_contents *r = user;
    return !r->sink.on_thread || called(r, r->sink.on_thread(r->sink.user, thread->process_id,
                                                             thread->thread_id, thread->name, err));
}

static bool read_ended_threads(struct nettrace_contents *r, struct span content, struct error *err)
{
    struct cursor c = cursor_over(content);
    while (cursor_left(&c) > 0) {
        uint64_t thread = cursor_varuint64(&c);
        uint32_t sequence = cursor_varuint32(&c);
        if (!cursor_ok(&c))
            break;
        if (!reached(r, thread, sequence, err))
            return false;
        nettrace_threads_end(&r->threads, thread);
    }
    return cursor_finish(&c, err, "a RemoveThread block");
}

bool nettrace_contents_info(struct nettrace_contents *r, struct span content, uint32_t version,
                            struct error *err)
{
    bool odd_clock;
    struct nettrace_info info;
    if (r->has_info)
        return error_set(err, ERROR_INPUT, "the stream begins twice");
    if (!nettrace_info_read(content, version, &info, &odd_clock, err))
        return false;
    r->counts.time_breaks += odd_clock;
    r->info = info;
    r->has_info = true;
    return !r->sink.on_info || called(r, r->sink.on_info(r->sink.user, &r->info, err));
}

bool nettrace_contents_read(struct nettrace_contents *r, enum nettrace_content kind, struct span content,
                            struct error *err)
{
    bool is_v6 = r->info.version >= 6;
    switch (kind) {
    case NETTRACE_EVENTS:
        return read_events(r, content, false, err);
    case NETTRACE_METADATA:
        return is_v6 ? read_metadata_v6(r, content, err) : read_events(r, content, true, err);
    case NETTRACE_STACKS:
        return nettrace_stacks_read(&r->stacks, content, r->info.pointer_size, &r->counts.limits, err);
    case NETTRACE_SEQUENCE_POINT:
        return is_v6 ? read_sequence_point_v6(r, content, err) : read_sequence_point(r, content, err);
    case NETTRACE_THREADS:
        return nettrace_thread_list_read(&r->thread_list, content, &r->counts.limits, tell_thread, r, err);
    case NETTRACE_ENDED_THREADS:
        return read_ended_threads(r, content, err);
    case NETTRACE_LABELS:
        return nettrace_labels_read(&r->labels, content, &r->counts.limits, err);
    case NETTRACE_OTHER: /* later versions may add kinds of blocks */
        break;
    }
    return true;
}
