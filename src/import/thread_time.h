/*
 * thread_time: samples of wall time, of a sampler that looks at all threads round by round, and how long each
 * of them stands for.
 *
 * A thread stays where it was seen until the next round sees it, or until the round that does not see it any
 * more: then it has ended, or left the code that the sampler knows.
 */
#ifndef CLRPERF_IMPORT_THREAD_TIME_H
#define CLRPERF_IMPORT_THREAD_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/* What the sampler says of a sample. */
enum thread_time_state { THREAD_TIME_UNKNOWN, THREAD_TIME_EXTERNAL, THREAD_TIME_MANAGED };

/* A thread as its last sample saw it, and what its row does not say yet. */
struct seen_thread {
    uint64_t time_ns;
    uint64_t since_ns;   /* the row's weight is from then on, in `state`, to be told */
    uint64_t row_end_ns; /* samples from then on may need a row of their own; 0: all do */
    size_t row;          /* of the samples */
    uint32_t process;    /* its row */
    uint32_t round;      /* of its process; 0: it was not seen */
    uint32_t stack;
    uint32_t more; /* samples that the row stands for */
    uint8_t state; /* enum thread_time_state */
};

struct seen_process {
    uint32_t round;      /* the one at which a thread came again; 1 and up; 0: none yet */
    uint64_t *starts_ns; /* when each began, by number */
    size_t capacity;
};

struct thread_time {
    struct trace *t;                /* borrowed */
    struct seen_thread *threads;    /* by thread of the trace */
    struct seen_process *processes; /* by process of the trace */
    size_t thread_capacity, process_capacity;
    uint64_t managed_ns, native_ns;
    uint64_t first_ns;   /* of the first sample */
    unsigned grain_bits; /* a run does not go over a boundary of the samples' time, every 2^grain_bits ns */
};

/*
 * `runs`: the samples of a thread that stays where it is are one row (struct sample_run), for who needs to
 * know only roughly when: a row tells times to a 256th of the time that was sampled until it ended.
 */
void thread_time_init(struct thread_time *w, struct trace *t, bool runs);
/* A sample; those of one process come in time order. */
void thread_time_add(struct thread_time *w, uint64_t time_ns, uint32_t thread, uint32_t stack,
                     enum thread_time_state state);
/*
 * Adds a sample when it says of its thread what the one before did, in the round before: most do. False: it
 * is another one, for thread_time_add().
 */
static inline bool thread_time_goes_on(struct thread_time *w, uint64_t time_ns, uint32_t thread,
                                       uint32_t stack, enum thread_time_state state)
{
    struct seen_thread *seen = thread < w->thread_capacity ? &w->threads[thread] : NULL;
    if (!seen || seen->stack != stack || seen->state != state || time_ns < seen->time_ns ||
        time_ns >= seen->row_end_ns || seen->round + 1 != w->processes[seen->process].round)
        return false;
    seen->more++;
    seen->time_ns = time_ns;
    seen->round++;
    return true;
}
/* No more samples come: sets the facts about them. `last_ns`: what a sample of the last round stands for. */
void thread_time_finish(struct thread_time *w, uint64_t last_ns);
void thread_time_done(struct thread_time *w);

/* Adds a sample for each event of the runtime's sampler that a capture holds, unless it has samples of wall
 * time. */
void thread_time_from_events(struct trace *t);

#endif
