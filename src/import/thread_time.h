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
 * Sets the weights, in nanoseconds, of all SAMPLE_WALL samples; of one process they are in time order.
 * `last_ns`: what a sample of the last round stands for.
 */
void thread_time_weigh(struct trace *t, uint64_t last_ns);

#endif
