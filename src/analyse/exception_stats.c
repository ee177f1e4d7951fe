#include "analyse/exception_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
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
    struct id_map thrown;               /* by hash: index in `hashes` and one */
    uint64_t *hashes;                   /* of what was thrown by who made it */
    size_t hash_count, hash_capacity;
};

/* What has 64 bits in common is the same. */
static bool same_hash(const void *table, uint32_t id, const void *key)
{
    return ((const uint64_t *)table)[id - 1] == *(const uint64_t *)key;
}

/*
 * An await of a task that failed throws the task's exception object again, at each level of async methods,
 * and the runtime does not say so. It is an object of its own where nobody threw one of that kind and message
 * before: a task can be given one that never was thrown.
 */
static bool is_passed_on(struct exception_reading *r, uint32_t node, uint32_t process)
{
    const struct profile_frame *leaf = event_stacks_leaf(&r->stats->stacks, node);
    uint64_t hash = hash_pair(
        hash_pair(hash_bytes(r->type.data, r->type.size), hash_bytes(r->message.data, r->message.size)),
        process);
    bool is_known = id_map_find(&r->thrown, hash, same_hash, r->hashes, &hash) != 0;
    if (leaf && event_frame_is_of(leaf, "System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw"))
        return is_known;
    if (is_known)
        return false;
    r->hashes = mem_grow(r->hashes, &r->hash_capacity, r->hash_count + 1, sizeof *r->hashes);
    r->hashes[r->hash_count++] = hash;
    id_map_add(&r->thrown, hash, (uint32_t)r->hash_count);
    return false;
}

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
    uint32_t node = event_stacks_node(&stats->stacks, told_row(told, e)->stack);
    if (is_passed_on(r, node, e->process)) {
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
    id_map_done(&r.thrown);
    free(r.hashes);
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
