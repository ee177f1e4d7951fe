#include "clr/gc_events.h"

#include <string.h>

#include "base/own.h"
#include "base/utf16.h"
#include "clr/event_enum.h"

/* What a tick can tell at most: old runtimes sent differences below zero. */
enum { TICK_BYTES_MAX = INT32_MAX };

/* An address or a size of the target's width. */
static uint64_t cursor_word(struct cursor *c, uint32_t pointer_size)
{
    return pointer_size == 4 ? cursor_u32le(c) : cursor_u64le(c);
}

bool gc_event_is_of_heap(uint32_t event_id)
{
    return (event_id > 0 && event_id < 40) || (event_id >= 200 && event_id < 210);
}

const char *gc_gen_name(unsigned gen)
{
    static const char *const names[GC_EVENT_GENS] = { "gen 0", "gen 1", "gen 2", "large", "pinned" };
    return names[gen];
}

bool gc_heap_stats_read(struct span payload, struct gc_heap_stats_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct gc_heap_stats_event e = { 0 };
    for (unsigned i = 0; i < GC_EVENT_PINNED; i++) {
        e.size_bytes[i] = cursor_u64le(&c);
        e.promoted_bytes[i] = cursor_u64le(&c);
    }
    e.finalizable_bytes = cursor_u64le(&c);
    e.finalizable_count = cursor_u64le(&c);
    e.pinned_count = cursor_u32le(&c);
    e.sink_blocks = cursor_u32le(&c);
    e.handles = cursor_u32le(&c);
    if (!cursor_finish(&c, err, "a GC heap stats event"))
        return false;
    cursor_u16le(&c); /* the runtime's instance */
    uint64_t size = cursor_u64le(&c), promoted = cursor_u64le(&c);
    if (cursor_ok(&c)) {
        e.size_bytes[GC_EVENT_PINNED] = size;
        e.promoted_bytes[GC_EVENT_PINNED] = promoted;
    }
    *out = e;
    return true;
}

static void read_gen(struct cursor *c, uint32_t pointer_size, struct gc_heap_gen *gen)
{
    gen->before = cursor_word(c, pointer_size);
    gen->free_list_before = cursor_word(c, pointer_size);
    gen->free_obj_before = cursor_word(c, pointer_size);
    gen->after = cursor_word(c, pointer_size);
    gen->free_list_after = cursor_word(c, pointer_size);
    gen->free_obj_after = cursor_word(c, pointer_size);
    gen->in = cursor_word(c, pointer_size);
    gen->pinned_survived = cursor_word(c, pointer_size);
    gen->other_survived = cursor_word(c, pointer_size);
    gen->budget = cursor_word(c, pointer_size);
}

bool gc_heap_history_read(struct span payload, uint32_t pointer_size, struct gc_heap_history_event *out,
                          struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct gc_heap_history_event e = { 0 };
    cursor_u16le(&c);                            /* the runtime's instance */
    cursor_skip(&c, 6 * (uint64_t)pointer_size); /* how much was allocated where */
    cursor_u32le(&c);                            /* efficiency of the free list */
    e.condemn_reasons = cursor_u32le(&c);
    e.condemn_conditions = cursor_u32le(&c);
    e.compact_reason = cursor_u32le(&c);
    e.expand_reason = cursor_u32le(&c);
    e.heap = cursor_u32le(&c);
    cursor_word(&c, pointer_size); /* extra commit of generation 0 */
    uint32_t count = cursor_u32le(&c);
    for (uint32_t i = 0; i < count && i < GC_EVENT_GENS && cursor_ok(&c); i++) {
        read_gen(&c, pointer_size, &e.gen[i]);
        e.gens++;
    }
    if (!cursor_finish(&c, err, "a GC heap history event"))
        return false;
    *out = e;
    return true;
}

bool gc_global_history_read(struct span payload, struct gc_global_history_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct gc_global_history_event e = { .final_youngest_budget = cursor_u64le(&c) };
    e.heaps = cursor_u32le(&c);
    e.generation = cursor_u32le(&c);
    cursor_u32le(&c); /* how often the budget of generation 0 was reduced */
    e.reason = cursor_u32le(&c);
    e.mechanisms = cursor_u32le(&c);
    if (!cursor_finish(&c, err, "a GC history event"))
        return false;
    cursor_u16le(&c); /* the runtime's instance */
    cursor_u32le(&c); /* the mode of pauses */
    uint32_t load = cursor_u32le(&c);
    e.has_load = cursor_ok(&c);
    e.memory_load_percent = e.has_load ? load : 0;
    uint32_t reasons = cursor_u32le(&c), conditions = cursor_u32le(&c);
    if (cursor_ok(&c)) {
        e.condemn_reasons = reasons;
        e.condemn_conditions = conditions;
    }
    uint32_t count = cursor_u32le(&c);
    for (uint32_t i = 0; i < count && i < GC_EVENT_PHASES; i++) {
        uint32_t us = cursor_u32le(&c);
        if (!cursor_ok(&c))
            break;
        e.phase_us[e.phases++] = us;
    }
    *out = e;
    return true;
}

bool gc_marked_read(struct span payload, struct gc_marked_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct gc_marked_event e = { .heap = cursor_u32le(&c) };
    cursor_u16le(&c); /* the runtime's instance */
    e.root_kind = cursor_u32le(&c);
    e.promoted_bytes = cursor_u64le(&c);
    if (!cursor_finish(&c, err, "a GC mark event"))
        return false;
    *out = e;
    return true;
}

bool gc_pinned_read(struct span payload, uint32_t pointer_size, struct gc_pinned_event *out,
                    struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct gc_pinned_event e = { 0 };
    cursor_word(&c, pointer_size); /* the handle */
    e.object = cursor_word(&c, pointer_size);
    e.size_bytes = cursor_u64le(&c);
    if (!cursor_finish(&c, err, "a pinned object event"))
        return false;
    *out = e;
    return true;
}

bool gc_allocation_tick_read(struct span payload, uint32_t pointer_size, struct gc_allocation_tick_event *out,
                             struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct gc_allocation_tick_event e = { .bytes = cursor_u32le(&c) };
    e.kind = cursor_u32le(&c);
    if (!cursor_finish(&c, err, "an allocation event"))
        return false;
    cursor_u16le(&c); /* the runtime's instance */
    uint64_t bytes = cursor_u64le(&c);
    cursor_word(&c, pointer_size); /* the type's id */
    struct span type = utf16_zstring(&c);
    if (cursor_ok(&c)) {
        e.bytes = bytes ? bytes : e.bytes;
        e.type = type;
    }
    cursor_u32le(&c);              /* the heap */
    cursor_word(&c, pointer_size); /* the object */
    uint64_t object_bytes = cursor_u64le(&c);
    e.object_bytes = cursor_ok(&c) ? object_bytes : 0;
    if (e.bytes > TICK_BYTES_MAX && e.bytes > e.object_bytes)
        e.bytes = GC_SAMPLED_ONE_IN; /* what it stands for on average */
    *out = e;
    return true;
}

bool gc_allocation_sampled_read(struct span payload, uint32_t pointer_size,
                                struct gc_allocation_sampled_event *out, struct error *err)
{
    struct cursor c = cursor_over(payload);
    struct gc_allocation_sampled_event e = { .kind = cursor_u32le(&c) };
    cursor_u16le(&c);              /* the runtime's instance */
    cursor_word(&c, pointer_size); /* the type's id */
    e.type = utf16_zstring(&c);
    cursor_word(&c, pointer_size); /* the object */
    e.object_bytes = cursor_u64le(&c);
    if (!cursor_finish(&c, err, "an allocation sample"))
        return false;
    *out = e;
    return true;
}

struct gc_bulk_types gc_bulk_types_over(struct span payload)
{
    struct gc_bulk_types types = { .c = cursor_over(payload) };
    types.left = cursor_u32le(&types.c);
    cursor_u16le(&types.c); /* the runtime's instance */
    return types;
}

bool gc_bulk_types_next(struct gc_bulk_types *types, struct gc_bulk_type *out)
{
    struct cursor *c = &types->c;
    if (!types->left)
        return false;
    types->left--;
    struct gc_bulk_type row = { .type_id = cursor_u64le(c) };
    row.module_id = cursor_u64le(c);
    row.token = cursor_u32le(c);
    cursor_skip(c, 4 + 1); /* flags, element */
    row.name = utf16_zstring(c);
    cursor_skip(c, 8 * (uint64_t)cursor_u32le(c)); /* its parameters */
    if (!cursor_ok(c))
        return false;
    *out = row;
    return true;
}

static const struct {
    const char *name;
    bool induced;
} reasons[] = {
    { "small allocation", false },
    { "induced", true },
    { "low memory", false },
    { "empty", false },
    { "large allocation", false },
    { "out of space", false },
    { "out of space for large objects", false },
    { "induced, not forced", true },
    { "stress", false },
    { "low memory, blocking", false },
    { "induced, compacting", true },
    { "low memory of the host", false },
    { "provisional mode", false },
    { "low memory of the host, blocking", false },
    { "tuning, small objects", false },
    { "tuning, large objects", false },
    { "stepping", false },
    { "induced, aggressive", true },
};

const char *gc_reason_name(uint32_t reason)
{
    return reason < ARRAY_LEN(reasons) ? reasons[reason].name : NULL;
}

const char *gc_reason_key(uint32_t reason)
{
    static const char id[] = "gc_reason";
    return event_enum_name(event_enum_find(span_of(id, sizeof id - 1)), reason);
}

const char *gc_reason_name_of_key(const char *key)
{
    for (uint32_t reason = 0; reason < ARRAY_LEN(reasons); reason++) {
        const char *own = gc_reason_key(reason);
        if (own && strcmp(own, key) == 0)
            return reasons[reason].name;
    }
    return key;
}

bool gc_reason_is_induced(uint32_t reason)
{
    return reason < ARRAY_LEN(reasons) && reasons[reason].induced;
}

const char *gc_condition_name(unsigned bit)
{
    static const char *const names[] = {
        "induced, blocking",
        "expanding the heap",
        "high memory",
        "very high memory",
        "low ephemeral space",
        "low card efficiency",
        "fragmented ephemeral generations",
        "fragmented gen 2",
        "fragmented gen 1 to 2",
        "fragmented under high memory",
        "fragmented under very high memory",
        "gen 1 budget",
        "before out of memory",
        "gen 2 too small for the background",
        "induced, not forced",
        "before a background one",
        "almost all allocated",
        "avoiding unproductive ones",
        "provisional mode, induced",
        "provisional mode, large objects",
        "provisional mode, gen 1",
        "hard limit, before out of memory",
        "hard limit, fragmented large objects",
        "hard limit, large objects",
        "servo, initial",
        "servo, blocking",
        "servo, background",
        "servo, postponed",
        "stress mix",
        "stress",
        "aggressive",
    };
    return bit < ARRAY_LEN(names) ? names[bit] : NULL;
}

const char *gc_phase_name(unsigned phase, uint32_t mechanisms)
{
    static const char *const names[GC_EVENT_PHASES] = { "sized references", "mark roots",
                                                        "mark short weak",  "finalization",
                                                        "mark long weak",   "plan",
                                                        "relocate",         "compact" };
    if (phase == 6 && !(mechanisms & GC_MECHANISM_COMPACTION))
        return "sweep";
    return phase < GC_EVENT_PHASES ? names[phase] : NULL;
}

const char *gc_root_kind_name(uint32_t kind)
{
    static const char *const names[GC_EVENT_ROOTS] = {
        "stack",
        "finalizer queue",
        "handles",
        "older generation",
        "sized references",
        "overflow",
        "dependent handles",
        "new finalizer queue",
        "steal",
        "background",
    };
    return kind < GC_EVENT_ROOTS ? names[kind] : NULL;
}
