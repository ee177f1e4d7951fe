#include "analyse/exception_stats.h"

#include <string.h>

#include "analyse/thrown_before.h"
#include "clr/exception_events.h"
#include "clr/runtime_events.h"
#include "clr/type_name.h"

enum { TEXT_BYTES_MAX = 1 << 18 }; /* a payload of 64 KiB has no more */

static const uint16_t exception_ids[] = { EXCEPTION_EVENT_THROWN, 0 };

/* What an event is made of, while it is read. */
struct exception_reading {
    struct exception_stats *stats;
    struct told_events told;
    bool raw_names;
    struct buffer type, shown, message; /* of one event; `shown` is the type */
    struct thrown_before before;
};

static void read_event(struct exception_reading *r, const struct told_event *e)
{
    struct exception_stats *stats = r->stats;
    struct told_events *told = &r->told;
    struct buffer *type = &r->type, *message = &r->message;
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
    buffer_clear(type);
    buffer_clear(message);
    event_value_append_text(type, &type_value);
    if (told_field(told, e, "ExceptionMessage", &message_value))
        event_value_append_text(message, &message_value);
    if (!runtime_text_is_told(buffer_span(message)))
        buffer_clear(message);
    uint32_t node = event_stacks_node(&stats->stacks, told_row(told, e)->stack);
    if (thrown_before_passed_on(&r->before,
                                thrown_before_kind(e->process, buffer_span(type), buffer_span(message)),
                                &stats->stacks, node, told_row(told, e)->thread)) {
        stats->rethrown++;
        return;
    }
    stats->nested += (flags & EXCEPTION_FLAG_NESTED) != 0;
    buffer_clear(&r->shown);
    if (!r->raw_names)
        type_name_show_full(buffer_span(type), &r->shown);
    stats->is_full |=
        !event_tally_add(&stats->tally, buffer_span(r->raw_names ? type : &r->shown), buffer_span(message),
                         node, e->process, e->time_ns, &(struct event_weight){ .weight = 1 });
}

bool exception_stats_wants(const char *provider, uint32_t event_id)
{
    return strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(exception_ids, event_id);
}

void exception_stats_init(struct exception_stats *stats, const struct trace *t, bool raw_names,
                          uint64_t from_ns, uint64_t to_ns)
{
    *stats = (struct exception_stats){ 0 };
    struct exception_reading r = { .stats = stats, .raw_names = raw_names };
    event_stacks_init(&stats->stacks, t, raw_names, EVENT_CUT_THROW);
    event_tally_init(&stats->tally, &stats->stacks);
    told_events_init(
        &r.told, t,
        &(struct told_choice){
            .provider = RUNTIME_PROVIDER, .ids = exception_ids, .from_ns = from_ns, .to_ns = to_ns });
    buffer_init(&r.type, TEXT_BYTES_MAX);
    buffer_init(&r.shown, TEXT_BYTES_MAX);
    buffer_init(&r.message, TEXT_BYTES_MAX);
    for (size_t i = 0; i < r.told.count; i++)
        read_event(&r, &r.told.rows[i]);
    stats->any = r.told.count != 0;
    thrown_before_done(&r.before);
    buffer_done(&r.type);
    buffer_done(&r.shown);
    buffer_done(&r.message);
    told_events_done(&r.told);
}

void exception_stats_done(struct exception_stats *stats)
{
    event_tally_done(&stats->tally);
    event_stacks_done(&stats->stacks);
}
