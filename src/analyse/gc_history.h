/*
 * gc_history: when the .NET runtimes of a trace collected, and when their threads stood still for it.
 *
 * Made of the runtimes' own events. A pause begins when one thread begins to stop all others, and is matched
 * by that thread, as threads are stopped for other reasons, too. It ends when that thread begins to let them
 * go: some microseconds after the runtime's own count does (see gc_stats). A collection in the background has
 * two pauses.
 */
#ifndef CLRPERF_ANALYSE_GC_HISTORY_H
#define CLRPERF_ANALYSE_GC_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyse/thread_filter.h"
#include "trace/trace.h"

enum { GC_GENERATIONS = 3 };

struct gc_pause {
    uint64_t from_ns, to_ns;
    uint64_t over_ns; /* the thread is through with letting the others go */
    uint32_t thread;  /* of the trace: who stops the others, and collects; 0 not known */
};

struct gc_collection {
    uint64_t start_ns;
    uint8_t generation; /* below GC_GENERATIONS */
    bool background;
};

/* What is known of one process; nothing when it told nothing. */
struct gc_process {
    uint64_t told_from_ns, told_to_ns; /* the same: never */
    struct gc_pause *pauses;           /* in time order, without overlap */
    struct gc_collection *collections; /* in time order */
    size_t pause_count, pause_capacity, collection_count, collection_capacity;
    size_t at; /* the pause that was asked for last */
};

struct gc_history {
    const struct trace *trace;    /* borrowed */
    struct gc_process *processes; /* by process of the trace */
    size_t process_count;
    bool told; /* by any */
};

/* Reads the trace's events, which must not change. What makes no sense is left out. The caller ends it. */
void gc_history_init(struct gc_history *history, const struct trace *t);
void gc_history_done(struct gc_history *history);

/* The first pause that ends behind a time; `pause_count` when there is none. */
size_t gc_process_pause_behind(const struct gc_process *p, uint64_t time_ns);
/* How much of a stretch of time threads stood still. */
uint64_t gc_process_paused_ns(const struct gc_process *p, uint64_t from_ns, uint64_t to_ns);

/* What a moment is to a thread. */
enum gc_time {
    GC_TIME_UNTOLD, /* its runtime told nothing then */
    GC_TIME_NONE,   /* threads run */
    GC_TIME_OTHERS, /* another thread stops it, and collects */
    GC_TIME_OWN,    /* it collects itself */
    GC_TIMES
};

/* For times that go mostly forward: then it takes no search. */
enum gc_time gc_history_at(struct gc_history *history, uint32_t thread, uint64_t time_ns);

/* Sums over processes and a stretch of time. */
struct gc_summary {
    size_t processes; /* that told; without one the rest means nothing */
    uint64_t told_ns; /* of the stretch, by all of them */
    uint64_t collections[GC_GENERATIONS];
    uint64_t background; /* of them */
    uint64_t pauses, paused_ns, longest_ns;
};
/* `who` NULL: of all. */
struct gc_summary gc_history_summary(const struct gc_history *history, const struct thread_filter *who,
                                     uint64_t from_ns, uint64_t to_ns);

#endif
