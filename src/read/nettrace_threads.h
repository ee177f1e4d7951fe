/*
 * nettrace_threads: how far each thread of a stream has got, which tells what the runtime lost.
 *
 * Every attempt of a thread to write an event takes a number, from 1; a gap is a loss.
 */
#ifndef CLRPERF_READ_NETTRACE_THREADS_H
#define CLRPERF_READ_NETTRACE_THREADS_H

#include "base/id_map.h"

struct nettrace_thread {
    uint64_t id;
    uint64_t ticks; /* of its latest event */
    uint32_t last;  /* its latest number */
    bool listed;    /* by the current sequence point */
};

struct nettrace_threads {
    struct id_map ids;
    struct nettrace_thread *rows; /* ids are 1 and up */
    size_t count, capacity;
    size_t latest; /* row of the latest event's thread, or 0 */
    bool forgot;   /* threads beyond our bound were not kept: a first number above 1 says nothing any more */
};

/* What one number told. */
struct nettrace_progress {
    uint64_t lost; /* events missing before it */
    bool back;     /* the number went back: the thread id was reused, or the stream lies */
    bool older;    /* the time did */
    bool refused;  /* one thread too many */
};

/* An event of the same thread as the one before, with the next number: nearly all are. False, and nothing
 * done, when it is not. */
static inline bool nettrace_threads_event_next(struct nettrace_threads *t, uint64_t thread_id,
                                               uint32_t sequence, uint64_t ticks)
{
    if (!t->latest)
        return false;
    struct nettrace_thread *row = &t->rows[t->latest];
    if (row->id != thread_id || sequence != row->last + 1 || ticks < row->ticks)
        return false;
    row->last = sequence;
    row->ticks = ticks;
    return true;
}

/* Whether the latest event was of this thread, with this number and time. */
static inline bool nettrace_threads_latest_is(const struct nettrace_threads *t, uint64_t thread_id,
                                              uint32_t sequence, uint64_t ticks)
{
    const struct nettrace_thread *row = &t->rows[t->latest];
    return t->latest && row->id == thread_id && row->last == sequence && row->ticks == ticks;
}

/* As many events more of the thread of the latest one, each with the next number; the time is the last one's.
 */
static inline void nettrace_threads_passed(struct nettrace_threads *t, uint32_t count, uint64_t ticks)
{
    t->rows[t->latest].last += count;
    t->rows[t->latest].ticks = ticks;
}

void nettrace_threads_done(struct nettrace_threads *t);
/* An event of this number was read. */
struct nettrace_progress nettrace_threads_event(struct nettrace_threads *t, uint64_t thread_id,
                                                uint32_t sequence, uint64_t ticks);
/* A sequence point says that the thread has tried this number. */
struct nettrace_progress nettrace_threads_reached(struct nettrace_threads *t, uint64_t thread_id,
                                                  uint32_t sequence);
/* The thread is over; its id may be another one's from now on. */
void nettrace_threads_end(struct nettrace_threads *t, uint64_t thread_id);
void nettrace_threads_clear(struct nettrace_threads *t);
/* The sequence point is over: threads it did not list have ended and may be forgotten. */
void nettrace_threads_end_point(struct nettrace_threads *t);

#endif
