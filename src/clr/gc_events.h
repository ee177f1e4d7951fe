/*
 * gc_events: what the runtime says of a collection's sizes, reasons and phases in its event payloads.
 *
 * Events of Microsoft-Windows-DotNETRuntime, as src/coreclr/vm/ClrEtwAll.man in dotnet/runtime has them;
 * begin and end of a collection and its pauses are in clr/runtime_events.h. Addresses in payloads have
 * `pointer_size` bytes, 4 or 8. Each reader fails with ERROR_INPUT when the part that all versions have is
 * cut short; what a later version added is taken when it is there.
 */
#ifndef CLRPERF_CLR_GC_EVENTS_H
#define CLRPERF_CLR_GC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/error.h"

/* Ids of events, of which BulkType is not only of collections. */
enum gc_event_id {
    GC_EVENT_START = 1,
    GC_EVENT_END = 2,
    GC_EVENT_RESTART_END = 3,
    GC_EVENT_HEAP_STATS = 4,
    GC_EVENT_RESTART_BEGIN = 7,
    GC_EVENT_SUSPEND_END = 8,
    GC_EVENT_SUSPEND_BEGIN = 9,
    GC_EVENT_ALLOCATION_TICK = 10,
    GC_EVENT_BULK_TYPE = 15,
    GC_EVENT_FINALIZE_OBJECT = 29,
    GC_EVENT_PINNED_OBJECT = 33,
    GC_EVENT_TRIGGERED = 35,
    GC_EVENT_MARKED = 202,
    GC_EVENT_HEAP_HISTORY = 204,
    GC_EVENT_GLOBAL_HISTORY = 205,
    GC_EVENT_ALLOCATION_SAMPLED = 303,
};

/* Where an object was allocated. */
enum gc_allocation_kind { GC_ALLOCATION_SMALL, GC_ALLOCATION_LARGE, GC_ALLOCATION_PINNED };

/* Generations 0 to 2, then the heaps of large and of pinned objects. */
enum { GC_EVENT_GENS = 5, GC_EVENT_LARGE = 3, GC_EVENT_PINNED = 4, GC_EVENT_PHASES = 8, GC_EVENT_ROOTS = 10 };

struct gc_heap_stats_event { /* 4, at the end of a collection */
    uint64_t size_bytes[GC_EVENT_GENS];
    uint64_t promoted_bytes[GC_EVENT_GENS]; /* always 0 for pinned objects */
    uint64_t finalizable_bytes, finalizable_count;
    uint32_t pinned_count, sink_blocks, handles;
};

struct gc_heap_history_event { /* 204, one for each heap */
    uint32_t heap;
    uint32_t condemn_reasons, condemn_conditions; /* CondemnReasons0 and 1 */
    uint32_t compact_reason, expand_reason;
    unsigned gens; /* how many of gen[] were told */
    struct gc_heap_gen {
        uint64_t before, free_list_before, free_obj_before;
        uint64_t after, free_list_after, free_obj_after;
        uint64_t in, pinned_survived, other_survived, budget;
    } gen[GC_EVENT_GENS];
};

/* A bit of gc_global_history_event.mechanisms. */
enum { GC_MECHANISM_COMPACTION = 2 };

struct gc_global_history_event { /* 205 */
    uint64_t final_youngest_budget;
    uint32_t heaps, generation, reason, mechanisms;
    uint32_t condemn_reasons, condemn_conditions;
    uint32_t memory_load_percent; /* when has_load */
    bool has_load;
    unsigned phases; /* how many of phase_us[] were told */
    uint32_t phase_us[GC_EVENT_PHASES];
};

struct gc_marked_event { /* 202 */
    uint32_t heap, root_kind;
    uint64_t promoted_bytes;
};

struct gc_pinned_event { /* 33 */
    uint64_t object, size_bytes;
};

struct gc_allocation_tick_event { /* 10, once in about 100 kB */
    uint64_t bytes;               /* allocated since the tick before, of this kind */
    uint32_t kind;                /* enum gc_allocation_kind */
    struct span type;             /* UTF-16LE, of the object that came then; empty in version 1 */
    uint64_t object_bytes;        /* its size; 0: not told */
};

struct gc_allocation_sampled_event { /* 303: each byte is chosen with the same small probability */
    uint32_t kind;
    struct span type;
    uint64_t object_bytes;
};

/* 15, which says what type ids mean that other events have: one type of many. */
struct gc_bulk_type {
    uint64_t type_id, module_id;
    uint32_t token;   /* 0x02... */
    struct span name; /* UTF-16LE; mostly empty: who has the assembly knows it by the token */
};

/* Its types, one after another; what is cut short ends them. */
struct gc_bulk_types {
    struct cursor c;
    uint32_t left;
};

struct gc_bulk_types gc_bulk_types_over(struct span payload);
bool gc_bulk_types_next(struct gc_bulk_types *types, struct gc_bulk_type *out);

/* One byte in so many is sampled. */
enum { GC_SAMPLED_ONE_IN = 102400 };

bool gc_allocation_tick_read(struct span payload, uint32_t pointer_size, struct gc_allocation_tick_event *out,
                             struct error *err);
bool gc_allocation_sampled_read(struct span payload, uint32_t pointer_size,
                                struct gc_allocation_sampled_event *out, struct error *err);
bool gc_heap_stats_read(struct span payload, struct gc_heap_stats_event *out, struct error *err);
bool gc_heap_history_read(struct span payload, uint32_t pointer_size, struct gc_heap_history_event *out,
                          struct error *err);
bool gc_global_history_read(struct span payload, struct gc_global_history_event *out, struct error *err);
bool gc_marked_read(struct span payload, struct gc_marked_event *out, struct error *err);
bool gc_pinned_read(struct span payload, uint32_t pointer_size, struct gc_pinned_event *out,
                    struct error *err);

/* Whether the event tells of collections and of what is on the heap; all ids of the manifest's GC tasks. */
bool gc_event_is_of_heap(uint32_t event_id);
/* "gen 0", ..., "large", "pinned". `gen`: below GC_EVENT_GENS. */
const char *gc_gen_name(unsigned gen);
/* Why a collection was begun: "induced", "small allocation", ...; NULL for a number that is none. */
const char *gc_reason_name(uint32_t reason);
/* The same as TraceEvent and PerfView spell it: "AllocSmall". */
const char *gc_reason_key(uint32_t reason);
/* gc_reason_name() of what gc_reason_key() says; a key that is none is returned as it is. */
const char *gc_reason_name_of_key(const char *key);
/* The program asked for it, in one of four ways. */
bool gc_reason_is_induced(uint32_t reason);
/* One of the bits of condemn_conditions: "fragmented gen 2"; NULL for one that is none. */
const char *gc_condition_name(unsigned bit);
/* A phase of phase_us[], which depends on what the collection did; NULL when it is none. */
const char *gc_phase_name(unsigned phase, uint32_t mechanisms);
/* What kept objects alive: "stack"; NULL for a number that is none. */
const char *gc_root_kind_name(uint32_t kind);

#endif
