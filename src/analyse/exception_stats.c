#include "analyse/exception_stats.h"

#include <string.h>

#include "clr/exception_events.h"
#include "clr/runtime_events.h"

enum { TEXT_BYTES_MAX = 1 << 18 }; /* a payload of 64 KiB has no more */

static const uint16_t exception_ids[] = { EXCEPTION_EVENT_THROWN, 0 };

static void read_event(struct exception_stats *stats, struct told_events *told, const struct told_event *e,
                       struct buffer *type, struct buffer *message)
{
    struct event_value type_value, message_value;
    uint64_t flags = told_number(told, e, "ExceptionFlags", 0);
    if (!told_field(told, e, "ExceptionType", &type_value)) {
        stats->malformed++;
        return;
    }
    if (flags & EXCEPTION_FLAG_RETHROWN) {
        stats->rethrown++;
        return;
    }
    stats->nested += (flags & EXCEPTION_FLAG_NESTED) != 0;
    buffer_clear(type);
    buffer_clear(message);
    event_value_append_text(type, &type_value);
    if (told_field(told, e, "ExceptionMessage", &message_value))
        event_value_append_text(message, &message_value);
    uint32_t node = event_stacks_node(&stats->stacks, told_row(told, e)->stack);
    stats->is_full |= !event_tally_add(&stats->tally, buffer_span(type), buffer_span(message), node,
                                       e->process, e->time_ns, &(struct event_weight){ .weight = 1 });
}

bool exception_stats_wants(const char *provider, uint32_t event_id)
{
    return strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(exception_ids, event_id);
}

void exception_stats_init(struct exception_stats *stats, const struct trace *t, bool raw_names,
                          uint64_t from_ns, uint64_t to_ns)
{
    *stats = (struct exception_stats){ 0 };
    struct told_events told;
    struct buffer type, message;
    event_stacks_init(&stats->stacks, t, raw_names, EVENT_CUT_THROW);
    event_tally_init(&stats->tally, &stats->stacks);
    told_events_init(
        &told, t,
        &(struct told_choice){
            .provider = RUNTIME_PROVIDER, .ids = exception_ids, .from_ns = from_ns, .to_ns = to_ns });
    buffer_init(&type, TEXT_BYTES_MAX);
    buffer_init(&message, TEXT_BYTES_MAX);
    for (size_t i = 0; i < told.count; i++)
        read_event(stats, &told, &told.rows[i], &type, &message);
    stats->any = told.count != 0;
    buffer_done(&type);
    buffer_done(&message);
    told_events_done(&told);
}

void exception_stats_done(struct exception_stats *stats)
{
    event_tally_done(&stats->tally);
    event_stacks_done(&stats->stacks);
}
