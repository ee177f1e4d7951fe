/*
 * thread_time: how long each sample of a sampler stands for that looks at all threads round by round.
 *
 * A thread stays where it was seen until the next round sees it, or until the round that does not see it any
 * more: then it has ended, or left the code that the sampler knows.
 */
#ifndef CLRPERF_IMPORT_THREAD_TIME_H
#define CLRPERF_IMPORT_THREAD_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/*
 * Sets the weights, in nanoseconds, of all SAMPLE_WALL samples, and the facts about them; of one process they
 * are in time order. `states`: by sample, what the sampler said of it, enum thread_time_state. `last_ns`:
 * what a sample of the last round stands for.
 */
void thread_time_finish(struct trace *t, const uint8_t *states, uint64_t last_ns);
/* Adds a sample for each event of the runtime's sampler that a capture holds, unless it has samples of wall
 * time. */
void thread_time_from_events(struct trace *t);

enum thread_time_state { THREAD_TIME_UNKNOWN, THREAD_TIME_EXTERNAL, THREAD_TIME_MANAGED };

#endif
