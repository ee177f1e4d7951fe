/*
 * gc_stats: every collection of the .NET runtimes of a trace: why, who began it, how long threads stood still
 * for it, and what it left.
 *
 * Made of the runtimes' own events. A pause ends, as the runtime counts (GC.GetTotalPauseDuration), when its
 * collection is over; where that goes on in the background, when the thread that stopped the others begins to
 * let them go, by which it is matched. A collection in the background has two or more. What a payload did not
 * tell is not known, never 0: `has_...` says so.
 */
#ifndef CLRPERF_ANALYSE_GC_STATS_H
#define CLRPERF_ANALYSE_GC_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clr/gc_events.h"
#include "trace/trace.h"

enum gc_kind {
    GC_KIND_BLOCKING,
    GC_KIND_BACKGROUND,
    GC_KIND_FOREGROUND, /* blocking, while one in the background goes on */
};

/* What one heap said of one collection. */
struct gc_heap_record {
    struct gc_heap_history_event told;
    uint32_t next; /* the collection's next heap, or 0 */
};

/* One generation in a collection, over all heaps. */
struct gc_gen_record {
    uint64_t before, after; /* bytes with what lies fragmented between objects */
    uint64_t in, out;       /* survivors of the younger generation that came; what survived in it */
    uint64_t fragmentation; /* in `after` */
    uint64_t budget;        /* may be allocated before the next one */
    uint64_t allocated;     /* since the collection before; known when has_allocated */
    double survival_share;  /* when has_survival: mean over the heaps */
    bool has_survival;
};

struct gc_record {
    uint64_t pause_from_ns; /* threads are being stopped, the first time */
    uint64_t start_ns, end_ns;
    uint64_t pause_ns;       /* all of its pauses */
    uint64_t suspend_ns;     /* in it: until the last thread stood still */
    uint64_t final_pause_ns; /* of one in the background: the last one, 0 when there was none */
    uint64_t since_last_ns;  /* from the end of the pause before; 0 for the first */

    uint64_t heap_after, promoted;               /* when has_stats */
    uint64_t heap_before, peak;                  /* when has_before */
    uint64_t allocated;                          /* since the one before, when has_allocated */
    uint64_t pinned_bytes;                       /* of handles, when has_pins */
    uint64_t tick_small_bytes, tick_large_bytes; /* allocated since, by allocation events, when has_ticks */
    uint64_t root_bytes[GC_EVENT_ROOTS];         /* promoted for what kept them alive, when has_roots */
    struct gc_gen_record gen[GC_EVENT_GENS];
    struct gc_heap_stats_event stats;       /* when has_stats */
    struct gc_global_history_event history; /* when has_history */

    uint32_t process;
    uint32_t number;                        /* the runtime's; has gaps */
    uint32_t reason;                        /* clr/gc_events.h */
    uint32_t pauses;                        /* how many */
    uint32_t heaps, first_heap;             /* in gc_stats.heaps; 0: they told nothing */
    uint32_t trigger_thread, trigger_stack; /* of the trace; 0 not known */
    uint8_t generation;
    uint8_t kind;         /* enum gc_kind: what it was in the end */
    bool complete;        /* its begin and end were told, and its pause */
    bool turned_blocking; /* was begun in the background */
    bool has_stats, has_before, has_allocated, has_pins, has_ticks, has_roots, has_history;
};

/* Of a process, over its complete collections; by generation: over those of it. */
struct gc_sum {
    uint64_t count, induced, background;
    uint64_t with_stats, with_allocated; /* of `count`: what is known of sizes is of these */
    uint64_t pause_ns, pause_max_ns, suspend_ns, suspend_max_ns;
    uint64_t peak_max, promoted, allocated;
    uint64_t pinned;
    double allocated_per_s_max;
};

struct gc_process_stats {
    uint32_t process;
    size_t first, count;                   /* of gc_stats.rows */
    uint64_t told_ns;                      /* how long it was listened to */
    uint64_t incomplete;                   /* collections whose begin or end is not in the trace */
    uint64_t other_pauses, other_pause_ns; /* for collections, but none was told in them */
    uint64_t finalized;                    /* objects, when they were told */
    struct gc_sum all, by_generation[3];
};

struct gc_stats {
    const struct trace *trace; /* borrowed */
    struct gc_record *rows;    /* by process and begin */
    size_t row_count, row_capacity;
    struct gc_heap_record *heaps; /* [0] is unused */
    size_t heap_count, heap_capacity;
    struct gc_process_stats *processes; /* those with collections */
    size_t process_count, process_capacity;
    uint64_t malformed; /* events that are not what the runtime sends */
    bool any;           /* there were events of collections */
};

/* The events that it is made of. */
bool gc_stats_wants(const char *provider, uint32_t event_id);

/* Those that begin between two times of the trace; to_ns 0: to its end. The caller ends it. */
void gc_stats_init(struct gc_stats *stats, const struct trace *t, uint64_t from_ns, uint64_t to_ns);
void gc_stats_done(struct gc_stats *stats);

/* The share of the time threads stood still since the end of the pause before; false when not known. */
bool gc_record_pause_share(const struct gc_record *r, double *out);
/* "2N", "0F", "2B", with "I" when it was induced, "i" when it was not forced, as PerfView has them. */
void gc_record_label(const struct gc_record *r, char out[8]);

#endif
