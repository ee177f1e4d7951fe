/*
 * threadpool_stats: how many worker threads the thread pools had, and why their number changed.
 *
 * Each event about a worker says how many are active then; an adjustment says the number that is wanted from
 * then on, and why. Adjustments for starvation are the sign of work items that block.
 */
#ifndef CLRPERF_ANALYSE_THREADPOOL_STATS_H
#define CLRPERF_ANALYSE_THREADPOOL_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

enum threadpool_event_id {
    THREADPOOL_EVENT_START = 50,
    THREADPOOL_EVENT_STOP = 51,
    THREADPOOL_EVENT_RETIRE = 52,
    THREADPOOL_EVENT_UNRETIRE = 53,
    THREADPOOL_EVENT_SAMPLE = 54,
    THREADPOOL_EVENT_ADJUSTMENT = 55,
    THREADPOOL_EVENT_WAIT = 57,
    THREADPOOL_EVENT_MIN_MAX = 59,
};

/* Why the number changed, as the runtime numbers it. */
enum threadpool_reason {
    THREADPOOL_WARMUP,
    THREADPOOL_INITIALIZING,
    THREADPOOL_RANDOM_MOVE,
    THREADPOOL_CLIMBING_MOVE,
    THREADPOOL_CHANGE_POINT,
    THREADPOOL_STABILIZING,
    THREADPOOL_STARVATION,
    THREADPOOL_TIMED_OUT,
    THREADPOOL_COOPERATIVE_BLOCKING,
    THREADPOOL_REASONS /* and any that is none of these */
};

struct threadpool_adjustment {
    uint64_t time_ns;
    uint32_t process, thread; /* of the trace */
    uint32_t workers;         /* wanted from now on */
    uint32_t workers_before;  /* wanted before, or active when none was told yet; when has_before */
    bool has_before;
    uint8_t reason;    /* enum threadpool_reason */
    double throughput; /* work items a second, when known: not negative */
};

/* How many workers were active from then on. */
struct threadpool_level {
    uint64_t time_ns;
    uint32_t process;
    uint32_t workers;
};

struct threadpool_process {
    uint32_t process;
    uint32_t most_workers, last_workers;
    bool has_workers;
    uint32_t min_workers, max_workers; /* set by the program or by default, when has_limits */
    bool has_limits;
    uint64_t started, stopped; /* workers */
    uint64_t adjustments[THREADPOOL_REASONS + 1];
    uint64_t first_starved_ns, last_starved_ns; /* when it was adjusted for starvation; 0: never */
    double throughput_max;                      /* of samples and adjustments */
};

struct threadpool_stats {
    struct threadpool_adjustment *adjustments; /* by process and time */
    size_t adjustment_count, adjustment_capacity;
    struct threadpool_level *levels; /* by process and time; only changes */
    size_t level_count, level_capacity;
    struct threadpool_process *processes;
    size_t process_count, process_capacity;
    uint64_t malformed;
    bool any;
};

/* The events that it is made of. */
bool threadpool_stats_wants(const char *provider, uint32_t event_id);

void threadpool_stats_init(struct threadpool_stats *stats, const struct trace *t, uint64_t from_ns,
                           uint64_t to_ns);
void threadpool_stats_done(struct threadpool_stats *stats);

/* As the runtime spells them: "Starvation"; "Other" beyond. */
const char *threadpool_reason_name(unsigned reason);

#endif
