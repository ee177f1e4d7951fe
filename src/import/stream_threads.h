/*
 * stream_threads: the rows of a nettrace stream's threads, by the numbers that events have for them.
 */
#ifndef CLRPERF_IMPORT_STREAM_THREADS_H
#define CLRPERF_IMPORT_STREAM_THREADS_H

#include "trace/builder.h"

enum { STREAM_THREADS_KNOWN = 256 /* a power of two */ };

struct stream_thread {
    uint64_t tid;
    uint32_t process, thread; /* of the trace; 0: none */
};

/* Those that were asked for lately. All zeros at first. */
struct stream_threads {
    struct stream_thread known[STREAM_THREADS_KNOWN];
};

/* The row of a thread of a process, or 0: ask stream_threads_row(). Inline, for each sample of millions. */
static inline uint32_t stream_threads_known(const struct stream_threads *threads, uint32_t process,
                                            uint64_t tid)
{
    const struct stream_thread *known = &threads->known[(tid ^ tid >> 8) & (STREAM_THREADS_KNOWN - 1)];
    return known->tid == tid && known->process == process ? known->thread : 0;
}

/* The same, added when it is new. 0 for a number that is none, and without a process. */
uint32_t stream_threads_row(struct stream_threads *threads, struct trace_builder *b, uint32_t process,
                            uint64_t tid, uint64_t time_ns);

#endif
