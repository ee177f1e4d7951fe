#include "analyse/alloc_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/own.h"
#include "base/utf16.h"
#include "clr/gc_events.h"
#include "clr/runtime_events.h"
#include "clr/type_name.h"

enum { TYPE_BYTES_MAX = 1 << 16 };

/* Of the normal distribution: so many deviations to either side leave out 1 in 20. */
static const double nineteen_of_twenty = 1.96;

static const uint16_t alloc_ids[] = { GC_EVENT_ALLOCATION_TICK, GC_EVENT_ALLOCATION_SAMPLED, 0 };

const char *alloc_kind_name(unsigned kind)
{
    static const char *const names[ALLOC_KINDS] = { "small", "large", "pinned" };
    return kind < ALLOC_KINDS ? names[kind] : "other";
}

struct alloc_reading {
    struct alloc_stats *stats;
    struct told_events told;
    bool raw_names;
    struct buffer raw, type; /* of one event: as the runtime spells it, and as it is shown */
};

/* An event of either kind. */
struct allocation {
    uint32_t kind;
    struct span type;
    struct event_weight weight;
};

static bool read_tick(struct span payload, uint32_t pointer_size, struct allocation *out)
{
    struct gc_allocation_tick_event tick;
    if (!gc_allocation_tick_read(payload, pointer_size, &tick, NULL))
        return false;
    double bytes = (double)tick.bytes, object = (double)tick.object_bytes;
    /* nothing but this object was allocated since the tick before: no estimate */
    bool is_certain = object > 0.9 * bytes;
    *out = (struct allocation){
        .kind = tick.kind,
        .type = tick.type,
        .weight = { .weight = bytes,
                    .variance = is_certain ? 0 : bytes * bytes,
                    .objects = object > 0 ? bytes / object : 0 },
    };
    return true;
}

static bool read_sample(struct span payload, uint32_t pointer_size, struct allocation *out)
{
    struct gc_allocation_sampled_event sample;
    if (!gc_allocation_sampled_read(payload, pointer_size, &sample, NULL) || !sample.object_bytes)
        return false;
    double object = (double)sample.object_bytes;
    double chosen = -expm1(object * log1p(-1.0 / GC_SAMPLED_ONE_IN)); /* how likely this object was */
    double bytes = object / chosen;
    *out = (struct allocation){
        .kind = sample.kind,
        .type = sample.type,
        .weight = { .weight = bytes, .variance = (1 - chosen) * bytes * bytes, .objects = 1 / chosen },
    };
    return true;
}

static bool read_event(const struct trace *t, const struct trace_event *row, struct allocation *out)
{
    const struct trace_event_type *type = &t->event_types.rows[row->type];
    uint32_t pointer_size = trace_event_pointer_size(t, row);
    struct span payload = trace_event_payload(t, row);
    return type->event_id == GC_EVENT_ALLOCATION_TICK ? read_tick(payload, pointer_size, out)
                                                      : read_sample(payload, pointer_size, out);
}

double alloc_event_bytes(const struct trace *t, const struct trace_event *event)
{
    struct allocation a;
    return read_event(t, event, &a) ? a.weight.weight : 0;
}

/* Empty where none is told. */
static struct span shown_type(struct alloc_reading *r, struct span told)
{
    buffer_clear(&r->raw);
    buffer_clear(&r->type);
    utf16_append_utf8(&r->raw, told);
    struct span raw = buffer_span(&r->raw);
    if (r->raw_names || !runtime_text_is_told(raw))
        return r->raw_names ? raw : (struct span){ 0 };
    type_name_show_full(raw, &r->type);
    return buffer_span(&r->type);
}

static void add_event(struct alloc_reading *r, const struct told_event *e)
{
    struct alloc_stats *stats = r->stats;
    struct allocation a;
    if (!read_event(r->told.trace, told_row(&r->told, e), &a)) {
        stats->malformed++;
        return;
    }
    const char *kind = alloc_kind_name(a.kind);
    uint32_t node = event_stacks_node(&stats->stacks, told_row(&r->told, e)->stack);
    if (a.kind < ALLOC_KINDS)
        stats->bytes_of_kind[a.kind] += a.weight.weight;
    stats->is_full |= !event_tally_add(&stats->tally, shown_type(r, a.type), span_of(kind, strlen(kind)),
                                       node, e->process, e->time_ns, &a.weight);
}

static void read_process(struct alloc_reading *r, const struct told_event *events, size_t count)
{
    struct alloc_stats *stats = r->stats;
    uint64_t samples = 0;
    for (size_t i = 0; i < count; i++)
        samples += events[i].id == GC_EVENT_ALLOCATION_SAMPLED;
    stats->samples += samples;
    stats->ticks += count - samples;
    enum alloc_source source = samples ? ALLOC_SOURCE_SAMPLED : ALLOC_SOURCE_TICKS;
    uint32_t wanted = samples ? GC_EVENT_ALLOCATION_SAMPLED : GC_EVENT_ALLOCATION_TICK;
    stats->source =
        stats->source == ALLOC_SOURCE_NONE || stats->source == source ? source : ALLOC_SOURCE_MIXED;
    for (size_t i = 0; i < count; i++)
        if (events[i].id == wanted)
            add_event(r, &events[i]);
}

bool alloc_stats_wants(const char *provider, uint32_t event_id)
{
    return strcmp(provider, RUNTIME_PROVIDER) == 0 && told_ids_have(alloc_ids, event_id);
}

void alloc_stats_init(struct alloc_stats *stats, const struct trace *t, bool raw_names, uint64_t from_ns,
                      uint64_t to_ns)
{
    *stats = (struct alloc_stats){ 0 };
    struct alloc_reading r = { .stats = stats, .raw_names = raw_names };
    event_stacks_init(&stats->stacks, t, raw_names, EVENT_CUT_NOTHING);
    event_tally_init(&stats->tally, &stats->stacks);
    told_events_init(
        &r.told, t,
        &(struct told_choice){
            .provider = RUNTIME_PROVIDER, .ids = alloc_ids, .from_ns = from_ns, .to_ns = to_ns });
    buffer_init(&r.raw, TYPE_BYTES_MAX);
    buffer_init(&r.type, TYPE_BYTES_MAX);
    const struct told_event *events;
    for (size_t at = 0, count; (count = told_events_process(&r.told, &at, &events)) > 0;)
        read_process(&r, events, count);
    stats->any = r.told.count != 0;
    buffer_done(&r.raw);
    buffer_done(&r.type);
    told_events_done(&r.told);
}

void alloc_stats_done(struct alloc_stats *stats)
{
    event_tally_done(&stats->tally);
    event_stacks_done(&stats->stacks);
}

void alloc_stats_bounds(const struct alloc_stats *stats, const struct event_sum *sum, double *out_low,
                        double *out_high)
{
    double variance = sum->variance, all = stats->tally.total.weight, boundary = 0;
    if (stats->source != ALLOC_SOURCE_SAMPLED && variance > 0 && sum->count) {
        /* the sum over all types is known, so what one has more another has less */
        variance *= all > 0 ? 1 - sum->weight / all : 0;
        boundary = sum->weight / (double)sum->count; /* what came behind the last tick, before the first */
    }
    double wide = nineteen_of_twenty * sqrt(variance > 0 ? variance : 0) + boundary;
    *out_low = sum->weight > wide ? sum->weight - wide : 0;
    *out_high = sum->weight + wide;
}
